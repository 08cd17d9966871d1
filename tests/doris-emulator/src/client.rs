//! A blocking client of the control API, for tests.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::options::{Settings, User};
pub use crate::server::HeldRequest;
use crate::types::{Addresses, StateCounts, TableCounts, TableSpec, Traffic, Transaction, TransactionState};

/// Longest wait for any answer, beyond what a call says itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time for a whole answer; tables can be large.
const BODY_TIMEOUT: Duration = Duration::from_secs(600);

/// Talks to the control listener of an emulator, in this process or another. Every call blocks; in async code use it on
/// a thread that may.
#[derive(Debug, Clone)]
pub struct Client {
    agent: ureq::Agent,
    control: SocketAddr,
}

/// Which transactions to list; nothing set lists all that are remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionQuery {
    /// Only of this database.
    pub db: Option<String>,
    /// Only of this table.
    pub table: Option<String>,
    /// Only in this state.
    pub state: Option<TransactionState>,
    /// Only with labels that begin with this.
    pub label_prefix: Option<String>,
}

/// Which transactions to count; nothing set counts all that are remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountsQuery {
    /// Only of this database.
    pub db: Option<String>,
    /// Only of this table.
    pub table: Option<String>,
}

/// Why a control call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The emulator said no; a mistake in the call, or a wait that was over. Not worth repeating as it is.
    #[error("the emulator answered {status} to {call}: {error}")]
    Refused {
        /// Method and path.
        call: String,
        /// HTTP status.
        status: u16,
        /// The emulator's sentence.
        error: String,
    },
    /// The emulator could not be reached or broke off; it may be worth repeating once it runs again.
    #[error("cannot call {call}")]
    Unreachable {
        /// Method and path.
        call: String,
        /// What happened.
        source: Box<ureq::Error>,
    },
    /// The answer could not be read to its end.
    #[error("cannot read the answer to {call}")]
    Answer {
        /// Method and path.
        call: String,
        /// What happened.
        source: std::io::Error,
    },
}

/// The emulated time.
#[derive(Deserialize)]
struct ClockNow {
    now_ms: u64,
}

impl Client {
    /// A client of the emulator whose control listener has this address.
    pub fn new(control: SocketAddr) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(ANSWER_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .timeout_recv_body(Some(BODY_TIMEOUT))
            .proxy(None)
            // A connection kept from before a restart of the emulator would fail a call that could succeed.
            .max_idle_connections(0)
            .build();
        Self { agent: config.into(), control }
    }

    /// Where the emulator listens.
    ///
    /// # Errors
    ///
    /// Like every call: [`ClientError`] when the emulator refuses or cannot be reached.
    pub fn addresses(&self) -> Result<Addresses, ClientError> {
        self.get("/addresses")
    }

    /// Creates a table, and its database with the first; fine if the same one exists.
    pub fn create_table(&self, table: &TableSpec) -> Result<(), ClientError> {
        self.post::<Value>("/tables", table).map(drop)
    }

    /// Drops a table and its rows.
    pub fn drop_table(&self, db: &str, table: &str) -> Result<(), ClientError> {
        let path = format!("/tables/{db}/{table}");
        self.decode(&format!("DELETE {path}"), self.agent.delete(self.url(&path)).call()).map(|_: Value| ())
    }

    /// All tables.
    pub fn tables(&self) -> Result<Vec<TableSpec>, ClientError> {
        self.get("/tables")
    }

    /// The visible rows as sent, in commit order, as a stream of lines. The stream ends with an error if rows are missing.
    pub fn row_stream(&self, db: &str, table: &str) -> Result<impl BufRead + use<>, ClientError> {
        self.stream(&format!("/tables/{db}/{table}/rows"))
    }

    /// The visible rows as sent, in commit order, all in memory; a line feed inside of a row is kept.
    pub fn rows(&self, db: &str, table: &str) -> Result<Vec<String>, ClientError> {
        let path = format!("/tables/{db}/{table}/rows?as=json");
        let call = format!("GET {path}");
        let mut rows = Vec::new();
        for line in self.stream(&path)?.lines() {
            let broken = |source| ClientError::Answer { call: call.clone(), source };
            rows.push(serde_json::from_str(&line.map_err(broken)?).map_err(|error| broken(error.into()))?);
        }
        Ok(rows)
    }

    /// What is visible in a table, and its transactions per state.
    pub fn table_counts(&self, db: &str, table: &str) -> Result<TableCounts, ClientError> {
        self.get(&format!("/tables/{db}/{table}/counts"))
    }

    /// Remembered transactions per state; every state is present.
    pub fn counts(&self, query: &CountsQuery) -> Result<StateCounts, ClientError> {
        let parameters = [("db", query.db.as_deref()), ("table", query.table.as_deref())];
        self.get(&with_query("/counts", &parameters))
    }

    /// Remembered transactions, by id.
    pub fn transactions(&self, query: &TransactionQuery) -> Result<Vec<Transaction>, ClientError> {
        let parameters = [
            ("db", query.db.as_deref()),
            ("table", query.table.as_deref()),
            ("state", query.state.map(TransactionState::name)),
            ("label_prefix", query.label_prefix.as_deref()),
        ];
        self.get(&with_query("/transactions", &parameters))
    }

