//! New connections: name, address, TCP, TLS, HTTP/1.1.

use std::io;
use std::path::Path;
use std::sync::Arc;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::Error;

use super::Failure;
use super::body::SentBody;
use super::pool::Endpoint;

/// Which certificate authorities are trusted.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

/// Why a file of certificate authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("cannot be read as PEM: {0}")]
    Pem(rustls::pki_types::pem::Error),
    #[error("holds no certificate")]
    Empty,
    #[error("{0}")]
    Rustls(#[from] rustls::Error),
}

impl Tls {
    /// The public authorities, and those of a PEM file.
    pub(crate) fn new(ca_file: Option<&Path>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = ca_file {
            let mut added = 0;
            for certificate in CertificateDer::pem_file_iter(path).map_err(TlsError::Pem)? {
                roots.add(certificate.map_err(TlsError::Pem)?)?;
                added += 1;
            }
            if added == 0 {
                return Err(TlsError::Empty);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

/// Connects. The connection is driven by a task of its own, which ends when the sender and the response are dropped, or with its runtime.
pub(super) async fn connect(endpoint: &Endpoint, tls: &Tls) -> Result<SendRequest<SentBody>, Failure> {
    let address = &endpoint.address;
    let addresses: Vec<_> = tokio::net::lookup_host((address.host.as_str(), address.port))
        .await
        .map_err(|error| {
            let words = format!("cannot look up {}: {error}", address.host);
            Failure::new(Error::DnsError { rcode: Some(error.to_string()), info_code: None }, words)
        })?
        .collect();
    let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| {
        let words = format!("cannot connect to {address}: {error}");
        Failure::new(connect_error(error), words)
    })?;
    // Bodies are written in large pieces, and small requests should not wait for an acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    if !endpoint.tls {
        return handshake(TokioIo::new(stream)).await;
    }
    let name = ServerName::try_from(address.host.clone()).map_err(|error| {
        let words = format!("{} is no name that a certificate can have: {error}", address.host);
        Failure::new(Error::TlsProtocolError, words)
    })?;
    let stream = tls.0.connect(name, stream).await.map_err(|error| {
        let words = format!("no TLS with {address}: {error}");
        Failure::new(tls_error(&error), words)
    })?;
    handshake(TokioIo::new(stream)).await
}

async fn handshake<T>(io: T) -> Result<SendRequest<SentBody>, Failure>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(io).await.map_err(Failure::of_hyper)?;
    tokio::spawn(async move {
        // Whoever waits for the response gets the error; an idle connection that its target closed is none.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "http connection ended");
        }
    });
    Ok(sender)
}

fn connect_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Error::DestinationIpUnroutable,
        // wasmtime would call every other failure a refusal.
        _ => Error::InternalError(Some(error.to_string())),
    }
}

fn tls_error(error: &io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => Error::TlsCertificateError,
        Some(rustls::Error::AlertReceived(alert)) => {
            Error::TlsAlertReceived { alert_id: Some(u8::from(*alert)), alert_message: Some(format!("{alert:?}")) }
        }
        _ => Error::TlsProtocolError,
    }
}
