//! Every fault point: what the client sees, and what is true afterwards.

use std::time::{Duration, Instant};

use doris_emulator::{ClientError, Fault, FaultName, TransactionState};

use crate::support::{Connection, Doris, LIMIT, ROOT, json_lines, two_phase};

/// A two-phase load without waiting for `100 Continue`; `None` when the connection was dropped without an answer.
fn load(doris: &Doris, label: &str) -> Option<serde_json::Value> {
    let body = json_lines(0, 10);
    let headers = [
        ROOT,
        "two_phase_commit: true",
        "format: json",
        "read_json_by_line: true",
        &format!("label: {label}"),
        &format!("Content-Length: {}", body.len()),
    ];
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    // A dropped connection can refuse the body before the test looks for an answer.
    connection.try_send(body.as_bytes()).ok();
    connection.try_read_reply().map(|reply| reply.json())
}

/// A two-phase operation; `None` when the connection was dropped without an answer.
fn operate(doris: &Doris, id: i64, operation: &str) -> Option<serde_json::Value> {
    let headers = [ROOT, "Content-Length: 0", &format!("txn_id: {id}"), &format!("txn_operation: {operation}")];
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", "/api/shop/_stream_load_2pc", &headers);
    connection.try_read_reply().map(|reply| reply.json())
}

fn armed(fault: Fault) -> Doris {
    let doris = Doris::start();
    doris.client.arm(&fault).unwrap();
    doris
}

#[test]
fn an_unknown_fault_is_refused_with_the_names_of_all() {
    let doris = Doris::start();
    let address = doris.addresses.control;
    let body = r#"{"name": "load-explode"}"#;
    let mut connection = Connection::open(address);
    connection.send_head("POST", "/faults", &[&format!("Content-Length: {}", body.len())]);
    connection.send(body.as_bytes());
    let reply = connection.read_reply();
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("there is no fault point") && reply.text().contains("load-explode"), "{}", reply.text());
    for fault in FaultName::ALL {
        assert!(reply.text().contains(fault.name()), "{fault} is not listed");
    }
}

#[test]
fn faults_count_skip_and_look_at_labels() {
    let doris = Doris::start();
    doris.client.arm(&Fault::new(FaultName::LoadFail).times(2).after(1).label_prefix("hit-")).unwrap();
    let status = |label: &str| load(&doris, label).unwrap()["Status"].as_str().unwrap().to_owned();
    assert_eq!(status("hit-1"), "Success");
    assert_eq!(status("miss-1"), "Success");
    assert_eq!(status("hit-2"), "Fail");
    assert_eq!(doris.client.faults().unwrap()[0].count, 1);
    assert_eq!(status("hit-3"), "Fail");
    assert_eq!(status("hit-4"), "Success");
    assert_eq!(doris.client.faults().unwrap(), []);
    assert_eq!(doris.client.traffic().unwrap().faults_fired, 2);
    doris.client.arm(&Fault::new(FaultName::Outage).times(100)).unwrap();
    doris.client.arm(&Fault::new(FaultName::Outage).times(0)).unwrap();
    doris.client.arm(&Fault::new(FaultName::LoadFail)).unwrap();
    doris.client.clear_faults().unwrap();
    assert_eq!(status("hit-5"), "Success");
}

#[test]
fn an_outage_drops_every_request() {
    let doris = armed(Fault::new(FaultName::Outage).times(2));
    assert!(load(&doris, "L").is_none());
    let mut fe = Connection::open(doris.fe());
    fe.send_head("GET", "/api/health", &[]);
    assert!(fe.try_read_reply().is_none());
    assert_eq!(doris.label_state("L"), "UNKNOWN");
}

#[test]
fn an_fe_can_drop_answer_503_and_wait() {
    let doris = armed(Fault::new(FaultName::FeDrop));
    let health = || {
        let mut fe = Connection::open(doris.fe());
        fe.send_head("GET", "/api/health", &[]);
        fe.try_read_reply().map(|reply| reply.status)
    };
    assert_eq!(health(), None);
    doris.client.arm(&Fault::new(FaultName::FeUnavailable)).unwrap();
    assert_eq!(health(), Some(503));
    doris.client.arm(&Fault::new(FaultName::FeDelay).delay(Duration::from_millis(150))).unwrap();
    let started = Instant::now();
    assert_eq!(health(), Some(200));
    assert!(started.elapsed() >= Duration::from_millis(150));
    doris.client.arm(&Fault::new(FaultName::StateDrop)).unwrap();
    let mut fe = Connection::open(doris.fe());
    fe.send_head("GET", "/api/shop/get_load_state?label=L", &[ROOT]);
    assert!(fe.try_read_reply().is_none());
}

