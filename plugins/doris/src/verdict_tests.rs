//! Every string of Doris that the sink decides on, in the wordings of its versions.

use super::*;
use crate::bindings::weir::sink::types::ErrorKind;

fn short(status: &str, msg: &str) -> Reply {
    Reply::Short { status: status.into(), msg: msg.into() }
}

/// The prefixes of 2.0 and of 2.1 and later.
const PREFIXES: [&str; 2] = ["errCode = 2, detailMessage = ", "TStatus: errCode = 2, detailMessage = "];
/// What versions say instead of `Success`.
const FAILURES: [&str; 5] = ["ANALYSIS_ERROR", "Fail", "Internal error", "Analysis error", "INTERNAL_ERROR"];

fn in_all_versions(msg: &str) -> impl Iterator<Item = Reply> {
    PREFIXES.iter().flat_map(move |prefix| FAILURES.iter().map(move |status| short(status, &format!("{prefix}{msg}"))))
}

#[test]
fn success_is_the_literal_alone() {
    for msg in
        ["transaction [18036] commit successfully.", "label [L] commit successfully.", "label [L] transaction [7] commit successfully."]
    {
        assert_eq!(commit_answer(&short("Success", msg)), CommitAnswer::Committed);
        for status in ["SUCCESS", "success", "OK", "FAILED", "", "Success "] {
            assert!(matches!(commit_answer(&short(status, msg)), CommitAnswer::Again(_)), "{status}");
        }
    }
}

#[test]
fn commit_of_a_committed_transaction() {
    for msg in [
        "transaction [18036] is already visible, not pre-committed.",
        "transaction [18036] is already committed, not pre-committed.",
        "transaction [18036] is already VISIBLE, not pre-committed.",
        "transaction [18036] is already COMMITTED, not pre-committed.",
    ] {
        for reply in in_all_versions(msg) {
            assert_eq!(commit_answer(&reply), CommitAnswer::AlreadyCommitted, "{reply:?}");
        }
    }
}

#[test]
fn commit_of_an_aborted_transaction() {
    for msg in [
        "transaction [18036] is already aborted. abort reason: User Abort",
        "transaction [18036] is already aborted. abort reason: timeout by txn manager",
        "transaction [18036] is already aborted, db_id=10006",
        "transaction [18036] is already aborted. abort reason: transaction [5] is already visible, not pre-committed.",
        "transaction [18036] is already aborted. abort reason: transaction [5] not found",
    ] {
        for reply in in_all_versions(msg) {
            assert_eq!(commit_answer(&reply), CommitAnswer::Aborted, "{reply:?}");
        }
    }
}

#[test]
fn commit_of_an_unknown_transaction() {
    for msg in
        ["transaction [18036] not found", "transaction [18036] not found.", "transaction not found", "transaction not found, label=L"]
    {
        for reply in in_all_versions(msg) {
            assert_eq!(commit_answer(&reply), CommitAnswer::Missing, "{reply:?}");
        }
    }
}

#[test]
fn commit_that_is_to_be_tried_again() {
    for (status, msg) in [
        (
            "ANALYSIS_ERROR",
            "TStatus: errCode = 2, detailMessage = get tableList write lock timeout, tableList=(Table [id=1, name=t, type=OLAP])",
        ),
        ("NOT_MASTER", "TStatus: FE is not master"),
        ("THRIFT_RPC_ERROR", "failed to call frontend service, FE address=h:9020, reason: THRIFT_EAGAIN (timed out)"),
        ("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = transaction [5] is prepare, not pre-committed."),
        ("ANALYSIS_ERROR", "transaction is prepare, not pre-committed: db_id=1 txn_id5"),
        ("ANALYSIS_ERROR", "something that no version says yet"),
        ("INTERNAL_ERROR", ""),
    ] {
        assert!(matches!(commit_answer(&short(status, msg)), CommitAnswer::Again(_)), "{msg}");
    }
}

