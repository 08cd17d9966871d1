//! Limits of Doris, and headers that the emulator refuses rather than ignores.

use serde_json::json;

use crate::support::{Connection, Doris, ROOT, load};

/// The reply to a load that ends with its head.
fn refused(doris: &Doris, headers: &[&str]) -> serde_json::Value {
    let headers = [&[ROOT, "Expect: 100-continue", "two_phase_commit: true"], headers].concat();
    let reply = Connection::open(doris.be()).request("PUT", "/api/shop/orders/_stream_load", &headers).json();
    assert_eq!((&reply["Status"], &reply["TxnId"]), (&"Fail".into(), &(-1).into()), "{reply}");
    reply
}

#[test]
fn too_many_running_transactions_are_refused() {
    let doris = Doris::with_settings(|settings| settings.max_running_txn_num_per_db = 2);
    let first = doris.precommit("a", "{}\n");
    doris.precommit("b", "{}\n");
    let message = doris.load("c", "{}\n")["Message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = current running txns on db "));
    assert!(message.ends_with(" is 2, larger than limit 2"), "{message}");
    // The label is looked at before the limit.
    assert_eq!(doris.load("a", "{}\n")["Status"], "Label Already Exists");
    doris.commit(first);
    doris.precommit("c", "{}\n");
}

#[test]
fn a_label_must_have_the_form_that_doris_wants() {
    let doris = Doris::start();
    let long = "x".repeat(129);
    for label in ["a.b", "a b", "ä", &long] {
        let reply = refused(&doris, &[&format!("label: {label}"), "Content-Length: 0"]);
        let detail = format!("Label format error. regex: ^[\\-_A-Za-z0-9:]{{1,128}}$, label: {label}");
        assert_eq!(reply["Message"], format!("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = {detail}"));
    }
    doris.precommit(&"x".repeat(128), "{}\n");
    // Without a label one is made.
    let headers = [ROOT, "Content-Length: 0", "two_phase_commit: true"];
    let reply = Connection::open(doris.be()).request("PUT", "/api/shop/orders/_stream_load", &headers).json();
    assert_eq!((reply["Label"].as_str().unwrap().len(), &reply["Status"]), (36, &"Success".into()));
}

#[test]
fn databases_and_tables_must_exist() {
    let doris = Doris::start();
    let message = |path: &str| {
        let headers = [ROOT, "Expect: 100-continue", "Content-Length: 3"];
        Connection::open(doris.be()).request("PUT", path, &headers).json()["Message"].as_str().unwrap().to_owned()
    };
    let detail = "[ANALYSIS_ERROR]TStatus: errCode";
    assert_eq!(message("/api/none/orders/_stream_load"), format!("{detail} = 2, detailMessage = unknown database, database=none"));
    assert_eq!(message("/api/shop/none/_stream_load"), format!("{detail} = 7, detailMessage = unknown table, tableName=none"));
}

#[test]
fn long_bodies_are_refused_by_their_content_length_alone() {
    let doris = Doris::with_settings(|settings| {
        settings.streaming_load_json_max_bytes = 10;
        settings.streaming_load_max_bytes = 20;
    });
    let document = ["format: json", "strip_outer_array: true", "read_json_by_line: false", "Content-Length: 11"];
    let expected = "[E-217]json body size 11 exceed BE's conf `streaming_load_json_max_mb` 10. increase it if you are sure this \
                    load is reasonable";
    assert_eq!(refused(&doris, &document)["Message"], expected);
    let expected = "[E-217]body size 21 exceed BE's conf `streaming_load_max_mb` 20. increase it if you are sure this load is \
                    reasonable";
    assert_eq!(refused(&doris, &["Content-Length: 21"])["Message"], expected);
    // By line, the limit of documents does not count.
    assert_eq!(doris.load("lines", "{\"a\": 1234}\n")["Status"], "Success");
}

#[test]
fn headers_that_are_not_emulated_are_refused() {
    let doris = Doris::start();
    for header in ["where: a > 1", "partial_columns: true", "compress_type: GZ", "columns: a, b = a + 1", "merge_type: DELETE"] {
        let message = refused(&doris, &[header, "Content-Length: 0"])["Message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("[NOT_IMPLEMENTED_ERROR]doris-emulator does not emulate "), "{header}: {message}");
    }
    assert_eq!(refused(&doris, &["format: xml", "Content-Length: 0"])["Message"], "[E-1101]unknown data format, format=xml");
    let harmless = ["partial_columns: false", "merge_type: APPEND", "strict_mode: true"];
    assert_eq!(load(doris.be(), "orders", "fine", &harmless, "a\n")["Status"], "Success");
}

#[test]
fn group_commit_takes_the_label_of_a_chunked_two_phase_load() {
    let doris = Doris::start();
    let headers = [ROOT, "two_phase_commit: true", "label: mine", "group_commit: async_mode", "Transfer-Encoding: chunked"];
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    connection.send(b"2\r\na\n\r\n0\r\n\r\n");
    let reply = connection.read_reply().json();
    assert_eq!(reply["Status"], "Success");
    assert_ne!(reply["Label"], "mine");
    assert_eq!(doris.client.transactions(&Default::default()).unwrap()[0].label, reply["Label"].as_str().unwrap());
    let with_length = ["label: mine", "group_commit: async_mode"];
    assert_eq!(load(doris.be(), "orders", "mine", &with_length[1..], "a\n")["Label"], "mine");
    let auto = [ROOT, "label: L", "group_commit: sync_mode", "Content-Length: 0"];
    let reply = Connection::open(doris.be()).request("PUT", "/api/shop/orders/_stream_load", &auto).json();
    assert!(reply["Message"].as_str().unwrap().ends_with("label and group_commit can't be set at the same time"));
}

#[test]
fn a_load_without_two_phase_commit_waits_until_it_is_visible_or_says_publish_timeout() {
    let doris = Doris::with_settings(|settings| settings.publish_delay_ms = 150);
    let load = |label: &str| {
        let mut connection = Connection::open(doris.be());
        let label = format!("label: {label}");
        connection.send_head("PUT", "/api/shop/orders/_stream_load", &[ROOT, &label, "Content-Length: 2"]);
        connection.send(b"a\n");
        connection.read_reply().json()
    };
    let reply = load("soon");
    assert_eq!((&reply["Status"], &reply["TwoPhaseCommit"]), (&"Success".into(), &"false".into()));
    assert_eq!(doris.rows(), ["a"]);
    doris.client.change_settings(&json!({ "publish_delay_ms": 31_000 })).unwrap();
    let reply = load("later");
    assert_eq!(reply["Status"], "Publish Timeout");
    assert_eq!(reply["Message"], "[PUBLISH_TIMEOUT]TStatus: transaction commit successfully, BUT data will be visible later");
    assert_eq!((doris.label_state("later").as_str(), doris.rows().len()), ("COMMITTED", 1));
}
