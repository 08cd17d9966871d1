//! Other versions, other words.

use doris_emulator::{ColumnType, Dialect, TableSpec, TransactionState};
use serde_json::Value;

use crate::support::{Doris, load, two_phase};

fn speaking(dialect: Dialect) -> Doris {
    Doris::with_settings(|settings| settings.dialect = dialect)
}

fn two(reply: &Value) -> (String, String) {
    (reply["status"].as_str().unwrap().to_owned(), reply["msg"].as_str().unwrap().to_owned())
}

#[test]
fn before_2_1_there_is_no_tstatus_and_no_commit_by_label() {
    for (dialect, status) in [(Dialect::V1, "Analysis error"), (Dialect::V2_0, "ANALYSIS_ERROR")] {
        let doris = speaking(dialect);
        let id = doris.precommit("L", "{}\n");
        let message = doris.load("L", "{}\n")["Message"].as_str().unwrap().to_owned();
        assert_eq!(message, format!("errCode = 2, detailMessage = Label [L] has already been used, relate to txn [{id}]"));
        doris.commit(id);
        let expected = format!("errCode = 2, detailMessage = transaction [{id}] is already visible, not pre-committed.");
        assert_eq!(two(&doris.commit(id)), (status.to_owned(), expected));
        let reply = two_phase(doris.be(), "shop", &["label: L", "txn_operation: abort"]);
        assert_ne!(reply["status"], "Success");
    }
    let doris = speaking(Dialect::V1);
    let reply = doris.load("first", "{}\n");
    assert!(reply.get("Comment").is_none() && reply.get("ReceiveDataTimeMs").is_none());
    assert_eq!(two(&two_phase(doris.be(), "shop", &["txn_id: x", "txn_operation: abort"])).0, "Internal error");
}

#[test]
fn from_2_1_on_there_is_tstatus_and_the_status_of_the_label() {
    let doris = speaking(Dialect::V2_1);
    let reply = doris.load("L", "{}\n");
    assert!(reply.get("Comment").is_some() && reply.get("ReceiveDataTimeMs").is_none());
    let id = reply["TxnId"].as_i64().unwrap();
    doris.commit(id);
    let message = doris.load("L", "{}\n")["Message"].as_str().unwrap().to_owned();
    let detail = format!("Label [L] has already been used, relate to txn [{id}], status [VISIBLE].");
    assert_eq!(message, format!("[LABEL_ALREADY_EXISTS]TStatus: errCode = 2, detailMessage = {detail}"));
}

#[test]
fn cloud_mode_has_words_of_its_own() {
    let doris = Doris::with_settings(|settings| {
        settings.dialect = Dialect::Cloud;
        settings.publish_delay_ms = 60_000;
    });
    let message = |reply: &Value| {
        let text = reply["msg"].as_str().unwrap().to_owned();
        text.strip_prefix("TStatus: errCode = 2, detailMessage = ").unwrap_or(&text).to_owned()
    };
    let id = doris.precommit("L", "{}\n");
    doris.commit(id);
    // There is no time between COMMITTED and VISIBLE.
    assert_eq!(message(&doris.commit(id)), format!("transaction [{id}] is already visible, not pre-committed."));
    assert!(message(&doris.abort(id)).starts_with(&format!("transaction [{id}] is already VISIBLE, db_id=")));
    let used = doris.load("L", "{}\n")["Message"].as_str().unwrap().to_owned();
    assert!(used.ends_with(&format!("relate to txn [{id}], status=[TXN_STATUS_VISIBLE]")), "{used}");
    let id = doris.precommit("M", "{}\n");
    doris.abort(id);
    for reply in [doris.commit(id), doris.abort(id)] {
        assert!(message(&reply).starts_with(&format!("transaction [{id}] is already aborted, db_id=")), "{reply}");
    }
    // An abort by label is answered Success whatever became of it, and one of nothing is illegal input.
    for label in ["L", "M", "never"] {
        let reply = two_phase(doris.be(), "shop", &[&format!("label: {label}"), "txn_operation: abort"]);
        assert_eq!(reply["msg"], format!("label [{label}] abort successfully."));
    }
    assert_eq!(doris.in_state(TransactionState::Visible), 1);
    let nothing = two_phase(doris.be(), "shop", &["txn_operation: abort"]);
    assert!(message(&nothing).starts_with("failed abort txn, with illegal input, db_id=-1 txn_id=-1 label="), "{nothing}");
}

#[test]
fn cloud_mode_refuses_two_phase_loads_into_merge_on_write_tables() {
    let doris = speaking(Dialect::Cloud);
    let unique = TableSpec::any("shop", "mow").column("id", ColumnType::Bigint).unique(&["id"]);
    doris.client.create_table(&unique).unwrap();
    let mut merge_on_read = TableSpec { table: "mor".to_owned(), ..unique };
    merge_on_read.merge_on_write = false;
    doris.client.create_table(&merge_on_read).unwrap();
    let refused = load(doris.be(), "mow", "A", &[], "1\n");
    assert_eq!(refused["Message"], "[NOT_IMPLEMENTED_ERROR]stream load 2pc is unsupported for mow table");
    assert_eq!(doris.label_state("A"), "ABORTED");
    assert_eq!(load(doris.be(), "mor", "B", &[], "1\n")["Status"], "Success");
}
