//! The FE's routes: it redirects loads and two-phase operations to a BE, and answers questions about labels.
//!
//! Order of checks and words: Apache Doris at commit 82bd980a6a, `LoadAction.java`, `RestBaseController.java`,
//! `GetStreamLoadState.java`, `CancelLoadAction.java`.

use std::time::Duration;

use hyper::header::{AUTHORIZATION, LOCATION};
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::auth::Credentials;
use super::body::{Answer, Body, Dropped, answer as http_answer};
use super::listen::Head;
use super::reply::{entity, rest_failure};
use super::request::GROUP_COMMIT_MODES;
use super::state::{State, dead_address};
use super::tap::Shared;
use crate::faults::FaultName;
use crate::transactions::{Refusal, Which};
use crate::types::{KeyType, TransactionState};

const JSON: &str = "application/json;charset=UTF-8";

/// Answers one request to an FE. A body is never read.
pub(crate) async fn answer(state: &State, socket: &Shared, head: &Head, follower: bool) -> Answer {
    state.count(|traffic| traffic.fe_requests += 1);
    let label = head.header("label").map(str::to_owned).or_else(|| head.query("label")).unwrap_or_default();
    if let Some(fault) = state.fires(FaultName::FeDelay, &label) {
        tokio::time::sleep(fault.waits()).await;
    }
    if state.fires(FaultName::FeDrop, &label).is_some() {
        return Err(Dropped);
    }
    if state.fires(FaultName::FeUnavailable, &label).is_some() {
        return Ok(http_answer(StatusCode::SERVICE_UNAVAILABLE, JSON, entity("Service Unavailable", 503, Value::Null)));
    }
    look_for_early_body(state, socket, head).await?;
    let path = head.path();
    match (&head.method, path.as_slice()) {
        (&Method::PUT, ["api", db, table, "_stream_load"]) => Ok(load(state, head, db, table, &label)),
        (&Method::PUT, ["api", _, "_stream_load_2pc"] | ["api", _, _, "_stream_load_2pc"]) => Ok(two_phase(state, head, &label)),
        (&Method::GET, ["api", db, "get_load_state"]) => {
            if state.fires(FaultName::StateDrop, &label).is_some() {
                return Err(Dropped);
            }
            Ok(master_only(state, head, follower).unwrap_or_else(|| load_state(state, head, db)))
        }
        (&Method::POST, ["api", db, "_cancel"]) => Ok(master_only(state, head, follower).unwrap_or_else(|| cancel(state, head, db))),
        (&Method::GET, ["api", "backends"]) => Ok(authorized(state, head).unwrap_or_else(|| backends(state))),
        (&Method::GET, ["api", "health"]) => Ok(health(state)),
        (&Method::GET, ["api", db, table, "_schema"]) => Ok(authorized(state, head).unwrap_or_else(|| schema(state, db, table))),
        _ => Ok(http_answer(StatusCode::NOT_FOUND, JSON, entity("Not Found", 404, Value::Null))),
    }
}

/// Body bytes must not come to an FE. Jetty 12 closes the connection on them instead of answering.
async fn look_for_early_body(state: &State, socket: &Shared, head: &Head) -> Result<(), Dropped> {
    if !head.framing.has_body() {
        return Ok(());
    }
    let settings = state.settings();
    let window = if settings.fe_early_close { settings.fe_early_window_ms } else { 0 };
    if !socket.early_body(Duration::from_millis(window)).await {
        return Ok(());
    }
    if socket.note_early_body() {
        state.count(|traffic| traffic.fe_bodies += 1);
    }
    if settings.fe_early_close { Err(Dropped) } else { Ok(()) }
}

fn ok(text: String) -> Response<Body> {
    http_answer(StatusCode::OK, JSON, text)
}

/// What an FE says to a request without, or with wrong, credentials: HTTP 200 and code 401.
fn authorized(state: &State, head: &Head) -> Option<Response<Body>> {
    let data = match Credentials::of(&head.headers) {
        None => "Need auth information.".to_owned(),
        Some(credentials) => {
            let refusal = credentials.check(state, head.peer, false).err()?;
            refusal.text(state.settings().dialect)
        }
    };
    Some(ok(entity("Unauthorized", 401, data.into())))
}

fn load(state: &State, head: &Head, db: &str, table: &str, label: &str) -> Response<Body> {
    let modes = ["async_mode", "sync_mode", "off_mode"];
    if head.header("group_commit").is_some_and(|mode| !modes.iter().any(|known| mode.eq_ignore_ascii_case(known))) {
        return ok(rest_failure(GROUP_COMMIT_MODES));
    }
    if let Some(refused) = authorized(state, head) {
        return refused;
    }
    if !head.headers.contains_key("expect") {
        return ok(rest_failure("There is no 100-continue header"));
    }
    let missing = match (db, table) {
        ("", _) => Some("No database selected."),
        (_, "") => Some("No table selected."),
        _ => None,
    };
    if let Some(missing) = missing {
        return ok(rest_failure(missing));
    }
    let credentials = Credentials::of(&head.headers);
    if let Some(Err(refusal)) = credentials.map(|credentials| credentials.check(state, head.peer, true)) {
        return ok(rest_failure(&refusal.text(state.settings().dialect)));
    }
    redirect_to_be(state, head, label)
}

