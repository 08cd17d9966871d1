//! What connectors rely on, as the regression tests of Doris freeze it: `flink_connector_response.groovy`,
//! `test_stream_load_2pc.groovy`, `test_stream_load_properties.groovy` and `test_stream_load.groovy` of `apache/doris`.

use crate::support::{Doris, load, two_phase};

#[test]
fn connectors_find_the_answers_they_parse() {
    let doris = Doris::start();
    let label = "contract-1";

    // A load, and another one with its label.
    let first = doris.load(label, "{\"k\": 1}\n{\"k\": 2}\n");
    assert_eq!((&first["Status"], &first["Label"]), (&"Success".into(), &label.into()));
    let id = first["TxnId"].as_i64().unwrap();
    assert!(id > 0);
    let again = doris.load(label, "{\"k\": 1}\n");
    assert_eq!(again["Status"], "Label Already Exists");
    assert_eq!(again["ExistingJobStatus"], "PRECOMMITTED");
    let used = format!("Label [{label}] has already been used, relate to txn [{id}]");
    assert!(again["Message"].as_str().unwrap().contains(&used), "{again}");

    // Its abort, the abort of what never was, and an abort once more.
    assert_eq!(doris.abort(id)["status"], "Success");
    let unknown = doris.abort(i64::MAX);
    assert_ne!(unknown["status"], "Success");
    assert!(unknown["msg"].as_str().unwrap().contains("transaction [9223372036854775807] not found"), "{unknown}");
    let aborted = doris.abort(id);
    assert_ne!(aborted["status"], "Success");
    assert!(aborted["msg"].as_str().unwrap().contains(&format!("transaction [{id}] is already")), "{aborted}");

    // Commits of what never was and of what was aborted.
    let unknown = doris.commit(i64::MAX);
    assert_ne!(unknown["status"], "Success");
    assert!(unknown["msg"].as_str().unwrap().contains("transaction [9223372036854775807] not found"), "{unknown}");
    let aborted = doris.commit(id);
    assert_ne!(aborted["status"], "Success");
    assert!(aborted["msg"].as_str().unwrap().contains(&format!("transaction [{id}] is already aborted. abort reason")));

    // A commit, the same again, and an abort of what is committed.
    let id = doris.precommit("contract-2", "{\"k\": 1}\n");
    assert_eq!(doris.commit(id)["status"], "Success");
    let committed = doris.commit(id)["msg"].as_str().unwrap().to_owned();
    let states = ["COMMITTED", "committed", "VISIBLE", "visible"];
    let accepted = |state| committed.contains(&format!("transaction [{id}] is already {state}, not pre-committed."));
    assert!(states.into_iter().any(accepted), "{committed}");
    let aborted = doris.abort(id);
    assert_ne!(aborted["status"], "Success");
    assert!(aborted["msg"].as_str().unwrap().contains(&format!("transaction [{id}] is already")), "{aborted}");
}

#[test]
fn a_load_is_visible_after_commit_and_never_after_abort() {
    let doris = Doris::start();
    let headers = ["column_separator: |", "columns: k1,k2,v1"];
    let body = "1|a|x\n2|b|y\n";

    let aborted = load(doris.be(), "orders", "two-1", &headers, body);
    assert_eq!((&aborted["Status"], &aborted["TwoPhaseCommit"]), (&"Success".into(), &"true".into()));
    assert_eq!(doris.rows(), Vec::<String>::new());
    assert_eq!(doris.abort(aborted["TxnId"].as_i64().unwrap())["status"], "Success");
    assert_eq!(doris.rows(), Vec::<String>::new());

    let committed = load(doris.be(), "orders", "two-2", &headers, body);
    assert_eq!(doris.rows(), Vec::<String>::new());
    let id = committed["TxnId"].as_i64().unwrap();
    assert_eq!(doris.commit(id)["msg"], format!("transaction [{id}] commit successfully."));
    assert_eq!(doris.rows(), ["1|a|x", "2|b|y"]);
    assert_eq!(doris.abort(id)["status"], "ANALYSIS_ERROR");
    assert_eq!(doris.rows(), ["1|a|x", "2|b|y"]);
}

#[test]
fn a_transaction_id_that_is_no_number_is_refused_by_the_be() {
    let doris = Doris::start();
    let reply = two_phase(doris.be(), "shop", &["txn_id: abc", "txn_operation: commit"]);
    assert_eq!(reply["status"], "INTERNAL_ERROR");
    assert_eq!(reply["msg"], "convert txn_id [abc] failed, reason=stoull");
}

#[test]
fn a_label_can_be_used_again_after_its_abort() {
    let doris = Doris::start();
    let first = doris.precommit("again", "{\"k\": 1}\n");
    assert_eq!(doris.load("again", "{\"k\": 1}\n")["Status"], "Label Already Exists");
    assert_eq!(doris.abort(first)["status"], "Success");
    let second = doris.precommit("again", "{\"k\": 2}\n");
    assert!(second > first);
    assert_eq!(doris.commit(second)["status"], "Success");
    assert_eq!(doris.load("again", "{\"k\": 3}\n")["ExistingJobStatus"], "FINISHED");
    assert_eq!(doris.rows(), ["{\"k\": 2}"]);
}
