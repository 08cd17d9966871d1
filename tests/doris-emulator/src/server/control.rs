//! The control API: tables, faults, clock, settings, and read-only views for tests. JSON in and out.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited, channel::Channel};
use hyper::body::{Frame, Incoming};
use hyper::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::body::{Answer, Body, answer as http_answer};
use super::listen::Head;
use super::state::State;
use crate::faults::{Fault, FaultName};
use crate::options::User;
use crate::rows::{RowsAs, View};
use crate::transactions::Refusal;
use crate::types::{KeyType, TableSpec, Traffic, Transaction};

/// Longest body of a control request, bytes.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Longest wait for a count, milliseconds.
const WAIT_MS_MAX: u64 = 600_000;
/// Rows are sent in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;

/// A request that cannot be carried out: the status and a sentence for whoever wrote the test.
struct Refused(StatusCode, String);

type Outcome = Result<Response<Body>, Refused>;

/// Answers one control request.
pub(crate) async fn answer(state: &Arc<State>, head: &Head, body: Incoming) -> Answer {
    let outcome = respond(state, head, body).await;
    Ok(outcome.unwrap_or_else(|Refused(status, error)| http_answer(status, "application/json", json!({ "error": error }).to_string())))
}

async fn respond(state: &Arc<State>, head: &Head, body: Incoming) -> Outcome {
    // Read even where it is not looked at: an unread body would cost the client its connection.
    let body = Limited::new(body, REQUEST_BYTES_MAX).collect().await.map_err(bad)?.to_bytes();
    route(state, head, body).await
}

async fn route(state: &Arc<State>, head: &Head, body: Bytes) -> Outcome {
    let path = head.path();
    match (&head.method, path.as_slice()) {
        (&Method::GET, ["addresses"]) => ok(&state.addresses()),
        (&Method::GET, ["tables"]) => ok(&state.decide(|manager, _| manager.tables().iter().map(|it| (**it).clone()).collect::<Vec<_>>())),
        (&Method::POST, ["tables"]) => create_table(state, parse(&body)?),
        (&Method::DELETE, ["tables", db, table]) => drop_table(state, db, table),
        (&Method::GET, ["tables", db, table, "rows"]) => rows(state, head, db, table),
        (&Method::GET, ["tables", db, table, "counts"]) => table_counts(state, db, table),
        (&Method::GET, ["counts"]) => {
            let (db, table) = (head.query("db"), head.query("table"));
            ok(&state.decide(|manager, _| manager.counts(db.as_deref(), table.as_deref())))
        }
        (&Method::GET, ["transactions"]) => ok(&transactions(state, head)?),
        (&Method::GET, ["faults"]) => ok(&state.faults.list()),
        (&Method::GET, ["faults", "known"]) => ok(&known_faults()),
        (&Method::POST, ["faults"]) => arm(state, parse(&body)?),
        (&Method::DELETE, ["faults"]) => {
            state.faults.clear();
            ok(&json!({}))
        }
        (&Method::GET, ["held"]) => ok(&state.holds.list()),
        (&Method::POST, ["held", "release"]) => {
            let id = head.query("id").map(|id| number(&id, "id")).transpose()?;
            ok(&json!({ "released": state.holds.release(id) }))
        }
        (&Method::GET, ["clock"]) => clock(state),
        (&Method::POST, ["clock"]) => advance(state, &parse(&body)?),
        (&Method::GET, ["settings"]) => ok(&state.settings()),
        (&Method::POST, ["settings"]) => change_settings(state, parse(&body)?),
        (&Method::POST, ["users"]) => add_user(state, parse(&body)?),
        (&Method::GET, ["traffic"]) => ok(&*state.traffic().borrow()),
        (&Method::GET, ["wait"]) => wait(state, head).await,
        (&Method::POST, ["restart-fe"]) => {
            state.decide(|manager, at| manager.restart_fe(at));
            ok(&json!({}))
        }
        (&Method::POST, ["restart-be", be]) => {
            let be = number(be, "the number of the BE")?;
            state.decide(|manager, at| manager.restart_be(usize::try_from(be).unwrap_or(usize::MAX), at));
            ok(&json!({}))
        }
        _ => Err(Refused(StatusCode::NOT_FOUND, format!("there is no {} {}", head.method, head.uri.path()))),
    }
}

