//! Time-outs, retention and eviction under a moved clock, and what restarts lose.

use std::time::Duration;

use doris_emulator::TransactionState;
use serde_json::json;

use crate::support::{Connection, Doris, ROOT, json_lines};

const HOUR: Duration = Duration::from_secs(3_600);

/// Opens a load and leaves it in state PREPARE; dropping the connection rolls it back.
fn open_load(doris: &Doris, label: &str, more: &[&str]) -> Connection {
    let label = format!("label: {label}");
    let headers = [&[ROOT, "Expect: 100-continue", "two_phase_commit: true", "Content-Length: 2", &label], more].concat();
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    assert_eq!(connection.read_reply().status, 100);
    connection
}

#[test]
fn a_precommitted_transaction_is_aborted_after_an_hour() {
    let doris = Doris::start();
    let id = doris.precommit("hour", "{}\n");
    doris.client.advance_clock(HOUR - Duration::from_secs(60)).unwrap();
    assert_eq!(doris.label_state("hour"), "PRECOMMITTED");
    doris.client.advance_clock(Duration::from_secs(60)).unwrap();
    assert_eq!(doris.label_state("hour"), "ABORTED");
    let message = doris.commit(id)["msg"].as_str().unwrap().to_owned();
    assert!(message.ends_with(&format!("transaction [{id}] is already aborted. abort reason: timeout by txn manager")));
    assert_eq!(doris.client.transactions(&Default::default()).unwrap()[0].reason.as_deref(), Some("timeout by txn manager"));
    // Its label is free again.
    assert!(doris.precommit("hour", "{}\n") > id);
}

#[test]
fn the_precommit_timeout_is_taken_at_begin_and_again_at_a_restart_of_the_fe() {
    let doris = Doris::start();
    let old = doris.precommit("old", "{}\n");
    doris.client.change_settings(&json!({ "stream_load_default_precommit_timeout_second": 60 })).unwrap();
    let new = doris.precommit("new", "{}\n");
    doris.client.advance_clock(Duration::from_secs(61)).unwrap();
    assert_eq!((doris.label_state("old"), doris.label_state("new")), ("PRECOMMITTED".to_owned(), "ABORTED".to_owned()));
    doris.client.restart_fe().unwrap();
    assert_eq!(doris.label_state("old"), "ABORTED");
    assert!(new > old);
}

#[test]
fn a_prepared_transaction_lives_as_long_as_its_timeout_header() {
    let doris = Doris::start();
    let mut connection = open_load(&doris, "slow", &["timeout: 30"]);
    doris.client.advance_clock(Duration::from_secs(31)).unwrap();
    assert_eq!(doris.label_state("slow"), "ABORTED");
    connection.send(b"a\n");
    let reply = connection.read_reply().json();
    assert_eq!(reply["Message"], "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = timeout by txn manager");
    let _open = open_load(&doris, "default", &[]);
    doris.client.advance_clock(HOUR * 71).unwrap();
    assert_eq!(doris.label_state("default"), "PREPARE");
    doris.client.advance_clock(HOUR).unwrap();
    assert_eq!(doris.label_state("default"), "ABORTED");
}

#[test]
fn a_timeout_header_over_the_limit_is_refused() {
    let doris = Doris::start();
    let headers = [ROOT, "Expect: 100-continue", "timeout: 259201", "Content-Length: 2"];
    let reply = Connection::open(doris.be()).request("PUT", "/api/shop/orders/_stream_load", &headers).json();
    let detail = "Invalid timeout: 259201. Timeout should be lower than 259200";
    assert_eq!(reply["Message"], format!("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = {detail}"));
}

