//! What Doris's words mean. Tables, no I/O.
//!
//! The texts changed between versions (`TStatus:` in front since 2.1, C++ stacks in 2.0, `Internal error` as a status in 1.x, other tails in
//! cloud mode), so phrases are looked for anywhere in a message, the first one in it counts, and only the literal `Success` is success.
//! Sources: FE `DatabaseTransactionMgr.java`, `FrontendServiceImpl.java`, `CloudGlobalTransactionMgr.java`; BE `stream_load_2pc.cpp`,
//! `thrift_rpc_helper.cpp`; cloud `meta_service_txn.cpp`.

use crate::bindings::weir::sink::types::Error;
use crate::error::{ErrorExt, bad_data, conflict, refused, unavailable, words};
use crate::reply::{LoadReply, Reply};

/// Answer to "commit this transaction".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommitAnswer {
    Committed,
    /// Committed before. Also the answer to a first request: a back end repeats its call to the front end when the reply is late.
    AlreadyCommitted,
    /// Aborted by somebody or by time; final.
    Aborted,
    /// Not remembered under this id: never there, or finished and forgotten.
    Missing,
    /// Not now, or not known: ask again.
    Again(String),
    /// A person must change something.
    Refused(String),
}

/// Answer to "abort whatever has this label".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AbortAnswer {
    /// Done, or nothing that runs has the label: the label's state tells which. Cloud mode says so whatever happened.
    CheckState,
    /// Aborted before, or never there.
    Gone,
    /// Committed: the decision to abort is wrong.
    Committed(String),
    Again(String),
    Refused(String),
}

/// A phrase's meaning in a two-phase commit reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Finished,
    Aborted,
    NotPrepared,
    NothingRuns,
    NoSuchLabel,
    NoSuchTransaction,
    Denied,
    Again,
}

/// Lower case. The same place in a message can match two; then the one further up counts.
const PHRASES: &[(&str, Meaning)] = &[
    ("is already committed", Meaning::Finished),
    ("is already visible", Meaning::Finished),
    ("is already aborted", Meaning::Aborted),
    ("is prepare, not pre-committed", Meaning::NotPrepared),
    ("running transaction not found", Meaning::NothingRuns),
    ("transaction not found, label=", Meaning::NoSuchLabel),
    ("transaction not found", Meaning::NoSuchTransaction),
    ("access denied", Meaning::Denied),
    ("unauthorized", Meaning::Denied),
    ("no valid basic authorization", Meaning::Denied),
    ("need auth information", Meaning::Denied),
    ("unknown database", Meaning::Denied),
    ("unknown table", Meaning::Denied),
    ("check schema compatibility failed", Meaning::Denied),
    ("illegal input", Meaning::Denied),
    ("transaction operation", Meaning::Denied),
    ("convert txn_id", Meaning::Denied),
    ("lock timeout", Meaning::Again),
    ("not master", Meaning::Again),
    ("failed to call frontend service", Meaning::Again),
];

fn meaning(msg: &str) -> Option<Meaning> {
    let lower = msg.to_ascii_lowercase();
    let missing = missing_transaction(&lower).map(|at| (at, Meaning::NoSuchTransaction));
    let phrases = PHRASES.iter().filter_map(|(phrase, meaning)| lower.find(phrase).map(|at| (at, *meaning)));
    // `min_by_key` keeps the first of equals, which is the table's order.
    phrases.chain(missing).min_by_key(|(at, _)| *at).map(|(_, meaning)| meaning)
}

/// Where `transaction [N] not found` stands.
fn missing_transaction(lower: &str) -> Option<usize> {
    lower.match_indices("transaction [").find_map(|(at, opening)| {
        let (id, rest) = lower.get(at + opening.len()..)?.split_once(']')?;
        let number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        (number && rest.starts_with(" not found")).then_some(at)
    })
}

/// Reads the answer to a commit by transaction id.
pub(crate) fn commit_answer(reply: &Reply) -> CommitAnswer {
    let words = reply.words();
    let Some(msg) = short(reply) else { return if is_refusal(reply) { CommitAnswer::Refused(words) } else { CommitAnswer::Again(words) } };
    if is_success(reply) {
        return CommitAnswer::Committed;
    }
    match meaning(msg) {
        Some(Meaning::Finished) => CommitAnswer::AlreadyCommitted,
        Some(Meaning::Aborted) => CommitAnswer::Aborted,
        Some(Meaning::NoSuchTransaction | Meaning::NoSuchLabel) => CommitAnswer::Missing,
        Some(Meaning::Denied) => CommitAnswer::Refused(words),
        Some(Meaning::NotPrepared | Meaning::NothingRuns | Meaning::Again) | None => CommitAnswer::Again(words),
    }
}