fn ok(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string(value).map_err(|error| Refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(http_answer(StatusCode::OK, "application/json", text))
}

fn bad(error: impl ToString) -> Refused {
    Refused(StatusCode::BAD_REQUEST, error.to_string())
}

fn number(text: &str, what: &str) -> Result<u64, Refused> {
    text.parse().map_err(|_| bad(format!("{what} must be a number and is {text:?}")))
}

fn failed(state: &State, refusal: &Refusal) -> Refused {
    Refused(StatusCode::INTERNAL_SERVER_ERROR, refusal.text(state.settings().dialect))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(bad)
}

fn no_table(db: &str, table: &str) -> Refused {
    Refused(StatusCode::NOT_FOUND, format!("there is no table {db}.{table}"))
}

fn create_table(state: &State, spec: TableSpec) -> Outcome {
    let unknown = spec.keys.iter().find(|key| !spec.columns.iter().any(|column| column.name == **key));
    if let Some(key) = unknown {
        return Err(bad(format!("the key column {key} is not among the columns")));
    }
    if spec.key_type == KeyType::Unique && spec.keys.is_empty() {
        return Err(bad("a UNIQUE table needs key columns"));
    }
    if spec.db.is_empty() || spec.table.is_empty() {
        return Err(bad("a table needs a database and a name"));
    }
    let name = format!("{}.{}", spec.db, spec.table);
    match state.decide(|manager, _| manager.create_table(spec)) {
        Ok(true) => ok(&json!({})),
        Ok(false) => Err(Refused(StatusCode::CONFLICT, format!("there is another table {name} already"))),
        Err(refusal) => Err(failed(state, &refusal)),
    }
}

fn drop_table(state: &State, db: &str, table: &str) -> Outcome {
    match state.decide(|manager, _| manager.drop_table(db, table)) {
        Ok(true) => ok(&json!({})),
        Ok(false) => Err(no_table(db, table)),
        Err(refusal) => Err(failed(state, &refusal)),
    }
}

fn table_counts(state: &State, db: &str, table: &str) -> Outcome {
    let counts = state.decide(|manager, at| manager.table_counts(db, table, at));
    ok(&counts.ok_or_else(|| no_table(db, table))?)
}

/// Streams the rows that are visible at this moment.
fn rows(state: &Arc<State>, head: &Head, db: &str, table: &str) -> Outcome {
    if state.store.discards() {
        return Err(Refused(StatusCode::CONFLICT, "rows are discarded; only counts and hashes are kept".to_owned()));
    }
    let rows_as = match head.query("as").as_deref() {
        None | Some("lines") => RowsAs::Lines,
        Some("json") => RowsAs::Json,
        Some(other) => return Err(bad(format!("rows can be had as lines or json, not as {other:?}"))),
    };
    let visible = state.decide(|manager, at| manager.visible(db, table, at));
    let (spec, loads) = visible.ok_or_else(|| no_table(db, table))?;
    let view = View { store: state.store.clone(), spec, loads, rows_as };
    let (mut sender, body) = Channel::<Bytes, io::Error>::new(4);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut piece = Vec::with_capacity(PIECE_BYTES + 1024);
        let mut send = |piece: &mut Vec<u8>| {
            let bytes = Bytes::from(std::mem::take(piece));
            runtime.block_on(sender.send(Frame::data(bytes))).map_err(|_| io::ErrorKind::BrokenPipe.into())
        };
        let written = view.write(&mut |line| {
            piece.extend_from_slice(line);
            if piece.len() < PIECE_BYTES { Ok(()) } else { send(&mut piece) }
        });
        let written = written.and_then(|()| if piece.is_empty() { Ok(()) } else { send(&mut piece) });
        if let Err(error) = written {
            // A broken end tells the reader that rows are missing.
            sender.abort(error);
        }
    });
    let mut response = Response::new(body.boxed());
    *response.status_mut() = StatusCode::OK;
    Ok(response)
}