#[test]
fn a_load_dropped_before_begin_leaves_nothing() {
    let doris = armed(Fault::new(FaultName::LoadDropBeforeBegin));
    assert!(load(&doris, "L").is_none());
    assert_eq!(doris.label_state("L"), "UNKNOWN");
}

#[test]
fn a_load_can_fail_at_begin() {
    let doris = armed(Fault::new(FaultName::LoadFailAtBegin));
    let reply = load(&doris, "L").unwrap();
    assert_eq!(reply["Message"], "[E-240]Have not get FE Master heartbeat yet");
    assert_eq!((&reply["TxnId"], doris.label_state("L").as_str()), (&(-1).into(), "UNKNOWN"));
}

#[test]
fn a_load_dropped_after_begin_or_body_is_rolled_back_unless_that_is_lost_too() {
    for (name, parameter, state) in [
        (FaultName::LoadDropAfterBegin, "", "ABORTED"),
        (FaultName::LoadDropAfterBegin, "leave-prepare", "PREPARE"),
        (FaultName::LoadDropMidBody, "20", "ABORTED"),
        (FaultName::LoadDropAfterBody, "", "ABORTED"),
        (FaultName::LoadDropAfterBody, "leave-prepare", "PREPARE"),
    ] {
        let doris = armed(Fault::new(name).param(parameter));
        assert!(load(&doris, "L").is_none(), "{name} {parameter}");
        assert_eq!(doris.label_state("L"), state, "{name} {parameter}");
        assert_eq!(doris.in_state(TransactionState::Precommitted), 0);
    }
}

#[test]
fn a_load_can_fail_after_its_body() {
    let doris = armed(Fault::new(FaultName::LoadFail).param("[E-235]too many versions on tablet 7"));
    let reply = load(&doris, "L").unwrap();
    assert_eq!((&reply["Status"], &reply["Message"]), (&"Fail".into(), &"[E-235]too many versions on tablet 7".into()));
    assert_eq!(doris.label_state("L"), "ABORTED");
}

#[test]
fn a_load_can_lose_rows_in_silence() {
    let doris = armed(Fault::new(FaultName::LoadLoseRows).param("3"));
    let reply = load(&doris, "L").unwrap();
    assert_eq!((&reply["Status"], &reply["NumberTotalRows"], &reply["NumberLoadedRows"]), (&"Success".into(), &7.into(), &7.into()));
    doris.commit(reply["TxnId"].as_i64().unwrap());
    assert_eq!(doris.rows().len(), 7);
}

#[test]
fn a_precommitted_load_can_lose_its_reply_or_be_told_as_failed() {
    let doris = armed(Fault::new(FaultName::LoadDropAfterPrecommit));
    assert!(load(&doris, "L").is_none());
    assert_eq!(doris.label_state("L"), "PRECOMMITTED");
    doris.client.arm(&Fault::new(FaultName::LoadFailAfterPrecommit)).unwrap();
    let reply = load(&doris, "M").unwrap();
    assert_eq!(reply["Status"], "Fail");
    assert!(reply["Message"].as_str().unwrap().starts_with("[THRIFT_RPC_ERROR]"));
    assert_eq!(doris.label_state("M"), "PRECOMMITTED");
}

#[test]
fn loads_can_be_slow_before_and_after_precommit_and_in_reading() {
    let delay = Duration::from_millis(200);
    for name in [FaultName::LoadDelay, FaultName::LoadReplyDelay, FaultName::LoadStallBody] {
        let doris = armed(Fault::new(name).delay(delay));
        let started = Instant::now();
        assert_eq!(load(&doris, "L").unwrap()["Status"], "Success");
        assert!(started.elapsed() >= delay, "{name}");
    }
    // A slow reply is that of a load that is PRECOMMITTED already.
    let doris = armed(Fault::new(FaultName::LoadReplyDelay).delay(LIMIT));
    let mut connection = Connection::open(doris.be());
    let headers = [ROOT, "two_phase_commit: true", "label: L", "Content-Length: 2"];
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    connection.send(b"a\n");
    doris.client.wait_for("loads_precommitted", 1, LIMIT).unwrap();
    assert_eq!(doris.label_state("L"), "PRECOMMITTED");
}

