//! Whole calls of the sink against a scripted Doris: which requests go where, in which order, and what is answered to the host.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap is a failed test")]

mod probe;
mod settle;
mod write;

use super::*;
use crate::bindings::weir::sink::types::{Column, ErrorKind, Format, Framing, Input};
use crate::testing::{
    Script, Step, UploadScript, answer, connection_broke, load, load_ended, not_granted, ok, redirect, timed_out, unreachable,
};
use crate::transport::TransportError;

const LOAD: &str = "/api/shop/orders/_stream_load";
const TWO_PHASE: &str = "/api/shop/_stream_load_2pc";
const BE: &str = "http://be1:8040";
const LABEL: &str = "weir-l";
const CALL_MS: u32 = 10_000;

fn setup(role: Role, format: Format, more: &str) -> Setup {
    let config = format!(
        r#"{{"fe":["http://fe1:8030","http://fe2:8030"],"database":"shop","table":"orders","user":"root","password":"s3cret"{more}}}"#
    );
    let input = Input { format, columns: vec![] };
    Setup { pipeline: "p".into(), sink: "s".into(), lane: 0, lanes: 1, role, input, config, call_limit_ms: CALL_MS }
}

fn open(role: Role, more: &str, steps: Vec<Step>) -> (Sink<Script>, Script) {
    let script = Script::new(steps);
    let (sink, _) = Sink::open(&setup(role, Format::Json, more), script.clone()).unwrap();
    (sink, script)
}

fn transaction() -> Transaction {
    Transaction { label: LABEL.into(), epoch: 7 }
}

fn lines(records: &[&str]) -> RecordBatch {
    let bytes: Vec<u8> = records.iter().flat_map(|record| [record.as_bytes(), b"\n"].concat()).collect();
    let values = Column { bytes, ends: vec![], absent: vec![] };
    let count = records.len() as u32;
    RecordBatch { split: "s".into(), first: 0, count, framing: Framing::LineFeed, values, keys: None, timestamps: None, headers: None }
}

fn success(rows: u32) -> String {
    format!(
        r#"{{"TxnId": 18036, "Label": "{LABEL}", "TwoPhaseCommit": "true", "Status": "Success", "Message": "OK", "NumberTotalRows": {rows},
            "NumberFilteredRows": 0, "BeginTxnTimeMs": 3, "StreamLoadPutTimeMs": 4}}"#
    )
}

fn fail(message: &str) -> String {
    format!(r#"{{"TxnId": -1, "Label": "{LABEL}", "TwoPhaseCommit": "true", "Status": "Fail", "Message": "{message}"}}"#)
}

fn two_phase(status: &str, msg: &str) -> Step {
    answer(&format!(r#"{{"status": "{status}", "msg": "{msg}"}}"#))
}

fn state(state: &str) -> Step {
    answer(&format!(r#"{{"msg":"success","code":0,"data":"{state}","count":0}}"#))
}

fn to_be() -> Step {
    redirect(BE, LOAD)
}

fn to_be_2pc() -> Step {
    redirect(BE, TWO_PHASE)
}

fn handle() -> Vec<u8> {
    br#"{"v":1,"db":"shop","label":"weir-l","txn":18036}"#.to_vec()
}

fn begun(more: &str, mut steps: Vec<Step>) -> (Sink<Script>, Script) {
    steps.insert(0, to_be());
    let (mut sink, script) = open(Role::Writer, more, steps);
    sink.begin(&transaction()).unwrap();
    (sink, script)
}

#[test]
fn opening_asks_nothing_of_the_target() {
    for role in [Role::Writer, Role::Committer] {
        let (_, script) = open(role, "", vec![]);
        assert_eq!(script.lines(), [""; 0]);
    }
    let profile = Sink::open(&setup(Role::Writer, Format::Csv, r#","settle":5"#), Script::default()).unwrap().1;
    assert_eq!((profile.target.as_str(), profile.settle_ms), ("doris://shop.orders@fe1:8030,fe2:8030", 5_000));
    assert_eq!((profile.prepared_lifetime_s, profile.ends, profile.max_batch_bytes), (Some(3_600), false, 1 << 20));
}

#[test]
fn records_without_fields_are_refused_at_open_but_old_debts_are_settled() {
    for role in [Role::Writer, Role::Probe] {
        let error = Sink::open(&setup(role, Format::Lines, ""), Script::default()).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Refused);
    }
    assert!(Sink::open(&setup(Role::Committer, Format::Lines, ""), Script::default()).is_ok());
    let error = Sink::open(&setup(Role::Writer, Format::Json, r#","load_headers":{"Label":"x"}"#), Script::default()).err().unwrap();
    assert!(error.message.contains("Label"), "{}", error.message);
}

#[test]
fn calls_out_of_order_are_the_callers_bug() {
    let (mut sink, _) = open(Role::Writer, "", vec![to_be(), load(&success(0))]);
    assert_eq!(sink.invoke(LABEL, lines(&["1"])).unwrap_err().kind, ErrorKind::Broken);
    assert_eq!(sink.precommit(LABEL).unwrap_err().kind, ErrorKind::Broken);
    sink.begin(&transaction()).unwrap();
    assert_eq!(sink.begin(&transaction()).unwrap_err().kind, ErrorKind::Broken);
    assert_eq!(sink.invoke("other", lines(&["1"])).unwrap_err().kind, ErrorKind::Broken);
    sink.precommit(LABEL).unwrap();
    let (mut sink, _) = open(Role::Committer, "", vec![]);
    assert_eq!(sink.begin(&transaction()).unwrap_err().kind, ErrorKind::Broken);
}
