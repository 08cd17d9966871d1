//! The BE's routes.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, StatusCode};

use super::body::{Answer, answer};
use super::listen::Head;
use super::load;
use super::state::State;
use super::two_phase;

/// Answers one request to the BE with this number.
pub(crate) async fn answer_request(state: &Arc<State>, number: usize, head: &Head, body: Incoming) -> Answer {
    let path = head.path();
    match (&head.method, path.as_slice()) {
        (&Method::PUT, ["api", db, table, "_stream_load"]) => load::stream_load(state, number, head, (db, table), body).await,
        (&Method::PUT, ["api", db, "_stream_load_2pc"] | ["api", db, _, "_stream_load_2pc"]) => two_phase::answer(state, head, db).await,
        (&Method::GET | &Method::HEAD, ["api", "_load_error_log"]) => Ok(error_log(state, head)),
        _ => Ok(answer(StatusCode::NOT_FOUND, "text/html", "Not Found")),
    }
}

/// The log behind `ErrorURL`.
fn error_log(state: &State, head: &Head) -> hyper::Response<super::body::Body> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let file = head.query("file").unwrap_or_default();
    let name = file.strip_prefix("__shard_0/").filter(|name| !name.contains(['/', '\\']) && !name.starts_with('.'));
    match name.map(|name| std::fs::read(state.store.error_log(name))) {
        Some(Ok(log)) => answer(StatusCode::OK, PLAIN, log),
        _ => answer(StatusCode::OK, PLAIN, format!("file not exist: {file}")),
    }
}
