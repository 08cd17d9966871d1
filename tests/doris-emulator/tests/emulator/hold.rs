//! Requests that take effect after their client is gone: what a network does to the last words of a killed host.

use std::time::Duration;

use doris_emulator::{Fault, FaultName, TransactionState};

use crate::support::{Connection, Doris, LIMIT, ROOT, json_lines};

/// Sends a load and goes away, with the body complete or broken off; returns once the emulator holds it.
fn send_and_die(doris: &Doris, label: &str, complete: bool) {
    let body = json_lines(0, 100);
    let length = if complete { body.len() } else { body.len() + 1 };
    let headers = [
        ROOT,
        "Expect: 100-continue",
        "two_phase_commit: true",
        "format: json",
        "read_json_by_line: true",
        &format!("label: {label}"),
        &format!("Content-Length: {length}"),
    ];
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    assert_eq!(connection.read_reply().status, 100);
    connection.send(body.as_bytes());
    drop(connection);
    doris.client.wait_for("held", 1, LIMIT).unwrap();
}

#[test]
fn a_held_load_begins_when_released_long_after_its_client_died() {
    let doris = Doris::start();
    doris.client.arm(&Fault::new(FaultName::LoadHold)).unwrap();
    send_and_die(&doris, "late", true);
    // Whoever looks now finds nothing to abort.
    assert_eq!(doris.label_state("late"), "UNKNOWN");
    let held = doris.client.held().unwrap();
    assert_eq!((held[0].label.as_str(), held[0].kind.as_str(), held[0].complete), ("late", "load", true));
    assert_eq!(doris.client.release(Some(held[0].id)).unwrap(), 1);
    doris.client.wait_for("loads_precommitted", 1, LIMIT).unwrap();
    assert_eq!(doris.label_state("late"), "PRECOMMITTED");
    assert_eq!(doris.client.held().unwrap(), []);
    let id = doris.client.transactions(&Default::default()).unwrap()[0].id;
    doris.commit(id);
    assert_eq!(doris.rows().len(), 100);
}

#[test]
fn a_held_load_that_broke_off_is_rolled_back_on_release() {
    let doris = Doris::start();
    doris.client.arm(&Fault::new(FaultName::LoadHold)).unwrap();
    send_and_die(&doris, "torn", false);
    assert!(!doris.client.held().unwrap()[0].complete);
    assert_eq!(doris.client.release(None).unwrap(), 1);
    doris.client.wait_for("loads_failed", 1, LIMIT).unwrap();
    assert_eq!(doris.label_state("torn"), "ABORTED");
}

#[test]
fn a_held_load_finds_its_label_taken_by_then() {
    let doris = Doris::start();
    doris.client.arm(&Fault::new(FaultName::LoadHold)).unwrap();
    send_and_die(&doris, "same", true);
    doris.precommit("same", "{\"second\": true}\n");
    doris.client.release(None).unwrap();
    doris.client.wait_for("loads_failed", 1, LIMIT).unwrap();
    assert_eq!(doris.in_state(TransactionState::Precommitted), 1);
}

#[test]
fn a_hold_ends_by_itself_after_its_delay() {
    let doris = Doris::start();
    doris.client.arm(&Fault::new(FaultName::LoadHold).delay(Duration::from_millis(100))).unwrap();
    assert_eq!(doris.load("soon", "{}\n")["Status"], "Success");
}

#[test]
fn a_load_held_before_precommit_is_known_and_can_be_aborted() {
    let doris = Doris::start();
    doris.client.arm(&Fault::new(FaultName::LoadHoldPrecommit).times(2)).unwrap();
    send_and_die(&doris, "kept", true);
    assert_eq!(doris.label_state("kept"), "PREPARE");
    doris.client.release(None).unwrap();
    doris.client.wait_for("loads_precommitted", 1, LIMIT).unwrap();
    send_and_die(&doris, "stopped", true);
    let id = doris.client.transactions(&Default::default()).unwrap()[1].id;
    doris.abort(id);
    doris.client.release(None).unwrap();
    doris.client.wait_for("loads_failed", 1, LIMIT).unwrap();
    assert_eq!((doris.label_state("kept").as_str(), doris.label_state("stopped").as_str()), ("PRECOMMITTED", "ABORTED"));
}

#[test]
fn held_commits_and_aborts_are_done_though_their_clients_are_gone() {
    let doris = Doris::start();
    for (operation, name, state) in [("commit", FaultName::CommitHold, "VISIBLE"), ("abort", FaultName::AbortHold, "ABORTED")] {
        doris.client.arm(&Fault::new(name)).unwrap();
        let id = doris.precommit(operation, "{}\n");
        let mut connection = Connection::open(doris.be());
        let headers = [ROOT, "Content-Length: 0", &format!("txn_id: {id}"), &format!("txn_operation: {operation}")];
        connection.send_head("PUT", "/api/shop/_stream_load_2pc", &headers);
        doris.client.wait_for("held", 1, LIMIT).unwrap();
        drop(connection);
        assert_eq!(doris.label_state(operation), "PRECOMMITTED");
        assert_eq!(doris.client.held().unwrap()[0].label, operation);
        doris.client.release(None).unwrap();
        let counter = if operation == "commit" { "commits" } else { "aborts" };
        doris.client.wait_for(counter, 1, LIMIT).unwrap();
        assert_eq!(doris.label_state(operation), state);
    }
}
