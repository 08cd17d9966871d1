//! What an FE answers, and what it never does: read a body.

use std::time::Duration;

use doris_emulator::{Fault, FaultName, TableSpec, User};
use serde_json::json;

use crate::support::{Connection, Doris, ROOT};

const LOAD: &str = "/api/shop/orders/_stream_load";

fn put(doris: &Doris, path: &str, headers: &[&str]) -> crate::support::Reply {
    Connection::open(doris.fe()).request("PUT", path, headers)
}

#[test]
fn a_load_is_redirected_with_its_credentials_in_the_address() {
    let doris = Doris::start();
    let reply = put(&doris, LOAD, &[ROOT, "Expect: 100-continue", "Content-Length: 3"]);
    assert_eq!(reply.status, 307);
    assert_eq!(reply.header("location"), Some(format!("http://root:@{}{LOAD}?", doris.be()).as_str()));
    assert_eq!(reply.header("content-type"), Some("text/html;charset=utf-8"));
    assert!(reply.body.is_empty());
    // A query is kept, and what Java's URI class does not allow in user info is encoded: "a b:p@ss/%".
    doris.client.add_user(&User { name: "a b".to_owned(), password: "p@ss/%".to_owned(), may_load: true }).unwrap();
    let credentials = "Authorization: Basic YSBiOnBAc3MvJQ==";
    let reply = put(&doris, &format!("{LOAD}?x=1"), &[credentials, "Expect: 100-continue", "Content-Length: 0"]);
    assert_eq!(reply.header("location"), Some(format!("http://a%20b:p%40ss%2F%25@{}{LOAD}?x=1", doris.be()).as_str()));
}

#[test]
fn a_two_phase_operation_is_redirected_without_expect() {
    let doris = Doris::start();
    for path in ["/api/shop/_stream_load_2pc", "/api/shop/orders/_stream_load_2pc"] {
        let headers = [ROOT, "txn_id: 7", "txn_operation: commit", "Content-Length: 0"];
        let reply = put(&doris, path, &headers);
        assert_eq!(reply.status, 307);
        let location = reply.header("location").unwrap().to_owned();
        assert_eq!(location, format!("http://root:@{}{path}?", doris.be()));
        let reply = Connection::open(doris.be()).request("PUT", path, &headers).json();
        assert!(reply["msg"].as_str().unwrap().contains("transaction [7] not found"));
    }
}

#[test]
fn what_an_fe_refuses_is_told_in_its_own_dialect() {
    let doris = Doris::start();
    let message = |path: &str, headers: &[&str]| {
        let reply = put(&doris, path, headers);
        assert_eq!(reply.status, 200);
        reply.text().to_owned()
    };
    let failed = |text: &str| format!("{{\"status\":\"FAILED\",\"msg\":\"{text}\"}}");
    assert_eq!(message(LOAD, &[ROOT, "Content-Length: 0"]), failed("There is no 100-continue header"));
    let expect = [ROOT, "Expect: anything", "Content-Length: 0"];
    assert_eq!(message("/api//orders/_stream_load", &expect), failed("No database selected."));
    assert_eq!(message("/api/shop//_stream_load", &expect), failed("No table selected."));
    let two_phase = "/api/shop/_stream_load_2pc";
    assert_eq!(message(two_phase, &[ROOT, "txn_operation: commit"]), failed("No transaction id or label selected."));
    assert_eq!(message(two_phase, &[ROOT, "txn_id: 1"]), failed("No transaction operation('commit' or 'abort') selected."));
    assert_eq!(
        message(LOAD, &[ROOT, "group_commit: maybe"]),
        failed("Header `group_commit` can only be `sync_mode`, `async_mode` or `off_mode`.")
    );
}

