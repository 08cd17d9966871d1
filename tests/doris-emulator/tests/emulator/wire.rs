//! What a BE does with the bytes of a load: when it begins, when it says `100 Continue`, how bodies may end.

use std::io::Read;
use std::time::Duration;

use doris_emulator::{TransactionState, User};
use flate2::read::GzDecoder;

use crate::support::{Connection, Doris, LIMIT, ROOT};

const LOAD: &str = "/api/shop/orders/_stream_load";

/// The headers of a two-phase JSON load, and more.
fn headers<'a>(label: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[ROOT, "two_phase_commit: true", "format: json", "read_json_by_line: true", label], more].concat()
}

#[test]
fn the_transaction_begins_with_the_head_and_100_continue_follows() {
    let doris = Doris::start();
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers("label: early", &["Expect: 100-continue", "Content-Length: 3"]));
    assert_eq!(connection.read_reply().status, 100);
    assert_eq!(doris.label_state("early"), "PREPARE");
    connection.send(b"{}\n");
    assert_eq!(connection.read_reply().json()["Status"], "Success");
    assert_eq!(doris.label_state("early"), "PRECOMMITTED");
}

#[test]
fn without_expect_no_100_continue_is_sent() {
    let doris = Doris::start();
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers("label: plain", &["Content-Length: 3"]));
    doris.client.wait_for("loads_begun", 1, LIMIT).unwrap();
    assert!(connection.stays_silent_for(Duration::from_millis(200)));
    connection.send(b"{}\n");
    assert_eq!(connection.read_reply().json()["Status"], "Success");
}

#[test]
fn a_refused_label_is_answered_at_once_without_100_continue() {
    let doris = Doris::start();
    let id = doris.precommit("used", "{}\n");
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers("label: used", &["Expect: 100-continue", "Content-Length: 3"]));
    let reply = connection.read_reply();
    let expected = format!(
        r#"{{
    "TxnId": -1,
    "Label": "used",
    "Comment": "",
    "TwoPhaseCommit": "true",
    "Status": "Label Already Exists",
    "ExistingJobStatus": "PRECOMMITTED",
    "Message": "[LABEL_ALREADY_EXISTS]TStatus: errCode = 2, detailMessage = Label [used] has already been used, relate to txn [{id}], status [PRECOMMITTED].",
    "NumberTotalRows": 0,
    "NumberLoadedRows": 0,
    "NumberFilteredRows": 0,
    "NumberUnselectedRows": 0,
    "LoadBytes": 0,
    "LoadTimeMs": 0,
    "BeginTxnTimeMs": 0,
    "StreamLoadPutTimeMs": 0,
    "ReadDataTimeMs": 0,
    "WriteDataTimeMs": 0,
    "ReceiveDataTimeMs": 0,
    "CommitAndPublishTimeMs": 0
}}
"#
    );
    assert_eq!((reply.status, reply.text()), (200, expected.as_str()));
    assert!(connection.is_closed());
}

#[test]
fn a_label_in_progress_is_told_as_running() {
    let doris = Doris::start();
    let mut open = Connection::open(doris.be());
    open.send_head("PUT", LOAD, &headers("label: open", &["Expect: 100-continue", "Content-Length: 3"]));
    assert_eq!(open.read_reply().status, 100);
    assert_eq!(doris.load("open", "{}\n")["ExistingJobStatus"], "RUNNING");
}

#[test]
fn a_chunked_body_is_loaded() {
    let doris = Doris::start();
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers("label: chunks", &["Expect: 100-continue", "Transfer-Encoding: chunked"]));
    assert_eq!(connection.read_reply().status, 100);
    // The borders of chunks are not those of rows.
    connection.send(b"8\r\n{\"a\":1}\n\r\n3\r\n{\"a\r\n");
    connection.send(b"5\r\n\":2}\n\r\n0\r\n\r\n");
    let reply = connection.read_reply().json();
    assert_eq!((&reply["Status"], &reply["NumberTotalRows"], &reply["LoadBytes"]), (&"Success".into(), &2.into(), &16.into()));
}

#[test]
fn exactly_one_framing_is_accepted() {
    let doris = Doris::start();
    for more in [&["Content-Length: 3", "Transfer-Encoding: chunked"], &["Transfer-Encoding: chunked", "Content-Length: 3"]] {
        let mut connection = Connection::open(doris.be());
        connection.send_head("PUT", LOAD, &headers("label: both", &[&["Expect: 100-continue"], &more[..]].concat()));
        let reply = connection.read_reply().json();
        assert_eq!(reply["Message"], "[INVALID_ARGUMENT]please do not set both content_length and transfer-encoding");
        assert_eq!(reply["TxnId"], -1);
    }
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers("label: none", &["Expect: 100-continue"]));
    let expected = "[INVALID_ARGUMENT]content_length is empty and transfer-encoding!=chunked, please set content_length or \
                    transfer-encoding=chunked";
    assert_eq!(connection.read_reply().json()["Message"], expected);
    assert_eq!(doris.client.traffic().unwrap().loads_begun, 0);
}

