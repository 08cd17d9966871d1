//! What tests see over the control port.

use std::io::BufRead;

use doris_emulator::{ClientError, ColumnType, CountsQuery, TableSpec, TransactionQuery, TransactionState};

use crate::support::{Doris, json_lines, load};

#[test]
fn rows_come_in_commit_order_and_only_when_visible() {
    let doris = Doris::start();
    let ids: Vec<i64> = (0..3).map(|number| doris.precommit(&format!("L{number}"), &json_lines(number, 1))).collect();
    doris.commit(ids[2]);
    doris.abort(ids[1]);
    doris.commit(ids[0]);
    assert_eq!(doris.rows(), ["{\"id\": 2}", "{\"id\": 0}"]);
    let lines: Vec<String> = doris.client.row_stream("shop", "orders").unwrap().lines().map(Result::unwrap).collect();
    assert_eq!(lines, doris.rows());
}

#[test]
fn a_large_table_streams_completely() {
    let doris = Doris::start();
    doris.commit(doris.precommit("large", &json_lines(0, 50_000)));
    let mut expected = 0_u64;
    for line in doris.client.row_stream("shop", "orders").unwrap().lines() {
        assert_eq!(line.unwrap(), format!("{{\"id\": {expected}}}"));
        expected += 1;
    }
    assert_eq!(expected, 50_000);
}

#[test]
fn a_unique_table_shows_the_last_row_of_each_key() {
    let doris = Doris::start();
    let table = TableSpec::any("shop", "latest").column("id", ColumnType::Bigint).column("v", ColumnType::String);
    doris.client.create_table(&table.unique(&["id"])).unwrap();
    let commit = |label: &str, headers: &[&str], body: &str| {
        let reply = load(doris.be(), "latest", label, headers, body);
        assert_eq!(reply["Status"], "Success", "{reply}");
        doris.commit(reply["TxnId"].as_i64().unwrap());
    };
    commit("a", &["column_separator: ,"], "1,old\n2,old\n2,new\n");
    commit("b", &["format: json"], "{\"v\": \"new\", \"id\": 1}\n");
    assert_eq!(doris.client.rows("shop", "latest").unwrap(), ["2,new", "{\"v\": \"new\", \"id\": 1}"]);
    assert_eq!(doris.client.table_counts("shop", "latest").unwrap().rows, 4);
}

