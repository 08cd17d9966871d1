//! The check before a run.

use super::*;

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