#[test]
fn an_fe_refuses_users_with_http_200_and_code_401() {
    let doris = Doris::start();
    let expect = ["Expect: 100-continue", "Content-Length: 0"];
    let without = put(&doris, LOAD, &expect);
    assert_eq!((without.status, without.text()), (200, r#"{"msg":"Unauthorized","code":401,"data":"Need auth information.","count":0}"#));
    let wrong = put(&doris, LOAD, &[&["Authorization: Basic cm9vdDp3cm9uZw=="], &expect[..]].concat()).json();
    assert_eq!(wrong["code"], 401);
    assert!(wrong["data"].as_str().unwrap().starts_with("Access denied for user 'root@127.0.0.1'"), "{wrong}");
    doris.client.add_user(&User { name: "reader".to_owned(), password: "p".to_owned(), may_load: false }).unwrap();
    let reader = put(&doris, LOAD, &[&["Authorization: Basic cmVhZGVyOnA="], &expect[..]].concat()).json();
    assert_eq!(reader["status"], "FAILED");
}

#[test]
fn redirects_go_round_the_bes_or_where_a_test_wants_them() {
    let any = "127.0.0.1:0".parse().unwrap();
    let doris = Doris::with(|options| options.be = vec![any, any]);
    let target = || {
        let reply = put(&doris, LOAD, &[ROOT, "Expect: 100-continue", "Content-Length: 0"]);
        let location = reply.header("location").unwrap().to_owned();
        let end = location.find("/api").unwrap();
        location["http://root:@".len()..end].to_owned()
    };
    let bes: Vec<String> = doris.addresses.be.iter().map(ToString::to_string).collect();
    let (first, second) = (target(), target());
    assert!(first != second && bes.contains(&first) && bes.contains(&second));
    doris.client.change_settings(&json!({ "redirect": { "backend": 1 } })).unwrap();
    assert_eq!([target(), target()], [bes[1].clone(), bes[1].clone()]);
    doris.client.arm(&Fault::new(FaultName::FeRedirectTo).param("0")).unwrap();
    assert_eq!([target(), target()], [bes[0].clone(), bes[1].clone()]);
    doris.client.arm(&Fault::new(FaultName::FeRedirectDead)).unwrap();
    let dead = target();
    assert!(std::net::TcpStream::connect(&dead).is_err(), "nobody may listen on {dead}");
    doris.client.change_settings(&json!({ "redirect": "dead" })).unwrap();
    assert_eq!(target(), dead);
    doris.client.change_settings(&json!({ "redirect": { "address": "elsewhere:8040" } })).unwrap();
    assert_eq!(target(), "elsewhere:8040");

    // Any BE finishes what another one began.
    let id = doris.precommit("here", "{}\n");
    let headers = [format!("txn_id: {id}"), "txn_operation: commit".to_owned()];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    assert_eq!(crate::support::two_phase(doris.addresses.be[1], "shop", &headers)["status"], "Success");
}

#[test]
fn body_bytes_sent_to_an_fe_are_counted() {
    let doris = Doris::start();
    let head = [ROOT, "Expect: 100-continue"];
    // Announced but not sent is fine, and so is the end of an empty chunked body.
    put(&doris, LOAD, &[&head[..], &["Content-Length: 3"]].concat());
    let mut empty = Connection::open(doris.fe());
    let chunked = "PUT /api/shop/orders/_stream_load HTTP/1.1\r\nHost: doris\r\nAuthorization: Basic cm9vdDo=\r\nExpect: \
                   100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
    empty.send(format!("{chunked}0\r\n\r\n").as_bytes());
    assert_eq!(empty.read_reply().status, 307);
    assert_eq!(doris.client.traffic().unwrap().fe_bodies, 0);
    // Sent with the head, it is counted and still answered.
    let mut early = Connection::open(doris.fe());
    early.send(format!("{chunked}3\r\nabc\r\n0\r\n\r\n").as_bytes());
    assert_eq!(early.read_reply().status, 307);
    assert_eq!(doris.client.traffic().unwrap().fe_bodies, 1);
}

#[test]
fn an_fe_with_jetty_12_closes_on_an_early_body() {
    let doris = Doris::with_settings(|settings| {
        settings.fe_early_close = true;
        settings.fe_early_window_ms = 5_000;
    });
    let mut early = Connection::open(doris.fe());
    early.send_head("PUT", LOAD, &[ROOT, "Expect: 100-continue", "Content-Length: 100000"]);
    // The write may fail already; what counts is that no redirect can be read.
    early.try_send(&[b'x'; 1_000]).ok();
    assert!(early.try_read_reply().is_none());
    assert_eq!(doris.client.traffic().unwrap().fe_bodies, 1);
    doris.client.change_settings(&json!({ "fe_early_window_ms": 20 })).unwrap();
    assert_eq!(put(&doris, LOAD, &[ROOT, "Expect: 100-continue", "Content-Length: 100000"]).status, 307);
}

#[test]
fn a_follower_redirects_loads_to_bes_and_questions_to_the_master() {
    let any = "127.0.0.1:0".parse().unwrap();
    let doris = Doris::with(|options| options.follower_fe = vec![any]);
    let follower = doris.addresses.follower_fe[0];
    let ask = |method: &str, path: &str, headers: &[&str]| Connection::open(follower).request(method, path, headers);
    let load = ask("PUT", LOAD, &[ROOT, "Expect: 100-continue", "Content-Length: 0"]);
    assert_eq!(load.header("location"), Some(format!("http://root:@{}{LOAD}?", doris.be()).as_str()));
    let state = ask("GET", "/api/shop/get_load_state?label=L", &[ROOT]);
    assert_eq!(state.status, 307);
    let expected = format!("http://root:@{}/api/shop/get_load_state?label=L", doris.fe());
    assert_eq!(state.header("location"), Some(expected.as_str()));
}

#[test]
fn helper_endpoints_answer_in_the_entity_dialect() {
    let doris = Doris::start();
    let get = |path: &str| Connection::open(doris.fe()).request("GET", path, &[ROOT]);
    let be = doris.be();
    let backends = get("/api/backends?is_alive=true");
    let expected = format!(
        "{{\"msg\":\"success\",\"code\":0,\"data\":{{\"backends\":[{{\"ip\":\"127.0.0.1\",\"http_port\":{},\"is_alive\":true}}]}},\"count\":0}}",
        be.port()
    );
    assert_eq!(backends.text(), expected);
    assert_eq!(get("/api/health").json()["data"]["online_backend_num"], 1);
    let unique = TableSpec::any("shop", "unique").column("id", doris_emulator::ColumnType::Bigint).unique(&["id"]);
    doris.client.create_table(&unique).unwrap();
    let schema = get("/api/shop/unique/_schema").json();
    assert_eq!((&schema["data"]["keysType"], &schema["data"]["properties"][0]["type"]), (&"UNIQUE_KEYS".into(), &"BIGINT".into()));
    assert_eq!(get("/api/shop/nothing/_schema").json()["code"], 1);
}

#[test]
fn the_state_of_a_label_can_be_asked_and_cancelled() {
    let doris = Doris::with_settings(|settings| settings.publish_delay_ms = 60_000);
    assert_eq!(doris.label_state("L"), "UNKNOWN");
    let id = doris.precommit("L", "{}\n");
    let state = Connection::open(doris.fe()).request("GET", "/api/shop/get_load_state?label=L", &[ROOT]);
    assert_eq!(state.text(), r#"{"msg":"success","code":0,"data":"PRECOMMITTED","count":0}"#);
    let cancel = |label: &str| {
        let path = format!("/api/shop/_cancel?label={label}");
        Connection::open(doris.fe()).request("POST", &path, &[ROOT, "Content-Length: 0"]).json()
    };
    assert_eq!(cancel("L")["code"], 0);
    assert_eq!(doris.label_state("L"), "ABORTED");
    let message = doris.commit(id)["msg"].as_str().unwrap().to_owned();
    assert!(message.ends_with("is already aborted. abort reason: user cancel"), "{message}");
    assert_eq!((&cancel("L")["code"], &cancel("L")["data"]), (&1.into(), &"transaction not found".into()));
    assert_eq!(cancel("none")["data"], "txn with label none does not exist");
    let id = doris.precommit("L", "{}\n");
    doris.commit(id);
    assert_eq!(doris.label_state("L"), "COMMITTED");
    doris.client.advance_clock(Duration::from_secs(61)).unwrap();
    assert_eq!(doris.label_state("L"), "VISIBLE");
    let unknown = Connection::open(doris.fe()).request("GET", "/api/none/get_load_state?label=L", &[ROOT]).json();
    assert_eq!((&unknown["code"], &unknown["data"]), (&1.into(), &"unknown database, database=none".into()));
}