#[test]
fn two_phase_calls_that_a_person_must_look_at() {
    for msg in [
        "TStatus: errCode = 2, detailMessage = Access denied for user 'u@10.0.0.1' (using password: YES)",
        "TStatus: errCode = 2, detailMessage = Access denied; you need (at least one of) the (LOAD) privilege(s) for this operation",
        "TStatus: errCode = 2, detailMessage = unknown database, database=x",
        "TStatus: errCode = 7, detailMessage = unknown table t",
        "convert txn_id [abc] failed, reason=stoull",
        "transaction operation should be 'commit' or 'abort'",
        "failed abort txn, with illegal input, db_id=-1 txn_id=-1 label= ",
        "TStatus: errCode = 2, detailMessage = transaction [7] check schema compatibility failed, partial update can't commit with old schema sucessfully .",
    ] {
        assert!(matches!(commit_answer(&short("ANALYSIS_ERROR", msg)), CommitAnswer::Refused(_)), "{msg}");
        assert!(matches!(abort_answer(&short("ANALYSIS_ERROR", msg)), AbortAnswer::Refused(_)), "{msg}");
    }
}

#[test]
fn abort_by_label() {
    assert_eq!(abort_answer(&short("Success", "label [L] abort successfully.")), AbortAnswer::CheckState);
    for reply in in_all_versions("running transaction not found, label=L") {
        assert_eq!(abort_answer(&reply), AbortAnswer::CheckState, "{reply:?}");
    }
    for msg in [
        "transaction not found, label=L",
        "transaction [18037] not found",
        "transaction [18037] is already aborted, abort reason: User Abort",
        "transaction [18037] is already aborted, db_id=10006",
    ] {
        for reply in in_all_versions(msg) {
            assert_eq!(abort_answer(&reply), AbortAnswer::Gone, "{reply:?}");
        }
    }
    for msg in [
        "transaction [18037] is already VISIBLE, could not abort.",
        "transaction [18037] is already COMMITTED, could not abort.",
        "transaction [18037] is already VISIBLE, db_id=10006",
        "transaction [x] is already visible, , could not abort",
    ] {
        for reply in in_all_versions(msg) {
            assert!(matches!(abort_answer(&reply), AbortAnswer::Committed(_)), "{reply:?}");
        }
    }
    for (status, msg) in
        [("NOT_MASTER", "TStatus: FE is not master"), ("THRIFT_RPC_ERROR", "failed to call frontend service, FE address=h:9020, reason: x")]
    {
        assert!(matches!(abort_answer(&short(status, msg)), AbortAnswer::Again(_)), "{msg}");
    }
}

#[test]
fn other_dialects_are_never_success() {
    let load = LoadReply { status: "Success".into(), txn_id: 5, ..LoadReply::default() };
    for (reply, refused) in [
        (short("FAILED", "No transaction id or label selected."), false),
        (Reply::Entity { code: 401, msg: "Unauthorized".into(), data: "Access denied for user".into() }, true),
        (Reply::Entity { code: 0, msg: "success".into(), data: "VISIBLE".into() }, false),
        (Reply::Entity { code: 1, msg: "Success".into(), data: "not master".into() }, false),
        (Reply::Other { http_status: 404, text: "Not Found".into() }, true),
        (Reply::Other { http_status: 503, text: String::new() }, false),
        (Reply::Other { http_status: 200, text: "<html>".into() }, false),
        (Reply::Load(Box::new(load)), false),
    ] {
        let commit = commit_answer(&reply);
        let abort = abort_answer(&reply);
        assert_eq!(matches!(commit, CommitAnswer::Refused(_)), refused, "{reply:?}");
        assert_eq!(matches!(abort, AbortAnswer::Refused(_)), refused, "{reply:?}");
        assert!(matches!(commit, CommitAnswer::Refused(_) | CommitAnswer::Again(_)), "{reply:?}");
        assert!(matches!(abort, AbortAnswer::Refused(_) | AbortAnswer::Again(_)), "{reply:?}");
    }
}