#[test]
fn equal_rows_have_equal_hashes_in_any_order_and_any_loads() {
    let doris = Doris::start();
    doris.client.create_table(&TableSpec::any("shop", "copy")).unwrap();
    doris.commit(doris.precommit("whole", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"));
    for (label, body) in [("part-1", "{\"a\":3}\n"), ("part-2", "{\"a\":2}\n{\"a\":1}\n")] {
        let reply = load(doris.be(), "copy", label, &["format: json"], body);
        doris.commit(reply["TxnId"].as_i64().unwrap());
    }
    let counts = |table| doris.client.table_counts("shop", table).unwrap();
    assert_eq!(counts("orders").hash, counts("copy").hash);
    assert_eq!((counts("orders").loads, counts("copy").loads), (1, 2));
    doris.commit(doris.precommit("more", "{\"a\":1}\n"));
    assert_ne!(counts("orders").hash, counts("copy").hash);
}

#[test]
fn transactions_are_listed_and_counted_by_what_is_asked() {
    let doris = Doris::start();
    doris.client.create_table(&TableSpec::any("other", "t")).unwrap();
    let committed = doris.precommit("x-1", &json_lines(0, 4));
    doris.commit(committed);
    doris.precommit("x-2", &json_lines(0, 2));
    doris.abort(doris.precommit("y-1", "{}\n"));
    let all = doris.client.transactions(&TransactionQuery::default()).unwrap();
    assert_eq!(all.iter().map(|it| it.label.as_str()).collect::<Vec<_>>(), ["x-1", "x-2", "y-1"]);
    let first = &all[0];
    assert_eq!((first.id, first.rows, first.bytes, first.two_phase), (committed, 4, json_lines(0, 4).len() as u64, true));
    assert!(first.begun_ms <= first.precommitted_ms.unwrap() && first.precommitted_ms <= first.committed_ms);
    assert_eq!(all[2].reason.as_deref(), Some("User Abort"));
    let query = TransactionQuery {
        db: Some("shop".to_owned()),
        table: Some("orders".to_owned()),
        state: Some(TransactionState::Precommitted),
        label_prefix: Some("x-".to_owned()),
    };
    assert_eq!(doris.client.transactions(&query).unwrap().len(), 1);
    let counts = |db: &str| doris.client.counts(&CountsQuery { db: Some(db.to_owned()), table: None }).unwrap();
    assert_eq!(counts("shop").into_values().collect::<Vec<_>>(), [0, 1, 0, 1, 1]);
    assert_eq!(counts("other").into_values().sum::<u64>(), 0);
}

#[test]
fn tables_are_created_once_listed_and_dropped() {
    let doris = Doris::start();
    let table = TableSpec::any("shop", "t").column("a", ColumnType::Int);
    doris.client.create_table(&table).unwrap();
    doris.client.create_table(&table).unwrap();
    assert!(doris.client.tables().unwrap().contains(&table));
    let other = doris.client.create_table(&table.clone().column("b", ColumnType::Int)).unwrap_err();
    assert!(matches!(other, ClientError::Refused { status: 409, .. }), "{other}");
    let keyless = TableSpec::any("shop", "u").unique(&["nothing"]);
    let refused = doris.client.create_table(&keyless).unwrap_err();
    assert!(refused.to_string().contains("the key column nothing is not among the columns"), "{refused}");
    doris.client.drop_table("shop", "t").unwrap();
    assert!(doris.client.rows("shop", "t").is_err());
    assert!(doris.client.drop_table("shop", "t").is_err());
}

#[test]
fn discarding_keeps_counts_and_hashes() {
    let keeping = Doris::start();
    let discarding = Doris::with(|options| options.discard = true);
    for doris in [&keeping, &discarding] {
        doris.commit(doris.precommit("L", &json_lines(0, 1_000)));
    }
    let counts = |doris: &Doris| doris.client.table_counts("shop", "orders").unwrap();
    assert_eq!(counts(&keeping), counts(&discarding));
    let refused = discarding.client.rows("shop", "orders").unwrap_err();
    assert!(matches!(refused, ClientError::Refused { status: 409, .. }), "{refused}");
    let kept = std::fs::read_dir(discarding.folder.path().join("rows")).unwrap().count();
    assert_eq!(kept, 0);
}

#[test]
fn a_folder_serves_one_emulator_at_a_time() {
    let doris = Doris::start();
    let second = doris_emulator::Emulator::start(doris_emulator::Options::new(doris.folder.path()));
    assert!(second.err().unwrap().to_string().contains("is in use by another emulator"));
}

#[test]
fn unknown_settings_are_refused_by_name() {
    let doris = Doris::start();
    let refused = doris.client.change_settings(&serde_json::json!({ "publish_delay": 1 })).unwrap_err();
    assert!(refused.to_string().contains("unknown field `publish_delay`"), "{refused}");
}

#[tokio::test]
async fn an_emulator_can_be_started_and_dropped_in_async_code() {
    let doris = Doris::start();
    doris.commit(doris.precommit("L", "{}\n"));
    assert_eq!(doris.rows(), ["{}"]);
}

#[test]
fn a_restart_on_the_same_ports_is_possible_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = doris_emulator::Options::new(folder.path());
    for _ in 0..5 {
        let emulator = doris_emulator::Emulator::start(options.clone()).unwrap();
        options.fe = emulator.addresses().fe.clone();
        options.be = emulator.addresses().be.clone();
        options.control = emulator.addresses().control;
        assert_eq!(emulator.client().tables().unwrap(), []);
    }
}
