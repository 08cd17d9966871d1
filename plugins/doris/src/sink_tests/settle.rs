//! Commit and abort.

use super::*;

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
        let (mut sink, script) = open(Role::Committer, r#","request_timeout":600"#, steps);
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