/// Reads the answer to an abort by label.
pub(crate) fn abort_answer(reply: &Reply) -> AbortAnswer {
    let words = reply.words();
    let Some(msg) = short(reply) else { return if is_refusal(reply) { AbortAnswer::Refused(words) } else { AbortAnswer::Again(words) } };
    if is_success(reply) {
        return AbortAnswer::CheckState;
    }
    match meaning(msg) {
        Some(Meaning::Finished) => AbortAnswer::Committed(words),
        Some(Meaning::Aborted | Meaning::NoSuchLabel | Meaning::NoSuchTransaction) => AbortAnswer::Gone,
        Some(Meaning::NothingRuns) => AbortAnswer::CheckState,
        Some(Meaning::Denied) => AbortAnswer::Refused(words),
        Some(Meaning::NotPrepared | Meaning::Again) | None => AbortAnswer::Again(words),
    }
}

fn short(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Short { msg, .. } => Some(msg),
        Reply::Load(_) | Reply::Entity { .. } | Reply::Other { .. } => None,
    }
}

fn is_success(reply: &Reply) -> bool {
    matches!(reply, Reply::Short { status, .. } if status == "Success")
}

/// Whether a reply that is not in the expected dialect is one that only a person can change.
fn is_refusal(reply: &Reply) -> bool {
    match reply {
        Reply::Load(_) | Reply::Short { .. } => false,
        Reply::Entity { code, .. } => matches!(code, 401 | 403 | 404),
        Reply::Other { http_status, .. } => (400..500).contains(http_status) && !matches!(http_status, 408 | 425 | 429),
    }
}

/// The error that a reply which cannot be success in its place stands for: a front end's refusal, a proxy's page.
pub(crate) fn refusal(reply: &Reply) -> Error {
    let words = reply.words();
    let code = match reply {
        Reply::Load(load) => load.status.clone(),
        Reply::Short { status, .. } => status.clone(),
        Reply::Entity { code, .. } => code.to_string(),
        Reply::Other { http_status, .. } => http_status.to_string(),
    };
    // A front end that cannot find a back end says so in the same shape as one that refuses; the words tell.
    let text = words.to_ascii_lowercase();
    let later = LATER.iter().any(|phrase| text.contains(phrase));
    let person = is_refusal(reply) || matches!(reply, Reply::Short { .. }) || PERSON.iter().any(|phrase| text.contains(phrase));
    let error = if person && !later { refused(words) } else { unavailable(words) };
    error.with_code(code)
}

/// Phrases of conditions that pass by themselves, lower case.
const LATER: &[&str] = &[
    "current running txns on db",
    "current committed txns on table",
    "lock timeout",
    "not master",
    "failed to call frontend service",
    "thrift_rpc_error",
    "have not get fe master heartbeat",
    "too many versions",
    "e-235",
    "e-240",
    "succ replica num",
    "please try again later",
    "no backend",
    "no available backend",
    "no alive backend",
    "network_error",
    "timeout by txn manager",
    "user abort",
    "user cancel",
    "cancelled",
    "mem_limit_exceeded",
    "mem_alloc_failed",
];

/// Phrases of a load whose records are the fault, lower case.
const DATA: &[&str] = &["data_quality_error", "too many filtered rows", "unqualified data", "parse json data"];

/// Phrases that a person must change something for, lower case.
const PERSON: &[&str] = &[
    "access denied",
    "not_authorized",
    "no valid basic authorization",
    "unknown database",
    "unknown table",
    "unknown column",
    "unknown data format",
    "unsupported for mow table",
    "not_implemented_error",
    "invalid_argument",
    "label format error",
    "invalid timeout",
    "merge type",
    "e-1101",
    "e-217",
    "syntax error",
];

/// The error that a load's reply other than `Success` stands for. `Message` decides, in the order: the data,
/// what passes by itself, a person. Words that no table knows are tried again: a stop that nobody needed is worse than a loud repeat.
pub(crate) fn load_failure(load: &LoadReply) -> Error {
    let said = words(&format!("{} ({})", load.message, load.status));
    let error = match load.status.as_str() {
        "Label Already Exists" => conflict(format!(
            "Doris knows the label {} already{}: {said}",
            load.label,
            if load.existing_job_status.is_empty() { String::new() } else { format!(", and it is {}", load.existing_job_status) }
        )),
        "Publish Timeout" => conflict(format!("Doris committed {} without being asked: {said}", load.label)),
        _ => {
            let text = said.to_ascii_lowercase();
            let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
            if has(DATA) {
                bad_data(said)
            } else if has(LATER) {
                unavailable(said)
            } else if has(PERSON) {
                refused(said)
            } else {
                unavailable(said)
            }
        }
    };
    error.with_code(load.status.clone())
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
