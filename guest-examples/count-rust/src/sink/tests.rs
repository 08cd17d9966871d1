#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say so and end")]

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::bindings::weir::sink::types::{Column, ErrorKind, Format, Framing, Input, Role};

#[test]
fn a_count_is_invisible_until_commit() {
    let target = Target::new();
    let mut sink = target.open();
    sink.begin("a-1").unwrap();
    sink.invoke("a-1", &batch(3)).unwrap();
    sink.invoke("a-1", &batch(4)).unwrap();
    assert_eq!(target.files(), [""; 0]);
    let prepared = sink.precommit("a-1").unwrap();
    assert_eq!((prepared.handle.as_slice(), prepared.records), (b"7".as_slice(), Some(7)));
    assert_eq!(target.files(), [".a-1.count"]);
    assert_eq!(sink.commit("a-1", b"7").unwrap(), Verdict::Committed);
    assert_eq!(target.files(), ["a-1.count"]);
    assert_eq!(fs::read_to_string(target.0.path().join("a-1.count")).unwrap(), "7\n");
}

#[test]
fn another_process_can_commit_and_a_repeat_says_so() {
    let target = Target::prepared("a-1", 2);
    assert_eq!(target.open().commit("a-1", b"2").unwrap(), Verdict::Committed);
    assert_eq!(target.open().commit("a-1", b"2").unwrap(), Verdict::AlreadyCommitted);
    assert_eq!(target.files(), ["a-1.count"]);
}

#[test]
fn commit_never_claims_work_that_nobody_prepared() {
    assert_eq!(Target::new().open().commit("a-1", b"2").unwrap(), Verdict::Unknown);
    let target = Target::prepared("a-1", 2);
    target.open().commit("a-1", b"2").unwrap();
    assert_eq!(target.open().commit("a-1", b"3").unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(target.open().commit("a-1", b"two").unwrap_err().kind, ErrorKind::Broken);
}

#[test]
fn abort_removes_what_was_prepared_and_may_be_repeated() {
    let target = Target::prepared("a-1", 2);
    target.open().abort("a-1").unwrap();
    assert_eq!(target.files(), [""; 0]);
    target.open().abort("a-1").unwrap();
    target.open().abort("never-begun").unwrap();
}

#[test]
fn abort_of_a_committed_count_is_a_conflict_and_leaves_it() {
    let target = Target::prepared("a-1", 2);
    target.open().commit("a-1", b"2").unwrap();
    assert_eq!(target.open().abort("a-1").unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(target.files(), ["a-1.count"]);
}

#[test]
fn a_taken_label_is_a_conflict() {
    let target = Target::prepared("a-1", 2);
    assert_eq!(target.open().begin("a-1").unwrap_err().kind, ErrorKind::Conflict);
    target.open().commit("a-1", b"2").unwrap();
    assert_eq!(target.open().begin("a-1").unwrap_err().kind, ErrorKind::Conflict);
}

#[test]
fn a_writer_can_go_on_after_an_abort() {
    let target = Target::new();
    let mut sink = target.open();
    sink.begin("a-1").unwrap();
    sink.invoke("a-1", &batch(3)).unwrap();
    sink.abort("a-1").unwrap();
    sink.begin("a-2").unwrap();
    assert_eq!(sink.precommit("a-2").unwrap().records, Some(0));
}

#[test]
fn calls_out_of_order_are_the_callers_mistake() {
    let target = Target::new();
    let mut sink = target.open();
    assert_eq!(sink.invoke("a-1", &batch(1)).unwrap_err().kind, ErrorKind::Broken);
    assert_eq!(sink.precommit("a-1").unwrap_err().kind, ErrorKind::Broken);
    sink.begin("a-1").unwrap();
    assert_eq!(sink.begin("a-2").unwrap_err().kind, ErrorKind::Broken);
    assert_eq!(sink.precommit("a-2").unwrap_err().kind, ErrorKind::Broken);
}

#[test]
fn a_folder_that_is_not_granted_is_refused_with_the_line_to_add() {
    let Err(error) = Sink::open(&setup(r#"{"directory":"/nowhere/at/all"}"#)) else { panic!("it opened") };
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(error.message.contains("folders: { /nowhere/at/all: ./counts }"), "{}", error.message);
    let Err(error) = Sink::open(&setup(r#"{"folder":"/out"}"#)) else { panic!("it opened") };
    assert_eq!(error.kind, ErrorKind::Refused);
}

struct Target(TempDir);

impl Target {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn prepared(label: &str, records: u32) -> Self {
        let target = Self::new();
        let mut sink = target.open();
        sink.begin(label).unwrap();
        sink.invoke(label, &batch(records)).unwrap();
        sink.precommit(label).unwrap();
        target
    }

    fn open(&self) -> Sink {
        let config = serde_json::json!({ "directory": self.0.path() }).to_string();
        Sink::open(&setup(&config)).map(|(sink, _)| sink).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn setup(config: &str) -> Setup {
    Setup {
        pipeline: "p".to_owned(),
        sink: "s".to_owned(),
        lane: 0,
        lanes: 1,
        role: Role::Writer,
        input: Input { format: Format::Lines, columns: Vec::new() },
        config: config.to_owned(),
        call_limit_ms: 10_000,
    }
}

fn batch(count: u32) -> RecordBatch {
    RecordBatch {
        split: "a.txt".to_owned(),
        first: 0,
        count,
        framing: Framing::LineFeed,
        values: Column { bytes: b"x\n".repeat(count as usize), ends: Vec::new(), absent: Vec::new() },
        keys: None,
        timestamps: None,
        headers: None,
    }
}