    /// Arms a fault, or with a count of 0 removes it.
    pub fn arm(&self, fault: &Fault) -> Result<(), ClientError> {
        self.post::<Value>("/faults", fault).map(drop)
    }

    /// What is armed, with the counts that are left.
    pub fn faults(&self) -> Result<Vec<Fault>, ClientError> {
        self.get("/faults")
    }

    /// Removes all faults. Held requests stay held.
    pub fn clear_faults(&self) -> Result<(), ClientError> {
        self.decode("DELETE /faults", self.agent.delete(self.url("/faults")).call()).map(|_: Value| ())
    }

    /// Requests that hold faults keep back now.
    pub fn held(&self) -> Result<Vec<HeldRequest>, ClientError> {
        self.get("/held")
    }

    /// Lets one held request go on, or all; returns how many.
    pub fn release(&self, id: Option<u64>) -> Result<u64, ClientError> {
        let id = id.map(|id| id.to_string());
        let answer: Value = self.post(&with_query("/held/release", &[("id", id.as_deref())]), &json!({}))?;
        Ok(answer.get("released").and_then(Value::as_u64).unwrap_or_default())
    }

    /// Moves the emulated clock forward; it never goes back. Returns the new time, milliseconds since 1970.
    pub fn advance_clock(&self, by: Duration) -> Result<u64, ClientError> {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.post("/clock", &json!({ "advance_ms": by_ms })).map(|clock: ClockNow| clock.now_ms)
    }

    /// The emulated time, milliseconds since 1970.
    pub fn now_ms(&self) -> Result<u64, ClientError> {
        self.get("/clock").map(|clock: ClockNow| clock.now_ms)
    }

    /// The current settings.
    pub fn settings(&self) -> Result<Settings, ClientError> {
        self.get("/settings")
    }

    /// Changes the settings named in a JSON object, such as `json!({ "publish_delay_ms": 500 })`.
    pub fn change_settings(&self, change: &Value) -> Result<Settings, ClientError> {
        self.post("/settings", change)
    }

    /// Adds or replaces a user.
    pub fn add_user(&self, user: &User) -> Result<(), ClientError> {
        self.post::<Value>("/users", user).map(drop)
    }

    /// What went over the wire since the emulator started.
    pub fn traffic(&self) -> Result<Traffic, ClientError> {
        self.get("/traffic")
    }

    /// Waits until a count of [`Traffic`], by the name of its field, is at least a number. Refused (408) when that takes
    /// longer than `timeout`.
    pub fn wait_for(&self, counter: &str, at_least: u64, timeout: Duration) -> Result<Traffic, ClientError> {
        let path = format!("/wait?counter={counter}&at_least={at_least}&timeout_ms={}", timeout.as_millis());
        let request = self.agent.get(self.url(&path));
        let request = request.config().timeout_recv_response(Some(timeout + ANSWER_TIMEOUT)).build();
        self.decode(&format!("GET {path}"), request.call())
    }

    /// Restarts the FE: PREPARE transactions are lost, PRECOMMITTED ones kept.
    pub fn restart_fe(&self) -> Result<(), ClientError> {
        self.post::<Value>("/restart-fe", &json!({})).map(drop)
    }

    /// Restarts a BE: its PREPARE transactions are aborted.
    pub fn restart_be(&self, number: usize) -> Result<(), ClientError> {
        self.post::<Value>(&format!("/restart-be/{number}"), &json!({})).map(drop)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.control)
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.decode(&format!("GET {path}"), self.agent.get(self.url(path)).call())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        let call = format!("POST {path}");
        let body = serde_json::to_vec(body).map_err(|error| ClientError::Answer { call: call.clone(), source: error.into() })?;
        self.decode(&call, self.agent.post(self.url(path)).send(body.as_slice()))
    }

    fn stream(&self, path: &str) -> Result<BufReader<impl Read + use<>>, ClientError> {
        let call = format!("GET {path}");
        let response = check(&call, self.agent.get(self.url(path)).call())?;
        Ok(BufReader::new(response.into_body().into_reader()))
    }

    fn decode<T: DeserializeOwned>(
        &self,
        call: &str,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, ClientError> {
        let reader = BufReader::new(check(call, response)?.into_body().into_reader());
        let broken = |error: serde_json::Error| ClientError::Answer { call: call.to_owned(), source: error.into() };
        serde_json::from_reader(reader).map_err(broken)
    }
}

fn check(
    call: &str,
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<ureq::http::Response<ureq::Body>, ClientError> {
    let unreachable = |source| ClientError::Unreachable { call: call.to_owned(), source: Box::new(source) };
    let mut response = response.map_err(unreachable)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.body_mut().read_to_string().unwrap_or_default();
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    let error = answer.get("error").and_then(Value::as_str).unwrap_or(&text).to_owned();
    Err(ClientError::Refused { call: call.to_owned(), status: status.as_u16(), error })
}

/// Adds the parameters that have a value. Labels and names need no encoding but for what is encoded here.
fn with_query(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let encode = |byte: u8| if safe(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let given = parameters.iter().filter_map(|(name, value)| value.map(|value| (name, value)));
    let pairs: Vec<String> = given.map(|(name, value)| format!("{name}={}", value.bytes().map(encode).collect::<String>())).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}
