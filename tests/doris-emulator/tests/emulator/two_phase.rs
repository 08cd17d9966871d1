//! Replies to commit and abort, to the byte.

use doris_emulator::{TableSpec, TransactionState, User};
use serde_json::json;

use crate::support::{Connection, Doris, ROOT, load, two_phase};

const DETAIL: &str = "TStatus: errCode = 2, detailMessage = ";

fn check(reply: &serde_json::Value, status: &str, message: &str) {
    assert_eq!((reply["status"].as_str().unwrap(), reply["msg"].as_str().unwrap()), (status, message));
}

#[test]
fn success_is_told_in_the_words_of_the_request() {
    let doris = Doris::start();
    let be = doris.be();
    let id = doris.precommit("a", "{}\n");
    check(&doris.commit(id), "Success", &format!("transaction [{id}] commit successfully."));
    let id = doris.precommit("b", "{}\n");
    check(&doris.abort(id), "Success", &format!("transaction [{id}] abort successfully."));
    doris.precommit("c", "{}\n");
    let reply = two_phase(be, "shop", &["label: c", "txn_operation: commit"]);
    check(&reply, "Success", "label [c] commit successfully.");
    doris.precommit("d", "{}\n");
    let reply = two_phase(be, "shop", &["label: d", "txn_operation: abort"]);
    check(&reply, "Success", "label [d] abort successfully.");
    // The id wins over a label, which is only repeated.
    let id = doris.precommit("e", "{}\n");
    let reply = two_phase(be, "shop", &["label: other", &format!("txn_id: {id}"), "txn_operation: commit"]);
    check(&reply, "Success", &format!("label [other] transaction [{id}] commit successfully."));
}

#[test]
fn the_bytes_of_a_reply_are_indented_by_four_and_end_without_line_feed() {
    let doris = Doris::start();
    let id = doris.precommit("bytes", "{}\n");
    let headers = [ROOT, "Content-Length: 0", &format!("txn_id: {id}"), "txn_operation: commit"];
    let reply = Connection::open(doris.be()).request("PUT", "/api/shop/_stream_load_2pc", &headers);
    let expected = format!("{{\n    \"status\": \"Success\",\n    \"msg\": \"transaction [{id}] commit successfully.\"\n}}");
    assert_eq!((reply.status, reply.text()), (200, expected.as_str()));
}

