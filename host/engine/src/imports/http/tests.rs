//! The client against servers of a few lines.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wasmtime_wasi::p2::OutputStream;
use wasmtime_wasi_http::p2::body::{HostOutgoingBody, StreamContext};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::{Client, Gate, Tls};
use crate::capabilities::Grants;
use crate::imports::log::{Log, Origin};

const PATIENT: Duration = Duration::from_secs(30);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

struct Fixture {
    client: Arc<Client>,
    gate: Gate,
    log: Arc<Log>,
    listener: TcpListener,
    address: String,
}

impl Fixture {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let grants = Grants { http: vec![address.parse().unwrap()], ..Grants::default() };
        let log = Log::new(Origin { plugin: "p".into(), pipeline: "p".into(), sink: "s".into(), lane: 0, role: "writer" });
        let gate = Gate::default();
        let client = Client::new(Arc::new(grants), Tls::new(None).unwrap(), gate.clone(), log.clone());
        Self { client, gate, log, listener, address }
    }

    fn request(&self, method: Method, body: WasiBody) -> Request<WasiBody> {
        let uri = format!("http://{}/load?secret=1", self.address);
        Request::builder().method(method).uri(uri).header("host", &self.address).body(body).unwrap()
    }

    async fn get(&self) -> Result<Response<WasiBody>, Error> {
        within(self.client.send(self.request(Method::GET, empty()), None)).await
    }

    async fn accept(&self) -> TcpStream {
        within(self.listener.accept()).await.unwrap().0
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENT, future).await.expect("an event that never came")
}