fn transactions(state: &State, head: &Head) -> Result<Vec<Transaction>, Refused> {
    let mut found = state.decide(|manager, _| manager.transactions());
    if let Some(db) = head.query("db") {
        found.retain(|it| it.db == db);
    }
    if let Some(table) = head.query("table") {
        found.retain(|it| it.table == table);
    }
    if let Some(prefix) = head.query("label_prefix") {
        found.retain(|it| it.label.starts_with(&prefix));
    }
    if let Some(name) = head.query("state") {
        let known = crate::types::TransactionState::ALL.iter().find(|state| state.name() == name);
        let known = known.ok_or_else(|| bad(format!("there is no transaction state {name:?}")))?;
        found.retain(|it| it.state == *known);
    }
    Ok(found)
}

fn known_faults() -> Vec<Value> {
    FaultName::ALL.iter().map(|fault| json!({ "name": fault.name(), "effect": fault.effect().trim() })).collect()
}

fn arm(state: &State, value: Value) -> Outcome {
    // An unknown name is answered with all known ones.
    let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
    name.parse::<FaultName>().map_err(bad)?;
    let fault: Fault = serde_json::from_value(value).map_err(bad)?;
    state.faults.arm(fault);
    ok(&json!({}))
}

fn clock(state: &State) -> Outcome {
    ok(&json!({ "now_ms": state.clock.now_ms(), "offset_ms": state.clock.offset_ms() }))
}

fn advance(state: &State, value: &Value) -> Outcome {
    let by_ms = value.get("advance_ms").and_then(Value::as_u64);
    let by_ms = by_ms.ok_or_else(|| bad("the clock takes {\"advance_ms\": N}, N not negative"))?;
    state.advance_clock(by_ms).map_err(|refusal| failed(state, &refusal))?;
    clock(state)
}

/// Changes the settings that are named and leaves the others.
fn change_settings(state: &State, change: Value) -> Outcome {
    let Value::Object(change) = change else { return Err(bad("settings are changed by a JSON object")) };
    let mut settings = serde_json::to_value(state.settings()).map_err(bad)?;
    if let Value::Object(settings) = &mut settings {
        settings.extend(change);
    }
    state.set_settings(serde_json::from_value(settings).map_err(bad)?);
    ok(&state.settings())
}

fn add_user(state: &State, user: User) -> Outcome {
    let mut users = state.users.write().unwrap_or_else(PoisonError::into_inner);
    users.retain(|old| old.name != user.name);
    users.push(user);
    ok(&json!({}))
}

/// Answers once a count of the traffic is at least a number, or the time is over.
async fn wait(state: &State, head: &Head) -> Outcome {
    let name = head.query("counter").unwrap_or_default();
    let at_least = number(&head.query("at_least").unwrap_or_default(), "at_least")?;
    let timeout_ms = number(&head.query("timeout_ms").unwrap_or_else(|| "10000".to_owned()), "timeout_ms")?;
    if count(&Traffic::default(), &name).is_none() {
        return Err(bad(format!("there is no counter {name:?}; see GET /traffic for their names")));
    }
    let mut traffic = state.traffic();
    let reached = traffic.wait_for(|traffic| count(traffic, &name).is_some_and(|count| count >= at_least));
    let reached = tokio::time::timeout(Duration::from_millis(timeout_ms.min(WAIT_MS_MAX)), reached).await;
    match reached {
        Ok(Ok(traffic)) => ok(&*traffic),
        _ => Err(Refused(StatusCode::REQUEST_TIMEOUT, format!("the counter {name} did not reach {at_least} within {timeout_ms} ms"))),
    }
}

fn count(traffic: &Traffic, name: &str) -> Option<u64> {
    serde_json::to_value(traffic).ok()?.get(name)?.as_u64()
}