#[test]
fn commit_of_what_is_not_precommitted_says_what_it_is() {
    let doris = Doris::with_settings(|settings| settings.publish_delay_ms = 60_000);
    let id = doris.precommit("a", "{}\n");
    assert_eq!(doris.commit(id)["status"], "Success");
    check(&doris.commit(id), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] is already committed, not pre-committed."));
    assert_eq!((doris.in_state(TransactionState::Committed), doris.rows().len()), (1, 0));
    doris.client.advance_clock(std::time::Duration::from_secs(61)).unwrap();
    check(&doris.commit(id), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] is already visible, not pre-committed."));
    assert_eq!((doris.in_state(TransactionState::Visible), doris.rows().len()), (1, 1));

    let id = doris.precommit("b", "{}\n");
    doris.abort(id);
    check(&doris.commit(id), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] is already aborted. abort reason: User Abort"));
    check(&doris.commit(7), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [7] not found"));
    check(&doris.commit(-1), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [-1] not found"));
}

#[test]
fn abort_of_what_is_finished_says_what_it_is() {
    let doris = Doris::with_settings(|settings| settings.publish_delay_ms = 60_000);
    let id = doris.precommit("a", "{}\n");
    doris.abort(id);
    check(&doris.abort(id), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] is already aborted, abort reason: User Abort"));
    let id = doris.precommit("b", "{}\n");
    doris.commit(id);
    check(&doris.abort(id), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] is already COMMITTED, could not abort."));
    doris.client.advance_clock(std::time::Duration::from_secs(61)).unwrap();
    check(&doris.abort(id), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] is already VISIBLE, could not abort."));
    check(&doris.abort(7), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [7] not found"));
}

#[test]
fn by_label_only_what_still_runs_is_found() {
    let doris = Doris::start();
    for operation in ["commit", "abort"] {
        let by_label = |label: &str| two_phase(doris.be(), "shop", &[&format!("label: {label}"), &format!("txn_operation: {operation}")]);
        check(&by_label("never"), "ANALYSIS_ERROR", &format!("{DETAIL}transaction not found, label=never"));
        let label = format!("known-{operation}");
        doris.precommit(&label, "{}\n");
        assert_eq!(by_label(&label)["status"], "Success");
        check(&by_label(&label), "ANALYSIS_ERROR", &format!("{DETAIL}running transaction not found, label={label}"));
    }
}

#[test]
fn a_load_in_progress_can_be_aborted_but_not_committed() {
    let doris = Doris::start();
    let headers = [ROOT, "Expect: 100-continue", "label: open", "two_phase_commit: true", "format: json", "Content-Length: 6"];
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    assert_eq!(connection.read_reply().status, 100);
    let id = doris.client.transactions(&Default::default()).unwrap()[0].id;
    check(&doris.commit(id), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] is prepare, not pre-committed."));
    let commit = two_phase(doris.be(), "shop", &["label: open", "txn_operation: commit"]);
    check(&commit, "ANALYSIS_ERROR", &format!("{DETAIL}running transaction not found, label=open"));
    let abort = two_phase(doris.be(), "shop", &["label: open", "txn_operation: abort"]);
    check(&abort, "Success", "label [open] abort successfully.");
    // The load learns it with the bare reason.
    connection.send(b"{\"a\"}\n");
    let reply = connection.read_reply().json();
    assert_eq!((&reply["Status"], &reply["TxnId"]), (&"Fail".into(), &id.into()));
}

#[test]
fn a_load_that_was_aborted_meanwhile_fails_with_the_bare_reason() {
    let doris = Doris::start();
    let headers = [ROOT, "Expect: 100-continue", "label: open", "two_phase_commit: true", "Content-Length: 2"];
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    assert_eq!(connection.read_reply().status, 100);
    two_phase(doris.be(), "shop", &["label: open", "txn_operation: abort"]);
    connection.send(b"a\n");
    let reply = connection.read_reply().json();
    assert_eq!(reply["Message"], "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = User Abort");
}

#[test]
fn databases_do_not_see_each_others_transactions() {
    let doris = Doris::start();
    doris.client.create_table(&TableSpec::any("other", "orders")).unwrap();
    let id = doris.precommit("scoped", "{}\n");
    let headers = [format!("txn_id: {id}"), "txn_operation: commit".to_owned()];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    check(&two_phase(doris.be(), "other", &headers), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [{id}] not found"));
    check(&two_phase(doris.be(), "none", &headers), "ANALYSIS_ERROR", &format!("{DETAIL}unknown database, database=none"));
    // Labels are per database, too.
    let all = [ROOT, "Expect: 100-continue", "label: scoped", "Content-Length: 0", "two_phase_commit: true"];
    let reply = Connection::open(doris.be()).request("PUT", "/api/other/orders/_stream_load", &all).json();
    assert_eq!(reply["Status"], "Success");
    assert_eq!(doris.commit(id)["status"], "Success");
}

#[test]
fn the_be_itself_refuses_a_bad_operation() {
    let doris = Doris::start();
    for headers in [&["txn_id: 1", "txn_operation: undo"][..], &["txn_id: 1"][..]] {
        let reply = two_phase(doris.be(), "shop", headers);
        check(&reply, "INTERNAL_ERROR", "transaction operation should be 'commit' or 'abort'");
    }
}

#[test]
fn a_dropped_table_stops_the_commit_but_not_the_abort() {
    let doris = Doris::start();
    doris.client.create_table(&TableSpec::any("shop", "gone")).unwrap();
    let ids = ["x", "y"].map(|label| load(doris.be(), "gone", label, &["format: json"], "{}\n")["TxnId"].as_i64().unwrap());
    doris.client.drop_table("shop", "gone").unwrap();
    check(&doris.commit(ids[0]), "ANALYSIS_ERROR", "TStatus: errCode = 7, detailMessage = unknown table, tableName=gone");
    assert_eq!(doris.abort(ids[1])["status"], "Success");
}

#[test]
fn an_unknown_id_is_told_before_the_password_is_checked() {
    let doris = Doris::start();
    let id = doris.precommit("secret", "{}\n");
    doris.client.add_user(&User { name: "reader".to_owned(), password: "p".to_owned(), may_load: false }).unwrap();
    let ask = |id: i64, credentials: Option<&str>| {
        let id = format!("txn_id: {id}");
        let headers: Vec<&str> = credentials.into_iter().chain(["Content-Length: 0", id.as_str(), "txn_operation: commit"]).collect();
        Connection::open(doris.be()).request("PUT", "/api/shop/_stream_load_2pc", &headers).json()
    };
    // "root:wrong" and "reader:p".
    let (wrong, reader) = ("Authorization: Basic cm9vdDp3cm9uZw==", "Authorization: Basic cmVhZGVyOnA=");
    for credentials in [None, Some(wrong), Some(reader)] {
        check(&ask(7, credentials), "ANALYSIS_ERROR", &format!("{DETAIL}transaction [7] not found"));
    }
    let denied = format!("{DETAIL}Access denied for user 'root@127.0.0.1' (using password: YES)");
    check(&ask(id, Some(wrong)), "ANALYSIS_ERROR", &denied);
    assert!(ask(id, None)["msg"].as_str().unwrap().contains("Access denied for user"));
    let privilege = "Access denied; you need (at least one of) the (LOAD) privilege(s) for this operation";
    check(&ask(id, Some(reader)), "ANALYSIS_ERROR", &format!("{DETAIL}{privilege}"));
    assert_eq!(json!(doris.in_state(TransactionState::Precommitted)), 1);
}