fn two_phase(state: &State, head: &Head, label: &str) -> Response<Body> {
    if let Some(refused) = authorized(state, head) {
        return refused;
    }
    if head.header("txn_id").is_none() && head.header("label").is_none() {
        return ok(rest_failure("No transaction id or label selected."));
    }
    if head.header("txn_operation").is_none() {
        return ok(rest_failure("No transaction operation('commit' or 'abort') selected."));
    }
    redirect_to_be(state, head, label)
}

fn redirect_to_be(state: &State, head: &Head, label: &str) -> Response<Body> {
    let target = if state.fires(FaultName::FeRedirectDead, label).is_some() {
        dead_address()
    } else if let Some(fault) = state.fires(FaultName::FeRedirectTo, label) {
        match fault.param.parse() {
            Ok(number) => state.be_address(number),
            Err(_) => fault.param,
        }
    } else {
        state.redirect_target()
    };
    state.count(|traffic| traffic.fe_redirects += 1);
    redirect(head, &target)
}

/// 307 with the credentials in the address and, as Java's URI prints an empty query, a `?` at its end.
fn redirect(head: &Head, target: &str) -> Response<Body> {
    let user_info = match (head.headers.contains_key(AUTHORIZATION), Credentials::of(&head.headers)) {
        (true, Some(credentials)) => {
            format!("{}:{}@", user_info(&credentials.user), user_info(&credentials.password))
        }
        _ => String::new(),
    };
    let location = format!("http://{user_info}{target}{}?{}", head.uri.path(), head.uri.query().unwrap_or_default());
    let mut response = http_answer(StatusCode::TEMPORARY_REDIRECT, "text/html;charset=utf-8", "");
    if let Ok(value) = location.parse() {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

/// Percent-encodes what Java's URI class does not allow in user info.
fn user_info(text: &str) -> String {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'();:&=+$,".contains(&byte);
    let encode = |byte: u8| if legal(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// A follower sends such a request on to the master.
fn master_only(state: &State, head: &Head, follower: bool) -> Option<Response<Body>> {
    if let Some(refused) = authorized(state, head) {
        return Some(refused);
    }
    let master = state.addresses().and_then(|addresses| addresses.fe.first()).filter(|_| follower)?;
    Some(redirect(head, &master.to_string()))
}

fn common_error(state: &State, refusal: &Refusal) -> Response<Body> {
    ok(entity("Error", 1, refusal.text(state.settings().dialect).into()))
}

fn load_state(state: &State, head: &Head, db: &str) -> Response<Body> {
    let Some(label) = head.query("label") else {
        return ok(entity("Error", 1, "No label selected.".into()));
    };
    match state.decide(|manager, _| manager.label_state(db, &label)) {
        Ok(found) => ok(entity("success", 0, found.map_or("UNKNOWN", TransactionState::name).into())),
        Err(refusal) => common_error(state, &refusal),
    }
}

fn cancel(state: &State, head: &Head, db: &str) -> Response<Body> {
    let label = head.query("label").unwrap_or_default();
    let which = Which { id: None, label: Some(label.clone()) };
    let result = state.decide(|manager, at| manager.abort(db, &which, Ok(()), "user cancel", at));
    let error = match result {
        Ok(()) => return ok(entity("success", 0, Value::Null)),
        Err(Refusal::LabelUnknown { .. }) => format!("txn with label {label} does not exist"),
        Err(Refusal::LabelNotRunning { .. }) => "transaction not found".to_owned(),
        Err(other) => return common_error(state, &other),
    };
    ok(entity("Error", 1, error.into()))
}

fn backends(state: &State) -> Response<Body> {
    let backends = state.addresses().map_or(&[][..], |addresses| addresses.be.as_slice());
    let backend = |address: &std::net::SocketAddr| json!({ "ip": address.ip().to_string(), "http_port": address.port(), "is_alive": true });
    let backends: Vec<Value> = backends.iter().map(backend).collect();
    ok(entity("success", 0, json!({ "backends": backends })))
}

fn health(state: &State) -> Response<Body> {
    let count = state.addresses().map_or(0, |addresses| addresses.be.len());
    ok(entity("success", 0, json!({ "online_backend_num": count, "total_backend_num": count })))
}

fn schema(state: &State, db: &str, table: &str) -> Response<Body> {
    let tables = state.decide(|manager, _| manager.tables());
    let Some(spec) = tables.into_iter().find(|spec| spec.db == db && spec.table == table) else {
        return common_error(state, &Refusal::UnknownTable { table: table.to_owned() });
    };
    let kind = |column: &crate::types::Column| format!("{:?}", column.kind).to_uppercase();
    let property =
        |column: &crate::types::Column| json!({ "name": column.name, "type": kind(column), "comment": "", "aggregation_type": "" });
    let properties: Vec<Value> = spec.columns.iter().map(property).collect();
    let keys = match spec.key_type {
        KeyType::Duplicate => "DUP_KEYS",
        KeyType::Unique => "UNIQUE_KEYS",
    };
    ok(entity("success", 0, json!({ "properties": properties, "keysType": keys, "status": 200 })))
}
