//! A started emulator with one table, and an HTTP client that sends exactly the bytes a test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use doris_emulator::{Addresses, Client, Emulator, Options, Settings, StateCounts, TableSpec, TransactionState};
use serde_json::Value;
use tempfile::TempDir;

/// Nothing in a test may take longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// The credentials `root` without password.
pub(crate) const ROOT: &str = "Authorization: Basic cm9vdDo=";

/// An emulator with a table `shop.orders` that takes every row.
pub(crate) struct Doris {
    pub(crate) client: Client,
    pub(crate) addresses: Addresses,
    pub(crate) folder: TempDir,
    emulator: Option<Emulator>,
}

impl Doris {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// Started with changed settings.
    pub(crate) fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with(|options| change(&mut options.settings))
    }

    /// Started with changed options.
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(folder.path());
        change(&mut options);
        let emulator = Emulator::start(options).unwrap();
        let (client, addresses) = (emulator.client(), emulator.addresses().clone());
        client.create_table(&TableSpec::any("shop", "orders")).unwrap();
        Self { client, addresses, folder, emulator: Some(emulator) }
    }

    /// Stops it and starts another one on the same folder.
    pub(crate) fn restart(&mut self) {
        drop(self.emulator.take());
        let emulator = Emulator::start(Options::new(self.folder.path())).unwrap();
        (self.client, self.addresses) = (emulator.client(), emulator.addresses().clone());
        self.emulator = Some(emulator);
    }

    pub(crate) fn fe(&self) -> SocketAddr {
        self.addresses.fe[0]
    }

    pub(crate) fn be(&self) -> SocketAddr {
        self.addresses.be[0]
    }

    /// Loads JSON lines with two-phase commit into `shop.orders`.
    pub(crate) fn load(&self, label: &str, body: &str) -> Value {
        load(self.be(), "orders", label, &["format: json", "read_json_by_line: true"], body)
    }

    /// Loads and expects success; returns the transaction's id.
    pub(crate) fn precommit(&self, label: &str, body: &str) -> i64 {
        let reply = self.load(label, body);
        assert_eq!(reply["Status"], "Success", "{reply}");
        reply["TxnId"].as_i64().unwrap()
    }

    pub(crate) fn commit(&self, id: i64) -> Value {
        two_phase(self.be(), "shop", &[&format!("txn_id: {id}"), "txn_operation: commit"])
    }

    pub(crate) fn abort(&self, id: i64) -> Value {
        two_phase(self.be(), "shop", &[&format!("txn_id: {id}"), "txn_operation: abort"])
    }

    /// What `get_load_state` says.
    pub(crate) fn label_state(&self, label: &str) -> String {
        let path = format!("/api/shop/get_load_state?label={label}");
        let reply = Connection::open(self.fe()).request("GET", &path, &[ROOT]).json();
        reply["data"].as_str().unwrap().to_owned()
    }

    pub(crate) fn rows(&self) -> Vec<String> {
        self.client.rows("shop", "orders").unwrap()
    }

    pub(crate) fn states(&self) -> StateCounts {
        self.client.table_counts("shop", "orders").unwrap().transactions
    }

    pub(crate) fn in_state(&self, state: TransactionState) -> u64 {
        self.states()[&state]
    }
}

/// A load with two-phase commit and Content-Length, sent as curl does: head, `100 Continue`, body.
pub(crate) fn load(be: SocketAddr, table: &str, label: &str, headers: &[&str], body: &str) -> Value {
    let label = format!("label: {label}");
    let length = format!("Content-Length: {}", body.len());
    let all = [&[ROOT, "Expect: 100-continue", "two_phase_commit: true", &label, &length], headers].concat();
    let mut connection = Connection::open(be);
    connection.send_head("PUT", &format!("/api/shop/{table}/_stream_load"), &all);
    let first = connection.read_reply();
    if first.status != 100 {
        return first.json();
    }
    connection.send(body.as_bytes());
    connection.read_reply().json()
}

/// A two-phase operation sent to a BE.
pub(crate) fn two_phase(be: SocketAddr, db: &str, headers: &[&str]) -> Value {
    let all = [&[ROOT, "Content-Length: 0"], headers].concat();
    Connection::open(be).request("PUT", &format!("/api/{db}/_stream_load_2pc"), &all).json()
}

/// The head of a request.
pub(crate) fn head(method: &str, path: &str, headers: &[&str]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: doris\r\n");
    for header in headers {
        head += header;
        head += "\r\n";
    }
    (head + "\r\n").into_bytes()
}

/// One connection, every wait on it limited.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::try_open(address).expect("a connection")
    }

    /// `None` when nobody listens any more.
    pub(crate) fn try_open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect_timeout(&address, LIMIT).ok()?;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Some(Self { reader: BufReader::new(stream) })
    }

    pub(crate) fn send_head(&mut self, method: &str, path: &str, headers: &[&str]) {
        self.send(&head(method, path, headers));
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Sends what may be refused by a connection that is closing.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// No more bytes will come from here; the answer can still be read.
    pub(crate) fn end_sending(&self) {
        self.reader.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Sends a request without body and reads the answer.
    pub(crate) fn request(&mut self, method: &str, path: &str, headers: &[&str]) -> Reply {
        self.send_head(method, path, headers);
        self.read_reply()
    }

    /// Reads one answer; `100 Continue` counts as one.
    pub(crate) fn read_reply(&mut self) -> Reply {
        self.try_read_reply().expect("an answer")
    }

    /// Reads one answer; `None` when the connection was closed without a whole one.
    pub(crate) fn try_read_reply(&mut self) -> Option<Reply> {
        let status_line = self.read_line()?;
        let status = status_line.split(' ').nth(1).expect("a status line").parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").expect("a header");
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        reply.body.resize(length, 0);
        self.reader.read_exact(&mut reply.body).ok()?;
        Some(reply)
    }

    fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            // Closed with bytes unread on the other side, or simply closed.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Ok(0) => None,
            other => {
                other.unwrap();
                Some(line.trim_end_matches("\r\n").to_owned())
            }
        }
    }

    /// Whether the connection is closed without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.read_line().is_none()
    }

    /// Whether something is sent within a short time; for what must not be sent.
    pub(crate) fn stays_silent_for(&mut self, time: Duration) -> bool {
        self.reader.get_ref().set_read_timeout(Some(time)).unwrap();
        let silent = match self.reader.fill_buf() {
            Err(error) => matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
            Ok(_) => false,
        };
        self.reader.get_ref().set_read_timeout(Some(LIMIT)).unwrap();
        silent
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "Doris answers HTTP 200: {self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// `count` JSON lines, numbered from `first`.
pub(crate) fn json_lines(first: u64, count: u64) -> String {
    (first..first + count).map(|number| format!("{{\"id\": {number}}}\n")).collect()
}