fn empty() -> WasiBody {
    Empty::<Bytes>::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body as a plugin writes it.
fn body() -> (HostOutgoingBody, Box<dyn OutputStream>, WasiBody) {
    let (mut host, body) = HostOutgoingBody::new(StreamContext::Request, None, 8, 1 << 20);
    let stream = host.take_output_stream().unwrap();
    (host, stream, body)
}

/// Reads until what was read ends in, or contains, `words`.
async fn read_until(connection: &mut TcpStream, words: &str) -> String {
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&heard).contains(words) {
        let read = within(connection.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "the connection ended after: {}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(heard).unwrap()
}

/// Reads to the end, clean or not.
async fn read_rest(connection: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    let _ = within(connection.read_to_end(&mut heard)).await;
    String::from_utf8_lossy(&heard).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_dropped_with_its_instance_is_never_ended_cleanly() {
    // The order in which an instance's parts go is not ours to choose, so each end is tried many times.
    for round in 0..50 {
        let fixture = Fixture::new().await;
        let (host, mut stream, sent) = body();
        let (client, request) = (fixture.client.clone(), fixture.request(Method::PUT, sent));
        let sending = tokio::spawn(async move { client.send(request, None).await.map(|_| ()) });
        let mut connection = fixture.accept().await;
        stream.write(Bytes::from_static(b"half of it\n")).unwrap();
        read_until(&mut connection, "half of it").await;
        fixture.gate.close();
        if round % 2 == 0 {
            drop(host);
            drop(stream);
        } else {
            drop(stream);
            drop(host);
        }
        let rest = read_rest(&mut connection).await;
        assert!(!rest.contains("0\r\n\r\n"), "the body was ended cleanly: {rest:?}");
        assert!(within(sending).await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_body_that_is_finished_is_ended_cleanly() {
    let fixture = Fixture::new().await;
    let (host, mut stream, sent) = body();
    let sending = fixture.client.send(fixture.request(Method::PUT, sent), None);
    let serving = async {
        let mut connection = fixture.accept().await;
        stream.write(Bytes::from_static(b"all of it")).unwrap();
        drop(stream);
        host.finish(None).unwrap();
        let heard = read_until(&mut connection, "0\r\n\r\n").await;
        assert!(heard.contains("transfer-encoding: chunked\r\n") && heard.contains("9\r\nall of it\r\n"), "{heard}");
        connection.write_all(OK.as_bytes()).await.unwrap();
    };
    let (response, ()) = within(async { tokio::join!(sending, serving) }).await;
    assert_eq!(response.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_response_may_arrive_while_the_body_goes_out() {
    let fixture = Fixture::new().await;
    let (host, mut stream, sent) = body();
    let sending = fixture.client.send(fixture.request(Method::PUT, sent), None);
    let serving = async {
        let mut connection = fixture.accept().await;
        read_until(&mut connection, "\r\n\r\n").await;
        connection.write_all(b"HTTP/1.1 307 Elsewhere\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        connection
    };
    let (response, mut connection) = within(async { tokio::join!(sending, serving) }).await;
    // Nobody follows it but the plugin.
    assert_eq!(response.unwrap().status(), StatusCode::TEMPORARY_REDIRECT);
    stream.write(Bytes::from_static(b"still going\n")).unwrap();
    read_until(&mut connection, "still going").await;
    drop(stream);
    host.finish(None).unwrap();
}

#[tokio::test]
async fn the_first_byte_is_waited_for_from_the_end_of_the_request() {
    let limit = Duration::from_millis(200);
    let options = RequestOptions { first_byte_timeout: Some(limit), ..RequestOptions::default() };
    // A body that takes three times as long as the response may.
    let fixture = Fixture::new().await;
    let (host, mut stream, sent) = body();
    let sending = fixture.client.send(fixture.request(Method::PUT, sent), Some(options));
    let serving = async {
        let mut connection = fixture.accept().await;
        for _ in 0..3 {
            stream.write(Bytes::from_static(b"slowly\n")).unwrap();
            tokio::time::sleep(limit).await; // what is tested is time
        }
        drop(stream);
        host.finish(None).unwrap();
        read_until(&mut connection, "0\r\n\r\n").await;
        connection.write_all(OK.as_bytes()).await.unwrap();
        connection
    };
    let (response, _connection) = within(async { tokio::join!(sending, serving) }).await;
    response.unwrap();

    // A target that has the whole request and says nothing.
    let silent = Fixture::new().await;
    let sending = silent.client.send(silent.request(Method::GET, empty()), Some(options));
    let (response, _connection) = within(async { tokio::join!(sending, silent.accept()) }).await;
    assert!(matches!(response.err().unwrap(), Error::HttpResponseTimeout));
    assert!(silent.log.tail().iter().any(|line| line.contains("no response within 0.2 s")), "{:?}", silent.log.tail());
}

#[tokio::test]
async fn a_connection_is_used_again_when_its_response_was_read() {
    let fixture = Fixture::new().await;
    let serving = async {
        let mut connection = fixture.accept().await;
        for _ in 0..3 {
            read_until(&mut connection, "\r\n\r\n").await;
            connection.write_all(OK.as_bytes()).await.unwrap();
        }
        connection
    };
    let asking = async {
        for _ in 0..3 {
            let response = fixture.get().await.unwrap();
            assert_eq!(within(response.into_body().collect()).await.unwrap().to_bytes(), "ok");
        }
    };
    within(async { tokio::join!(serving, asking) }).await;
}

#[tokio::test]
async fn a_connection_whose_response_was_not_read_is_closed() {
    let fixture = Fixture::new().await;
    let serving = async {
        for _ in 0..2 {
            let mut connection = fixture.accept().await;
            read_until(&mut connection, "\r\n\r\n").await;
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nthe beginning").await.unwrap();
            read_rest(&mut connection).await;
        }
    };
    let asking = async {
        for _ in 0..2 {
            drop(fixture.get().await.unwrap());
        }
    };
    within(async { tokio::join!(serving, asking) }).await;
}

#[tokio::test]
async fn a_kept_connection_that_its_target_closed_is_replaced() {
    let fixture = Fixture::new().await;
    for _ in 0..2 {
        let serving = async {
            let mut connection = fixture.accept().await;
            read_until(&mut connection, "\r\n\r\n").await;
            connection.write_all(OK.as_bytes()).await.unwrap();
        };
        let (response, ()) = tokio::join!(fixture.get(), serving);
        within(response.unwrap().into_body().collect()).await.unwrap();
    }
}

#[tokio::test]
async fn what_went_wrong_is_said_to_the_plugin_and_to_people() {
    let mut fixture = Fixture::new().await;
    // Cut off in the middle of its answer.
    let serving = async {
        let mut connection = fixture.accept().await;
        read_until(&mut connection, "\r\n\r\n").await;
        connection.write_all(b"HTTP/1.1 2").await.unwrap();
    };
    let (response, ()) = tokio::join!(fixture.get(), serving);
    assert!(matches!(response.err().unwrap(), Error::ConnectionTerminated));

    // Nobody there.
    drop(std::mem::replace(&mut fixture.listener, TcpListener::bind("127.0.0.1:0").await.unwrap()));
    assert!(matches!(fixture.get().await.err().unwrap(), Error::ConnectionRefused));

    // Not granted, and not sent.
    fixture.address = fixture.listener.local_addr().unwrap().to_string();
    assert!(matches!(fixture.get().await.err().unwrap(), Error::HttpRequestDenied));
    assert_eq!(fixture.client.take_denied().map(|address| address.to_string()), Some(fixture.address.clone()));

    let log = fixture.log.tail().join("\n");
    for words in ["host: GET http://127.0.0.1:", "cannot connect to", "is not granted"] {
        assert!(log.contains(words), "no `{words}` in {log}");
    }
    assert!(!log.contains("secret"), "a query was logged: {log}");
}

#[tokio::test]
async fn credentials_in_addresses_and_tunnels_are_refused() {
    let fixture = Fixture::new().await;
    let mut request = fixture.request(Method::GET, empty());
    *request.uri_mut() = format!("http://user:password@{}/", fixture.address).parse().unwrap();
    assert!(matches!(fixture.client.send(request, None).await.err().unwrap(), Error::HttpRequestUriInvalid));
    assert!(!fixture.log.tail().join("\n").contains("password"));
    let request = fixture.request(Method::CONNECT, empty());
    assert!(matches!(fixture.client.send(request, None).await.err().unwrap(), Error::HttpRequestMethodInvalid));
}

#[tokio::test]
async fn a_private_authority_is_trusted_where_its_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, cert.pem()).unwrap();

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));

    for trusted in [false, true] {
        let mut fixture = Fixture::new().await;
        let tls = Tls::new(trusted.then_some(ca_file.as_path())).unwrap();
        fixture.client = Client::new(fixture.client.grants.clone(), tls, Gate::default(), fixture.log.clone());
        let mut request = fixture.request(Method::GET, empty());
        *request.uri_mut() = format!("https://{}/", fixture.address).parse().unwrap();
        let serving = async {
            let stream = fixture.accept().await;
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut buffer = [0; 1024];
                let _ = stream.read(&mut buffer).await.unwrap();
                stream.write_all(OK.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            }
        };
        let (response, ()) = within(async { tokio::join!(fixture.client.send(request, None), serving) }).await;
        match response {
            Ok(response) => assert!(trusted && response.status() == StatusCode::OK),
            Err(error) => assert!(!trusted && matches!(error, Error::TlsCertificateError), "{error}"),
        }
    }
    std::fs::write(&ca_file, "no certificate\n").unwrap();
    assert!(Tls::new(Some(&ca_file)).is_err());
}
