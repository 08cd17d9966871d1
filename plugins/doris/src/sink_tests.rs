//! Whole calls of the sink against a scripted Doris: which requests go where, in which order, and what is answered to the host.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap is a failed test")]

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
fn one_load_streams_the_epoch_and_its_handle_commits() {
    let (mut sink, script) = begun("", vec![load(&success(3))]);
    assert_eq!(sink.invoke(LABEL, lines(&[r#"{"id":1}"#, r#"{"id":2}"#])).unwrap().len(), 0);
    assert_eq!(script.body(), "{\"id\":1}\n{\"id\":2}\n", "rows wait for something");
    sink.invoke(LABEL, lines(&[r#"{"id":3}"#])).unwrap();
    let prepared = sink.precommit(LABEL).unwrap();
    assert_eq!((prepared.records, script.bodies()), (Some(3), (1, 0)));
    assert_eq!(prepared.handle, handle());

    script.then([to_be_2pc(), two_phase("Success", "transaction [18036] commit successfully.")]);
    assert_eq!(sink.commit(&transaction(), &prepared.handle).unwrap(), Verdict::Committed);
    assert_eq!(
        script.lines(),
        [
            "Put http://fe1:8030/api/shop/orders/_stream_load",
            "Put http://be1:8040/api/shop/orders/_stream_load",
            "Put http://fe1:8030/api/shop/_stream_load_2pc",
            "Put http://be1:8040/api/shop/_stream_load_2pc",
        ]
    );
    for leg in [0, 1] {
        for (name, value) in [
            ("authorization", "Basic cm9vdDpzM2NyZXQ="),
            ("expect", "100-continue"),
            ("two_phase_commit", "true"),
            ("label", LABEL),
            ("format", "json"),
            ("read_json_by_line", "true"),
            ("accept-encoding", "identity"),
        ] {
            assert_eq!(script.header(leg, name).as_deref(), Some(value), "{name} on leg {leg}");
        }
    }
    assert_eq!(script.header(0, "content-length").as_deref(), Some("0"), "a front end gets no body");
    assert_eq!(script.header(1, "content-length"), None, "the body is chunked");
    for leg in [2, 3] {
        assert_eq!(script.header(leg, "txn_id").as_deref(), Some("18036"));
        assert_eq!(script.header(leg, "txn_operation").as_deref(), Some("commit"));
        assert_eq!(script.header(leg, "label"), None);
        assert!(script.header(leg, "authorization").is_some());
    }
    for request in 0..4 {
        assert_eq!(script.header(request, "group_commit"), None);
    }
}

#[test]
fn opening_asks_nothing_of_the_target() {
    for role in [Role::Writer, Role::Committer] {
        let (_, script) = open(role, "", vec![]);
        assert_eq!(script.lines(), [""; 0]);
    }
    let profile = Sink::open(&setup(Role::Writer, Format::Csv, r#","settle_s":5"#), Script::default()).unwrap().1;
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
fn a_front_end_that_is_down_is_passed_over_and_not_asked_first_again() {
    let (mut sink, script) = open(Role::Writer, "", vec![Step::Fail(unreachable("fe1:8030")), to_be(), load(&success(0))]);
    sink.begin(&transaction()).unwrap();
    sink.precommit(LABEL).unwrap();
    script.then([to_be(), load(&success(0))]);
    sink.begin(&transaction()).unwrap();
    assert!(script.lines()[1].contains("fe2") && script.lines()[3].contains("fe2"), "{:?}", script.lines());
}

#[test]
fn a_back_end_that_is_down_is_asked_for_again() {
    let dead = || load_ended(0, Err(unreachable("be1:8040")));
    let (mut sink, script) = open(Role::Writer, "", vec![to_be(), dead(), redirect("http://be2:8040", LOAD), load(&success(0))]);
    sink.begin(&transaction()).unwrap();
    assert_eq!(script.lines()[3], "Put http://be2:8040/api/shop/orders/_stream_load");
    script.assert_used_up();
}

#[test]
fn a_label_that_a_back_end_may_have_seen_is_never_sent_again() {
    let broke = load_ended(0, Err(connection_broke("be1:8040")));
    let (mut sink, script) = open(Role::Writer, "", vec![to_be(), broke, state("PREPARE")]);
    let error = sink.begin(&transaction()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    script.assert_used_up();
}

#[test]
fn back_ends_in_the_config_are_used_directly_and_in_turn() {
    let more = r#","be":["http://be1:8040","http://be2:8040"]"#;
    let (mut sink, script) = open(Role::Writer, more, vec![load(&success(0))]);
    sink.begin(&transaction()).unwrap();
    sink.precommit(LABEL).unwrap();
    script.then([Step::Fail(unreachable("be2:8040")), two_phase("Success", "")]);
    assert_eq!(sink.commit(&transaction(), &handle()).unwrap(), Verdict::Committed);
    let servers: Vec<String> = script.lines().iter().map(|line| line.split(':').nth(1).unwrap().to_owned()).collect();
    assert_eq!(servers, ["//be1", "//be2", "//be1"]);
}

#[test]
fn redirects_are_followed_only_where_they_may_lead() {
    let downgrade = r#","fe":["https://fe"]"#.to_owned();
    let listed = r#","addresses":{"10.0.0.7:8040":"http://be7.example:80/x"}"#.to_owned();
    for (more, to, expected) in [(&downgrade, BE, "https"), (&listed, "http://10.0.0.8:8040", "addresses")] {
        let json = format!(r#"{{"fe":["http://fe"],"database":"shop","table":"orders","user":"root"{more}}}"#);
        let json = if more.contains("\"fe\"") { json.replacen(r#""fe":["http://fe"],"#, "", 1) } else { json };
        let script = Script::new([redirect(to, LOAD)]);
        let setup = Setup { config: json, ..setup(Role::Writer, Format::Json, "") };
        let (mut sink, _) = Sink::open(&setup, script.clone()).unwrap();
        let error = sink.begin(&transaction()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(!error.message.contains("s3cret"), "{}", error.message);
        assert_eq!(script.lines().len(), 1, "credentials went to a place they may not go to");
    }
    let (mut sink, script) = open(Role::Writer, &listed, vec![redirect("http://10.0.0.7:8040", LOAD), load(&success(0))]);
    sink.begin(&transaction()).unwrap();
    assert_eq!(script.lines()[1], "Put http://be7.example:80/x/api/shop/orders/_stream_load");
}

#[test]
fn a_follower_that_redirects_to_its_master_is_followed() {
    let (mut sink, script) = open(Role::Writer, "", vec![redirect("http://fe2:8030", LOAD), to_be(), load(&success(0))]);
    sink.begin(&transaction()).unwrap();
    script.assert_used_up();
    let (mut sink, _) = open(Role::Writer, "", (0..6).map(|_| redirect("http://fe2:8030", LOAD)).collect());
    assert_eq!(sink.begin(&transaction()).unwrap_err().kind, ErrorKind::Unavailable);
}

#[test]
fn a_taken_label_is_a_conflict() {
    for existing in [r#""ExistingJobStatus": "PRECOMMITTED","#, r#""ExistingJobStatus": "FINISHED","#, r#""ExistingJobStatus": "","#, ""] {
        let reply = format!(
            r#"{{"TxnId": -1, "Label": "{LABEL}", "Status": "Label Already Exists", {existing} "Message": "Label [weir-l] has already been used"}}"#
        );
        let (mut sink, _) = open(Role::Writer, "", vec![to_be(), load_ended(0, Ok(ok(&reply)))]);
        let error = sink.begin(&transaction()).unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Conflict, "Label Already Exists"));
    }
}

#[test]
fn what_a_front_end_refuses_is_refused_at_once() {
    let denied = r#"{"msg":"Unauthorized","code":401,"data":"Access denied for user 'root@1.2.3.4'","count":0}"#;
    let (mut sink, script) = open(Role::Writer, "", vec![answer(denied)]);
    let error = sink.begin(&transaction()).unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Refused, "401"));
    assert!(error.message.contains("Access denied for user"), "{}", error.message);
    script.assert_used_up();
}

#[test]
fn a_missing_grant_is_refused_and_says_what_to_grant() {
    let nowhere = vec![Step::Fail(not_granted("fe1:8030")), Step::Fail(not_granted("fe2:8030"))];
    let (mut sink, _) = open(Role::Writer, "", nowhere);
    let error = sink.begin(&transaction()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(error.message.contains("add `fe1:8030` to the sink's `grant: { http: [...] }`"), "{}", error.message);
    let (mut sink, _) = open(Role::Writer, "", vec![to_be(), load_ended(0, Err(not_granted("be1:8040")))]);
    assert_eq!(sink.begin(&transaction()).unwrap_err().kind, ErrorKind::Refused);
    // A granted front end that is down may come back.
    let (mut sink, _) = open(Role::Writer, "", vec![Step::Fail(not_granted("fe1:8030")), Step::Fail(unreachable("fe2:8030"))]);
    assert_eq!(sink.begin(&transaction()).unwrap_err().kind, ErrorKind::Unavailable);
}

#[test]
fn a_final_reply_in_the_middle_of_the_body_is_the_error() {
    for (message, kind) in [
        ("[NOT_AUTHORIZED]no valid Basic authorization", ErrorKind::Refused),
        ("[DATA_QUALITY_ERROR]Encountered unqualified data, stop processing", ErrorKind::BadData),
        ("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = timeout by txn manager", ErrorKind::Unavailable),
    ] {
        let (mut sink, script) = begun("", vec![load_ended(4, Ok(ok(&fail(message))))]);
        sink.invoke(LABEL, lines(&["1"])).unwrap();
        let error = sink.invoke(LABEL, lines(&["2"])).unwrap_err();
        assert_eq!(error.kind, kind, "{message}");
        assert!(error.message.contains(message), "{}", error.message);
        for again in [sink.invoke(LABEL, lines(&["3"])).unwrap_err(), sink.precommit(LABEL).unwrap_err()] {
            assert_eq!((again.kind, again.message), (kind, error.message.clone()), "an earlier error is forgotten");
        }
        assert_eq!(script.bodies(), (0, 1));
    }
}

#[test]
fn a_reply_that_waits_at_the_next_batch_is_seen_before_more_is_sent() {
    let (mut sink, script) = begun("", vec![load_ended(2, Ok(ok(&success(1))))]);
    let error = sink.invoke(LABEL, lines(&["1"])).unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Unavailable, "Success"), "half an epoch is no success");
    assert_eq!(script.body(), "1\n");
}

#[test]
fn a_connection_that_breaks_is_resolved_by_label() {
    for (word, kind) in [
        ("PREPARE", ErrorKind::Unavailable),
        ("ABORTED", ErrorKind::Unavailable),
        ("UNKNOWN", ErrorKind::Unavailable),
        ("PRECOMMITTED", ErrorKind::Conflict),
        ("COMMITTED", ErrorKind::Conflict),
        ("VISIBLE", ErrorKind::Conflict),
    ] {
        let (mut sink, script) = begun("", vec![load_ended(2, Err(connection_broke("be1:8040"))), state(word)]);
        let error = sink.invoke(LABEL, lines(&["1"])).unwrap_err();
        assert_eq!(error.kind, kind, "{word}");
        assert!(error.message.contains("connection terminated"), "{}", error.message);
        assert_eq!(script.lines()[2], "Get http://fe1:8030/api/shop/get_load_state?label=weir-l");
    }
}

#[test]
fn a_target_that_stops_reading_ends_the_call_in_time() {
    let stuck = Step::Upload(UploadScript { ends_after: usize::MAX, stalls_after: 3, response: Ok(ok("")) });
    let (mut sink, script) = begun("", vec![stuck]);
    sink.invoke(LABEL, lines(&["1"])).unwrap();
    let start = script.now_ms();
    let error = sink.invoke(LABEL, lines(&["2"])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(script.now_ms() - start < u64::from(CALL_MS));
}

#[test]
fn precommit_after_an_unclear_outcome_asks_what_became_of_the_label() {
    for (word, kind) in [
        ("PRECOMMITTED", ErrorKind::Unavailable),
        ("ABORTED", ErrorKind::Unavailable),
        ("UNKNOWN", ErrorKind::Unavailable),
        ("COMMITTED", ErrorKind::Conflict),
        ("VISIBLE", ErrorKind::Conflict),
    ] {
        let lost = load_ended(usize::MAX, Err(connection_broke("be1:8040")));
        let (mut sink, script) = begun("", vec![lost, state(word)]);
        sink.invoke(LABEL, lines(&["1"])).unwrap();
        assert_eq!(sink.precommit(LABEL).unwrap_err().kind, kind, "{word}");
        script.assert_used_up();
    }
}

#[test]
fn bad_data_comes_with_the_first_bad_rows_and_without_credentials_for_them() {
    let reply = r#"{"TxnId": 9, "Label": "weir-l", "TwoPhaseCommit": "true", "Status": "Fail", "Message": "[DATA_QUALITY_ERROR]too many filtered rows",
        "NumberTotalRows": 2, "NumberFilteredRows": 1, "ErrorURL": "http://be1:8040/api/_load_error_log?file=__shard_0/x"}"#;
    let log = "\nReason: column_name[id], the value is not a number. src line [abc];\nsecond\nthird\nfourth\n";
    let (mut sink, script) = begun("", vec![load(reply), answer(log)]);
    sink.invoke(LABEL, lines(&["1", "abc"])).unwrap();
    let error = sink.precommit(LABEL).unwrap_err();
    assert_eq!(error.kind, ErrorKind::BadData);
    for part in ["too many filtered rows", "http://be1:8040/api/_load_error_log?file=__shard_0/x", "src line [abc]"] {
        assert!(error.message.contains(part), "{part} is missing in {}", error.message);
    }
    assert!(!error.message.contains("fourth"));
    assert_eq!(script.lines()[2], "Get http://be1:8040/api/_load_error_log?file=__shard_0/x");
    assert_eq!(script.header(2, "authorization"), None);

    let (mut sink, _) = begun("", vec![load(reply), Step::Fail(not_granted("be1:8040"))]);
    assert_eq!(sink.precommit(LABEL).unwrap_err().kind, ErrorKind::BadData, "the log is not worth another error");
}

#[test]
fn rows_that_do_not_add_up_are_bad_data() {
    for rows in [1, 3] {
        let (mut sink, _) = begun("", vec![load(&success(rows))]);
        sink.invoke(LABEL, lines(&["1", "2"])).unwrap();
        assert_eq!(sink.precommit(LABEL).unwrap_err().kind, ErrorKind::BadData);
    }
    let (mut sink, _) = begun("", vec![load("<html>")]);
    assert_eq!(sink.precommit(LABEL).unwrap_err().kind, ErrorKind::Unavailable);
}

fn committer(steps: Vec<Step>) -> (Result<Verdict, Error>, Script) {
    let (mut sink, script) = open(Role::Committer, "", steps);
    let start = script.now_ms();
    let verdict = sink.commit(&transaction(), &handle());
    assert!(script.now_ms() - start < u64::from(CALL_MS), "the call is over its limit");
    script.assert_used_up();
    (verdict, script)
}

#[test]
fn commit_answers_with_a_verdict_after_whatever_came_before() {
    let again = || {
        vec![
            to_be_2pc(),
            two_phase("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = get tableList write lock timeout, tableList=(Table [id=1])"),
        ]
    };
    let rpc = || vec![to_be_2pc(), two_phase("THRIFT_RPC_ERROR", "failed to call frontend service, FE address=h:9020, reason: x")];
    let not_master = || vec![to_be_2pc(), two_phase("NOT_MASTER", "TStatus: FE is not master")];
    let broke = || vec![to_be_2pc(), Step::Fail(connection_broke("be1:8040")), to_be_2pc(), Step::Fail(connection_broke("be1:8040"))];
    let done = || vec![to_be_2pc(), two_phase("Success", "transaction [18036] commit successfully.")];
    let visible = || {
        vec![
            to_be_2pc(),
            two_phase("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = transaction [18036] is already visible, not pre-committed."),
        ]
    };
    let aborted = || {
        vec![
            to_be_2pc(),
            two_phase(
                "ANALYSIS_ERROR",
                "TStatus: errCode = 2, detailMessage = transaction [18036] is already aborted. abort reason: timeout by txn manager",
            ),
        ]
    };
    let missing = |word| {
        vec![to_be_2pc(), two_phase("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = transaction [18036] not found"), state(word)]
    };
    let steps: Vec<(&str, Vec<Vec<Step>>, Verdict)> = vec![
        ("at once", vec![done()], Verdict::Committed),
        ("the back end called twice", vec![visible()], Verdict::AlreadyCommitted),
        ("a busy table", vec![again(), done()], Verdict::Committed),
        ("a changing master", vec![not_master(), not_master(), done()], Verdict::Committed),
        ("an answer lost inside of Doris", vec![rpc(), visible()], Verdict::AlreadyCommitted),
        ("an answer lost on the way", vec![broke(), visible()], Verdict::AlreadyCommitted),
        ("an unreadable answer", vec![vec![to_be_2pc(), answer("<html>")], done()], Verdict::Committed),
        ("a time-out inside of Doris", vec![aborted()], Verdict::Lost),
        ("an abort in between", vec![rpc(), aborted()], Verdict::Lost),
        ("forgotten, once visible", vec![missing("VISIBLE")], Verdict::AlreadyCommitted),
        ("forgotten, once committed", vec![missing("COMMITTED")], Verdict::AlreadyCommitted),
        ("forgotten, once aborted", vec![missing("ABORTED")], Verdict::Lost),
        ("forgotten", vec![missing("UNKNOWN")], Verdict::Unknown),
        ("forgotten, label used by another", vec![missing("PRECOMMITTED")], Verdict::Unknown),
    ];
    for (case, steps, verdict) in steps {
        assert_eq!(committer(steps.into_iter().flatten().collect()).0.unwrap(), verdict, "{case}");
    }
}

#[test]
fn commit_that_stays_unclear_is_resolved_by_label_or_unavailable() {
    let unclear = || vec![to_be_2pc(), Step::Fail(timed_out("be1:8040")), to_be_2pc(), Step::Fail(timed_out("be1:8040"))];
    for (word, expected) in
        [("VISIBLE", Some(Verdict::AlreadyCommitted)), ("ABORTED", Some(Verdict::Lost)), ("PRECOMMITTED", None), ("UNKNOWN", None)]
    {
        let steps = unclear().into_iter().chain([state(word)]).collect();
        let (mut sink, script) = open(Role::Committer, r#","request_timeout_ms":600000"#, steps);
        let answer = sink.commit(&transaction(), &handle());
        assert!(script.now_ms() < u64::from(CALL_MS), "the call is over its limit");
        match expected {
            Some(verdict) => assert_eq!(answer.unwrap(), verdict, "{word}"),
            None => assert_eq!(answer.unwrap_err().kind, ErrorKind::Unavailable, "{word}"),
        }
    }
}

#[test]
fn commit_that_only_a_person_can_help_is_refused() {
    let denied =
        "TStatus: errCode = 2, detailMessage = Access denied; you need (at least one of) the (LOAD) privilege(s) for this operation";
    let (answer, _) = committer(vec![to_be_2pc(), two_phase("ANALYSIS_ERROR", denied)]);
    assert_eq!(answer.unwrap_err().kind, ErrorKind::Refused);
    let (answer, _) = committer(vec![Step::Fail(not_granted("fe1:8030")), Step::Fail(not_granted("fe2:8030"))]);
    assert_eq!(answer.unwrap_err().kind, ErrorKind::Refused);
}

#[test]
fn a_handle_that_cannot_be_meant_is_never_sent() {
    for handle in [&br#"{"v":1,"db":"shop","label":"weir-l","txn":-1}"#[..], br#"{"v":1,"db":"shop","label":"other","txn":5}"#, b"x"] {
        let (mut sink, script) = open(Role::Committer, "", vec![]);
        assert_eq!(sink.commit(&transaction(), handle).unwrap_err().kind, ErrorKind::Broken);
        assert_eq!(script.lines().len(), 0);
    }
}

fn aborter(steps: Vec<Step>) -> Result<(), Error> {
    let (mut sink, script) = open(Role::Committer, "", steps);
    let answer = sink.abort(&transaction());
    assert!(script.now_ms() < u64::from(CALL_MS), "the call is over its limit");
    script.assert_used_up();
    assert_eq!(script.header(0, "label").as_deref(), Some(LABEL));
    assert_eq!(script.header(0, "txn_operation").as_deref(), Some("abort"));
    assert_eq!(script.header(0, "txn_id"), None);
    answer
}

#[test]
fn abort_is_done_only_when_nothing_is_left() {
    let said = |status, msg| vec![to_be_2pc(), two_phase(status, msg)];
    let done = || said("Success", "label [weir-l] abort successfully.");
    let not_running = || said("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = running transaction not found, label=weir-l");
    let rpc = || said("THRIFT_RPC_ERROR", "failed to call frontend service, FE address=h:9020, reason: x");
    let with = |mut steps: Vec<Step>, word| {
        steps.push(state(word));
        steps
    };
    type Tries = Vec<Vec<Step>>;
    let cases: Vec<(&str, Tries, Option<ErrorKind>)> = vec![
        ("aborted", vec![with(done(), "ABORTED")], None),
        ("never there", vec![said("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = transaction not found, label=weir-l")], None),
        ("aborted before", vec![with(not_running(), "ABORTED")], None),
        ("aborted before and forgotten", vec![with(not_running(), "UNKNOWN")], None),
        (
            "the back end called twice",
            vec![said("ANALYSIS_ERROR", "transaction [18036] is already aborted, abort reason: User Abort")],
            None,
        ),
        ("committed", vec![with(not_running(), "COMMITTED")], Some(ErrorKind::Conflict)),
        (
            "visible",
            vec![said("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = transaction [18036] is already VISIBLE, could not abort.")],
            Some(ErrorKind::Conflict),
        ),
        ("cloud mode says success though it is visible", vec![with(done(), "VISIBLE")], Some(ErrorKind::Conflict)),
        ("cloud mode says success though it is prepared", vec![with(done(), "PRECOMMITTED"), with(done(), "ABORTED")], None),
        ("an answer lost inside of Doris", vec![with(rpc(), "ABORTED")], None),
        ("not aborted yet", vec![with(rpc(), "PRECOMMITTED"), with(done(), "ABORTED")], None),
        ("lost, and it is committed", vec![with(rpc(), "VISIBLE")], Some(ErrorKind::Conflict)),
        (
            "no right to",
            vec![said("ANALYSIS_ERROR", "TStatus: errCode = 2, detailMessage = Access denied for user 'root@1.2.3.4'")],
            Some(ErrorKind::Refused),
        ),
    ];
    for (case, steps, expected) in cases {
        assert_eq!(aborter(steps.into_iter().flatten().collect()).err().map(|error| error.kind), expected, "{case}");
    }
}

#[test]
fn abort_cuts_off_a_load_of_its_own_first() {
    let (mut sink, script) = begun("", vec![load(&success(1))]);
    sink.invoke(LABEL, lines(&["1"])).unwrap();
    script.then([to_be_2pc(), two_phase("Success", "label [weir-l] abort successfully."), state("ABORTED")]);
    sink.abort(&transaction()).unwrap();
    assert_eq!(script.bodies(), (0, 1));
    assert_eq!(sink.precommit(LABEL).unwrap_err().kind, ErrorKind::Broken);
    script.then([to_be(), load(&success(0))]);
    sink.begin(&Transaction { label: LABEL.into(), epoch: 8 }).unwrap();
}

#[test]
fn abort_of_another_label_leaves_the_open_load_alone() {
    let (mut sink, script) = begun("", vec![load(&success(1))]);
    script.then([to_be_2pc(), two_phase("ANALYSIS_ERROR", "transaction not found, label=other")]);
    sink.abort(&Transaction { label: "other".into(), epoch: 6 }).unwrap();
    sink.invoke(LABEL, lines(&["1"])).unwrap();
    sink.precommit(LABEL).unwrap();
    assert_eq!(script.bodies(), (1, 0));
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

const SCHEMA: &str = r#"{"msg":"success","code":0,"data":{"properties":[{"name":"id","type":"INT"},{"name":"Amount","type":"INT"}],"keysType":"DUP_KEYS","status":200},"count":0}"#;

fn probe(columns: &[&str], more: &str, steps: Vec<Step>) -> (Option<Error>, Script) {
    let script = Script::new(steps);
    let input = Input { format: Format::Csv, columns: columns.iter().map(|name| (*name).to_owned()).collect() };
    let setup = Setup { input, ..setup(Role::Probe, Format::Csv, more) };
    let error = Sink::open(&setup, script.clone()).err();
    script.assert_used_up();
    (error, script)
}

#[test]
fn a_probe_checks_without_writing() {
    let no_such = "TStatus: errCode = 2, detailMessage = transaction not found, label=weir-probe";
    let (error, script) =
        probe(&["ID", "amount"], "", vec![answer(SCHEMA), answer(SCHEMA), to_be(), to_be_2pc(), two_phase("ANALYSIS_ERROR", no_such)]);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        script.lines(),
        [
            "Get http://fe1:8030/api/shop/orders/_schema",
            "Get http://fe2:8030/api/shop/orders/_schema",
            "Put http://fe1:8030/api/shop/orders/_stream_load",
            "Put http://fe1:8030/api/shop/_stream_load_2pc",
            "Put http://be1:8040/api/shop/_stream_load_2pc",
        ]
    );
}

#[test]
fn a_probe_finds_what_would_stop_the_run() {
    let denied = r#"{"msg":"Unauthorized","code":401,"data":"Access denied for user 'root@1.2.3.4'","count":0}"#;
    let (error, _) = probe(&[], "", vec![answer(denied), answer(denied)]);
    assert_eq!(error.unwrap().kind, ErrorKind::Refused);
    let (error, _) = probe(&["id", "price"], "", vec![answer(SCHEMA), answer(SCHEMA)]);
    let error = error.unwrap();
    assert!(error.kind == ErrorKind::Refused && error.message.contains("price") && error.message.contains("Amount"), "{}", error.message);
    let (error, _) = probe(&[], "", vec![Step::Fail(not_granted("fe1:8030"))]);
    assert_eq!(error.unwrap().kind, ErrorKind::Refused);
    let (error, _) = probe(
        &[],
        "",
        vec![
            answer(SCHEMA),
            answer(SCHEMA),
            answer(r#"{"status":"FAILED","msg":"Access denied; you need (at least one of) the (LOAD) privilege(s) for this operation"}"#),
        ],
    );
    assert_eq!(error.unwrap().kind, ErrorKind::Refused);
    let old = vec![answer(SCHEMA), answer(SCHEMA), to_be(), answer(r#"{"status":"FAILED","msg":"No transaction id selected."}"#)];
    let (error, _) = probe(&[], "", old);
    assert!(error.unwrap().message.contains("2.1"));
    let down: TransportError = unreachable("fe2:8030");
    let no_such = "transaction not found, label=weir-probe";
    let (error, _) = probe(&["id"], "", vec![answer(SCHEMA), Step::Fail(down), to_be(), to_be_2pc(), two_phase("ANALYSIS_ERROR", no_such)]);
    assert!(error.is_none(), "one front end is enough: {error:?}");
}