#[test]
fn finished_transactions_and_their_labels_are_forgotten_after_twelve_hours() {
    let doris = Doris::start();
    let id = doris.precommit("old", "{\"a\":1}\n");
    doris.commit(id);
    doris.client.advance_clock(HOUR * 12 - Duration::from_secs(60)).unwrap();
    assert_eq!(doris.label_state("old"), "VISIBLE");
    doris.client.advance_clock(Duration::from_secs(60)).unwrap();
    assert_eq!(doris.label_state("old"), "UNKNOWN");
    assert!(doris.commit(id)["msg"].as_str().unwrap().ends_with(&format!("transaction [{id}] not found")));
    // The label is free again, so nothing guards against doubling any more; the rows stay.
    doris.commit(doris.precommit("old", "{\"a\":1}\n"));
    assert_eq!(doris.rows(), ["{\"a\":1}", "{\"a\":1}"]);
}

#[test]
fn the_oldest_finished_transactions_are_evicted_beyond_the_limit_of_labels() {
    let doris = Doris::with_settings(|settings| settings.label_num_threshold = 3);
    let open = doris.precommit("open", "{}\n");
    let ids: Vec<i64> = (0..5).map(|number| doris.precommit(&format!("L{number}"), "{}\n")).collect();
    for &id in &ids {
        doris.commit(id);
    }
    let states: Vec<String> = (0..5).map(|number| doris.label_state(&format!("L{number}"))).collect();
    assert_eq!(states, ["UNKNOWN", "UNKNOWN", "VISIBLE", "VISIBLE", "VISIBLE"]);
    // What is not finished is never evicted, however old.
    assert_eq!(doris.label_state("open"), "PRECOMMITTED");
    assert_eq!(doris.commit(open)["status"], "Success");
    doris.client.change_settings(&json!({ "label_num_threshold": -1 })).unwrap();
    for number in 5..10 {
        doris.commit(doris.precommit(&format!("L{number}"), "{}\n"));
    }
    assert_eq!(doris.in_state(TransactionState::Visible), 8);
}

#[test]
fn a_restart_of_the_fe_loses_prepared_and_keeps_precommitted_transactions() {
    let doris = Doris::start();
    let id = doris.precommit("kept", "{}\n");
    let mut connection = open_load(&doris, "lost", &[]);
    doris.client.restart_fe().unwrap();
    assert_eq!((doris.label_state("kept"), doris.label_state("lost")), ("PRECOMMITTED".to_owned(), "UNKNOWN".to_owned()));
    connection.send(b"a\n");
    let reply = connection.read_reply().json();
    assert_eq!(reply["Message"], "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = transaction not found");
    assert_eq!(doris.commit(id)["status"], "Success");
    assert_eq!(doris.rows(), ["{}"]);
}

#[test]
fn a_restart_of_a_be_aborts_its_own_prepared_transactions() {
    let any = "127.0.0.1:0".parse().unwrap();
    let doris = Doris::with(|options| options.be = vec![any, any]);
    let _open = open_load(&doris, "first", &[]);
    doris.client.restart_be(1).unwrap();
    assert_eq!(doris.label_state("first"), "PREPARE");
    doris.client.restart_be(0).unwrap();
    assert_eq!(doris.label_state("first"), "ABORTED");
}

#[test]
fn a_restart_of_the_emulator_continues_where_promises_ended() {
    let mut doris = Doris::start();
    let committed = doris.precommit("committed", &json_lines(0, 3));
    doris.commit(committed);
    let precommitted = doris.precommit("precommitted", &json_lines(3, 2));
    let aborted = doris.precommit("aborted", &json_lines(5, 1));
    doris.abort(aborted);
    doris.client.advance_clock(Duration::from_secs(600)).unwrap();
    let now_ms = doris.client.now_ms().unwrap();
    let before = doris.client.table_counts("shop", "orders").unwrap();
    doris.restart();
    assert!(doris.client.now_ms().unwrap() >= now_ms, "the clock went back");
    assert_eq!(doris.client.table_counts("shop", "orders").unwrap(), before);
    let states = ["committed", "precommitted", "aborted"].map(|label| doris.label_state(label));
    assert_eq!(states, ["VISIBLE", "PRECOMMITTED", "ABORTED"]);
    assert_eq!(doris.commit(precommitted)["status"], "Success");
    assert_eq!(doris.rows().len(), 5);
    // Ids go on increasing.
    assert!(doris.precommit("next", "{}\n") > aborted);
}
