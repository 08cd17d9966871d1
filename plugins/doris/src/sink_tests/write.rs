//! Begin, invoke and precommit.

use super::*;

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

    let elsewhere = reply.replace("http://be1:8040", "http://be9:8040");
    let (mut sink, script) = begun("", vec![load(&elsewhere)]);
    assert!(sink.precommit(LABEL).unwrap_err().message.contains("http://be9:8040/api"), "a person may still look");
    assert_eq!(script.lines().len(), 2, "a server that the load did not go to was asked");
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
