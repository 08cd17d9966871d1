//! Which servers are asked, where redirects lead, and what a probe finds out.

use std::net::{Ipv4Addr, SocketAddr};

use doris_emulator::{Fault, FaultName, TableSpec, User};
use serde_json::json;
use weir_engine::Code;
use weir_protocol::Verdict;

use crate::rig::{DB, NOBODY, Rig, csv, json_lines, lines, orders};

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Writes, prepares, decides and commits ten rows with that config.
async fn lands(rig: &mut Rig, change: serde_json::Value) {
    let (_, prepared) = rig.prepare(rig.writer(change).await, &[lines(&orders(0..10))]).await.unwrap();
    let permit = rig.permit(&prepared).await;
    assert_eq!(rig.commit(permit).await.unwrap(), Verdict::Committed);
    assert_eq!(rig.rows(), orders(0..10));
    rig.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn front_ends_that_fail_are_passed_over() {
    for fault in [FaultName::FeDrop, FaultName::FeUnavailable] {
        let mut rig = Rig::with(|options| options.fe = vec![any(), any()]).await;
        rig.doris.arm(&Fault::new(fault)).unwrap();
        lands(&mut rig, json!({})).await;
    }
    let mut rig = Rig::new().await;
    let fe = rig.emulator.fe_url();
    lands(&mut rig, json!({ "fe": [format!("http://{NOBODY}"), fe] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_does_as_well_as_a_master() {
    let mut rig = Rig::with(|options| options.follower_fe = vec![any()]).await;
    let follower = format!("http://{}", rig.emulator.addresses().follower_fe[0]);
    lands(&mut rig, json!({ "fe": [follower] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_back_end_that_is_down_is_asked_for_again() {
    let mut rig = Rig::with(|options| options.be = vec![any(), any()]).await;
    let dead = Fault { param: NOBODY.into(), ..Fault::new(FaultName::FeRedirectTo) };
    rig.doris.arm(&dead).unwrap();
    lands(&mut rig, json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn back_ends_can_be_used_directly() {
    let mut rig = Rig::with(|options| options.be = vec![any(), any()]).await;
    let be: Vec<String> = rig.emulator.addresses().be.iter().map(|address| format!("http://{address}")).collect();
    let before = rig.doris.traffic().unwrap().fe_redirects;
    let (_, prepared) = rig.prepare(rig.writer(json!({ "be": be })).await, &[lines(&orders(0..10))]).await.unwrap();
    assert_eq!(rig.doris.traffic().unwrap().fe_redirects, before);
    let permit = rig.permit(&prepared).await;
    rig.commit(permit).await.unwrap();
    assert_eq!(rig.rows(), orders(0..10));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_only_the_cluster_can_reach_are_mapped() {
    let rig = Rig::new().await;
    let be = format!("http://{}", rig.emulator.addresses().be[0]);
    rig.doris.change_settings(&json!({ "redirect": { "address": "doris-be-0.internal:8040" } })).unwrap();
    let mapped = json!({ "addresses": { "doris-be-0.internal:8040": be } });
    let (_, prepared) = rig.prepare(rig.writer(mapped).await, &[lines(&orders(0..10))]).await.unwrap();
    assert_eq!(prepared.records, Some(10));

    let others = json!({ "addresses": { "doris-be-1.internal:8040": be } });
    let error = rig.writer(others).await.begin(&rig.transaction(2)).await.err().unwrap();
    assert_eq!(error.code(), Code::PluginRefused, "{error}");
    assert!(error.message().contains("doris-be-0.internal:8040"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_an_address_without_a_grant_says_what_to_grant() {
    let mut rig = Rig::new().await;
    let be = rig.emulator.addresses().be[0].to_string();
    rig.grants.http.retain(|granted| granted.to_string() != be);
    let before = rig.doris.traffic().unwrap().load_requests;
    let error = rig.writer(json!({})).await.begin(&rig.transaction(1)).await.err().unwrap();
    assert_eq!(error.code(), Code::HttpNotGranted, "{error}");
    assert!(error.message().contains(&be), "{error}");
    assert_eq!(rig.doris.traffic().unwrap().load_requests, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_front_end_is_sent_a_body_not_even_one_that_closes_on_it() {
    let mut rig = Rig::new().await;
    rig.doris.change_settings(&json!({ "fe_early_close": true })).unwrap();
    lands(&mut rig, json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_checked_before_anything_is_sent() {
    let rig = Rig::new().await;
    rig.doris.add_user(&User { name: "reader".into(), password: "geheim".into(), may_load: false }).unwrap();
    for (user, password) in [("root", "wrong"), ("reader", "geheim")] {
        let writer = rig.writer(json!({ "user": user, "password": password })).await;
        let error = writer.begin(&rig.transaction(1)).await.err().unwrap();
        assert_eq!(error.code(), Code::PluginRefused, "{error}");
        assert!(error.message().contains("Access denied"), "{error}");
        assert!(!error.message().contains(password) && error.log().iter().all(|line| !line.contains(password)), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_finds_out_without_writing() {
    let rig = Rig::new().await;
    let profile = rig.probe(csv(&["id", "note"]), json!({ "settle": 7 })).await.unwrap();
    assert_eq!(profile.settle_ms, 7_000);
    assert!(profile.target.starts_with("doris://shop.orders@127.0.0.1:"), "{}", profile.target);
    let traffic = rig.doris.traffic().unwrap();
    assert_eq!((traffic.load_requests, traffic.loads_begun, traffic.commits, traffic.aborts), (0, 0, 0, 0));
    assert_eq!(rig.doris.transactions(&Default::default()).unwrap(), []);

    for (input, change, words) in [
        (csv(&["id", "price"]), json!({}), "price"),
        (json_lines(), json!({ "table": "nowhere" }), "nowhere"),
        (json_lines(), json!({ "password": "wrong" }), "Access denied"),
    ] {
        let error = rig.probe(input, change).await.err().unwrap();
        assert_eq!(error.code(), Code::PluginRefused, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
    rig.doris.change_settings(&json!({ "dialect": "2.0" })).unwrap();
    let error = rig.probe(json_lines(), json!({})).await.err().unwrap();
    assert!(error.message().contains("2.1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_on_write_table_in_cloud_mode_is_refused_at_its_first_load() {
    let rig = Rig::new().await;
    rig.doris.change_settings(&json!({ "dialect": "cloud" })).unwrap();
    let table = TableSpec::any(DB, "latest").column("id", doris_emulator::ColumnType::Bigint).unique(&["id"]);
    rig.doris.create_table(&table).unwrap();
    let error = rig.writer(json!({ "table": "latest" })).await.begin(&rig.transaction(1)).await.err().unwrap();
    assert_eq!(error.code(), Code::PluginRefused, "{error}");
    assert!(error.message().contains("unsupported for mow table"), "{error}");
}