#[test]
fn operations_can_be_dropped_before_and_after_they_are_done() {
    for (operation, before, after, done) in [
        ("commit", FaultName::CommitDropBefore, FaultName::CommitDropAfter, TransactionState::Visible),
        ("abort", FaultName::AbortDropBefore, FaultName::AbortDropAfter, TransactionState::Aborted),
    ] {
        let doris = armed(Fault::new(before).label_prefix("L"));
        let id = doris.precommit("L", "{}\n");
        assert!(operate(&doris, id, operation).is_none());
        assert_eq!(doris.in_state(TransactionState::Precommitted), 1);
        doris.client.arm(&Fault::new(after)).unwrap();
        assert!(operate(&doris, id, operation).is_none());
        assert_eq!(doris.in_state(done), 1);
    }
}

#[test]
fn operations_can_end_in_a_thrift_error_done_or_not() {
    for (operation, name, done) in [
        ("commit", FaultName::CommitThriftError, TransactionState::Visible),
        ("abort", FaultName::AbortThriftError, TransactionState::Aborted),
    ] {
        let doris = armed(Fault::new(name).param("not-done"));
        let id = doris.precommit("L", "{}\n");
        for (state, next) in [(TransactionState::Precommitted, Some(Fault::new(name))), (done, None)] {
            let reply = operate(&doris, id, operation).unwrap();
            assert_eq!(reply["status"], "THRIFT_RPC_ERROR");
            assert!(reply["msg"].as_str().unwrap().starts_with("failed to call frontend service, FE address="));
            assert_eq!(doris.in_state(state), 1);
            next.iter().for_each(|fault| doris.client.arm(fault).unwrap());
        }
    }
}

#[test]
fn operations_can_run_into_a_lock_and_into_a_follower() {
    for (operation, lock, master) in [
        ("commit", FaultName::CommitLockTimeout, FaultName::CommitNotMaster),
        ("abort", FaultName::AbortLockTimeout, FaultName::AbortNotMaster),
    ] {
        let doris = armed(Fault::new(lock));
        let id = doris.precommit("L", "{}\n");
        let reply = operate(&doris, id, operation).unwrap();
        assert_eq!(reply["status"], "ANALYSIS_ERROR");
        let message = reply["msg"].as_str().unwrap();
        assert!(message.starts_with("TStatus: errCode = 2, detailMessage = get tableList write lock timeout, tableList=(Table [id="));
        assert!(message.ends_with(", name=orders, type=OLAP])"), "{message}");
        doris.client.arm(&Fault::new(master)).unwrap();
        let reply = operate(&doris, id, operation).unwrap();
        assert_eq!((&reply["status"], &reply["msg"]), (&"NOT_MASTER".into(), &"TStatus: FE is not master".into()));
        assert_eq!(doris.in_state(TransactionState::Precommitted), 1);
        assert_eq!(operate(&doris, id, operation).unwrap()["status"], "Success");
    }
}

#[test]
fn the_be_can_send_twice_so_that_the_first_answer_is_already_done() {
    let doris = armed(Fault::new(FaultName::CommitDoubleSend));
    let id = doris.precommit("L", "{}\n");
    let reply = doris.commit(id);
    assert_eq!(reply["status"], "ANALYSIS_ERROR");
    assert!(reply["msg"].as_str().unwrap().ends_with("is already visible, not pre-committed."), "{reply}");
    assert_eq!(doris.rows().len(), 1);
    doris.client.arm(&Fault::new(FaultName::AbortDoubleSend)).unwrap();
    let id = doris.precommit("M", "{}\n");
    let reply = two_phase(doris.be(), "shop", &[&format!("txn_id: {id}"), "txn_operation: abort"]);
    assert!(reply["msg"].as_str().unwrap().ends_with("is already aborted, abort reason: User Abort"), "{reply}");
}

#[test]
fn operations_can_be_slow() {
    for (operation, name) in [("commit", FaultName::CommitDelay), ("abort", FaultName::AbortDelay)] {
        let doris = armed(Fault::new(name).delay(Duration::from_millis(150)));
        let id = doris.precommit("L", "{}\n");
        let started = Instant::now();
        assert_eq!(operate(&doris, id, operation).unwrap()["status"], "Success");
        assert!(started.elapsed() >= Duration::from_millis(150));
    }
}

#[test]
fn waiting_for_a_count_ends_with_a_clear_refusal() {
    let doris = Doris::start();
    let never = doris.client.wait_for("commits", 1, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(never, ClientError::Refused { status: 408, .. }), "{never}");
    let unknown = doris.client.wait_for("comits", 1, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(unknown, ClientError::Refused { status: 400, .. }), "{unknown}");
}