#[test]
fn loads_that_failed() {
    use ErrorKind::{BadData, Conflict, Refused, Unavailable};
    let fail = "Fail";
    for (status, message, kind) in [
        (
            "Label Already Exists",
            "[LABEL_ALREADY_EXISTS]TStatus: errCode = 2, detailMessage = Label [L] has already been used, relate to txn [18036], status [PRECOMMITTED].",
            Conflict,
        ),
        ("Label Already Exists", "errCode = 2, detailMessage = Label [L] has already been used, relate to txn [18036]", Conflict),
        ("Label Already Exists", "Label [L] has already been used, relate to txn [18036], status=[TXN_STATUS_VISIBLE]", Conflict),
        ("Publish Timeout", "[PUBLISH_TIMEOUT]TStatus: transaction commit successfully, BUT data will be visible later", Conflict),
        (fail, "[DATA_QUALITY_ERROR]too many filtered rows", BadData),
        (fail, "too many filtered rows", BadData),
        (fail, "[DATA_QUALITY_ERROR]Encountered unqualified data, stop processing", BadData),
        (
            fail,
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = current running txns on db 10006 is 1000, larger than limit 1000",
            Unavailable,
        ),
        (
            fail,
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = current committed txns on table X is 501, larger than limit 500",
            Unavailable,
        ),
        (
            fail,
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = get tableList write lock timeout, tableList=(Table [id=1])",
            Unavailable,
        ),
        (
            fail,
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Failed to commit txn 7, cause tablet 5 succ replica num 0 < load required replica num 1. table t. Please try again later.",
            Unavailable,
        ),
        (fail, "[E-235]failed to init rowset builder. version count: 2001, exceed limit: 2000", Unavailable),
        (fail, "[E-240]Have not get FE Master heartbeat yet", Unavailable),
        (fail, "[NETWORK_ERROR]receive body don't equal with body bytes, body bytes=4, receive bytes=3", Unavailable),
        (fail, "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = User Abort", Unavailable),
        (fail, "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = timeout by txn manager", Unavailable),
        (fail, "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = transaction not found", Unavailable),
        (fail, "something that no version says yet", Unavailable),
        (fail, "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Access denied for user 'u@ip' (using password: YES)", Refused),
        (fail, "[NOT_AUTHORIZED]no valid Basic authorization", Refused),
        (fail, "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = unknown database, database=x", Refused),
        (fail, "[NOT_IMPLEMENTED_ERROR]stream load 2pc is unsupported for mow table", Refused),
        (fail, "[E-1101]unknown data format, format=x", Refused),
        (
            fail,
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Invalid timeout: 300000. Timeout should be lower than 259200",
            Refused,
        ),
        (
            fail,
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Label format error. regex: ^[\\-_A-Za-z0-9:]{1,128}$, label: a b",
            Refused,
        ),
        ("Something Else", "OK", Unavailable),
        ("", "", Unavailable),
    ] {
        let load = LoadReply { txn_id: -1, label: "L".into(), status: status.into(), message: message.into(), ..LoadReply::default() };
        let error = load_failure(&load);
        assert_eq!(error.kind, kind, "{message}");
        assert_eq!(error.code, status);
        assert!(error.message.contains(message), "the target's words are lost: {}", error.message);
    }
}

#[test]
fn refusals_of_a_front_end() {
    for (reply, kind) in [
        (short("FAILED", "There is no 100-continue header"), ErrorKind::Refused),
        (short("FAILED", "No table selected."), ErrorKind::Refused),
        (short("FAILED", "No backend load available, policy: x"), ErrorKind::Unavailable),
        (Reply::Entity { code: 401, msg: "Unauthorized".into(), data: "Need auth information.".into() }, ErrorKind::Refused),
        (Reply::Entity { code: 1, msg: "Internal Error".into(), data: "Access denied for user".into() }, ErrorKind::Refused),
        (
            Reply::Entity { code: 1, msg: "Error".into(), data: "errCode = 7, detailMessage = unknown table, tableName=t".into() },
            ErrorKind::Refused,
        ),
        (Reply::Entity { code: 1, msg: "Internal Error".into(), data: "master is unknown".into() }, ErrorKind::Unavailable),
        (Reply::Other { http_status: 404, text: "Not Found".into() }, ErrorKind::Refused),
        (Reply::Other { http_status: 502, text: String::new() }, ErrorKind::Unavailable),
        (Reply::Other { http_status: 429, text: String::new() }, ErrorKind::Unavailable),
    ] {
        assert_eq!(refusal(&reply).kind, kind, "{reply:?}");
    }
}