#[test]
fn a_sender_that_goes_away_has_its_transaction_rolled_back() {
    let doris = Doris::start();
    for (label, framing, bytes) in [
        ("label: length", "Content-Length: 30", &b"{\"a\":1}\n"[..]),
        ("label: chunks", "Transfer-Encoding: chunked", &b"8\r\n{\"a\":1}\n\r\n"[..]),
        ("label: inside", "Transfer-Encoding: chunked", &b"8\r\n{\"a\""[..]),
    ] {
        let broken = doris.client.traffic().unwrap().bodies_broken;
        let mut connection = Connection::open(doris.be());
        connection.send_head("PUT", LOAD, &headers(label, &["Expect: 100-continue", framing]));
        assert_eq!(connection.read_reply().status, 100);
        connection.send(bytes);
        drop(connection);
        doris.client.wait_for("bodies_broken", broken + 1, LIMIT).unwrap();
        doris.client.wait_for("loads_failed", broken + 1, LIMIT).unwrap();
    }
    assert_eq!(doris.in_state(TransactionState::Aborted), 3);
    assert_eq!(doris.rows(), Vec::<String>::new());
}

#[test]
fn fewer_bytes_than_promised_are_told_to_a_sender_that_still_listens() {
    let doris = Doris::start();
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers("label: short", &["Expect: 100-continue", "Content-Length: 30"]));
    assert_eq!(connection.read_reply().status, 100);
    connection.send(b"{\"a\":1}\n");
    connection.end_sending();
    let reply = connection.read_reply().json();
    assert_eq!(reply["Status"], "Fail");
    assert_eq!(reply["Message"], "[NETWORK_ERROR]receive body don't equal with body bytes");
    assert_eq!(doris.label_state("short"), "ABORTED");
}

#[test]
fn a_load_that_arrived_in_full_counts_though_its_sender_is_gone() {
    let doris = Doris::start();
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers("label: gone", &["Content-Length: 3"]));
    connection.send(b"{}\n");
    drop(connection);
    doris.client.wait_for("loads_precommitted", 1, LIMIT).unwrap();
    assert_eq!(doris.label_state("gone"), "PRECOMMITTED");
}

#[test]
fn replies_are_compressed_only_for_those_who_accept_it() {
    let doris = Doris::start();
    let load = |label, more: &[&str]| {
        let mut connection = Connection::open(doris.be());
        connection.send_head("PUT", LOAD, &headers(label, &[&["Content-Length: 3"], more].concat()));
        connection.send(b"{}\n");
        connection.read_reply()
    };
    let plain = load("label: a", &["Accept-Encoding: identity"]);
    assert_eq!((plain.header("content-encoding"), plain.json()["Status"].as_str()), (None, Some("Success")));
    let packed = load("label: b", &["Accept-Encoding: gzip, deflate"]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    GzDecoder::new(packed.body.as_slice()).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("{\n    \"TxnId\": ") && text.ends_with("}\n"), "{text}");
}

#[test]
fn a_connection_serves_one_load_after_another() {
    let doris = Doris::start();
    let mut connection = Connection::open(doris.be());
    for label in ["label: first", "label: second"] {
        connection.send_head("PUT", LOAD, &headers(label, &["Expect: 100-continue", "Content-Length: 3"]));
        assert_eq!(connection.read_reply().status, 100);
        connection.send(b"{}\n");
        assert_eq!(connection.read_reply().json()["Status"], "Success");
    }
}

#[test]
fn credentials_are_checked_with_http_200() {
    let doris = Doris::start();
    doris.client.add_user(&User { name: "reader".to_owned(), password: "p".to_owned(), may_load: false }).unwrap();
    let message = |credentials: &[&str]| {
        let headers = [credentials, &["Expect: 100-continue", "Content-Length: 3", "two_phase_commit: true"]].concat();
        let reply = Connection::open(doris.be()).request("PUT", LOAD, &headers).json();
        assert_eq!((&reply["Status"], &reply["TxnId"]), (&"Fail".into(), &(-1).into()));
        reply["Message"].as_str().unwrap().to_owned()
    };
    assert_eq!(message(&[]), "[NOT_AUTHORIZED]no valid Basic authorization");
    let detail = "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Access denied";
    let wrong = message(&["Authorization: Basic cm9vdDp3cm9uZw=="]);
    assert_eq!(wrong, format!("{detail} for user 'root@127.0.0.1' (using password: YES)"));
    let reader = message(&["Authorization: Basic cmVhZGVyOnA="]);
    assert_eq!(reader, format!("{detail}; you need (at least one of) the (LOAD) privilege(s) for this operation"));
    // A suffix `@cluster` of the name is not looked at: "root@cluster:".
    let headers = ["Authorization: Basic cm9vdEBjbHVzdGVyOg==", "Content-Length: 0"];
    assert_eq!(Connection::open(doris.be()).request("PUT", LOAD, &headers).json()["Status"], "Success");
}

#[test]
fn unknown_routes_are_404() {
    let doris = Doris::start();
    for (method, path) in [("GET", LOAD), ("POST", "/api/shop/_stream_load_2pc"), ("PUT", "/api/nothing")] {
        let reply = Connection::open(doris.be()).request(method, path, &[ROOT]);
        assert_eq!((reply.status, reply.text()), (404, "Not Found"), "{method} {path}");
    }
}

#[test]
fn two_phase_commit_needs_exactly_the_word_true() {
    let doris = Doris::start();
    let headers = [ROOT, "two_phase_commit: True", "label: auto", "Content-Length: 2"];
    let mut connection = Connection::open(doris.be());
    connection.send_head("PUT", LOAD, &headers);
    connection.send(b"a\n");
    let reply = connection.read_reply().json();
    assert_eq!((&reply["TwoPhaseCommit"], &reply["Status"]), (&"false".into(), &"Success".into()));
    assert_eq!(doris.rows(), ["a"]);
}
