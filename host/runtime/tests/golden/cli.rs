//! Transcripts of the command line: `tests/golden/cli/*.trycmd`. `TRYCMD=overwrite` writes what is found.

#[test]
fn commands_answer_as_their_transcripts_say() {
    let cases = super::root().join("tests/golden/cli");
    trycmd::TestCases::new()
        .register_bin("weir", trycmd::schema::Bin::Path(env!("CARGO_BIN_EXE_weir").into()))
        .env("NO_COLOR", "1")
        .env("WEIR_LOG", "")
        .case(cases.join("*.trycmd"))
        .case(cases.join("*.toml"));
}

#[test]
fn every_shell_gets_a_script_that_completes_and_an_editor_the_schema() {
    let weir = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_weir")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(weir(&["completions", shell]).contains("epochs"), "{shell}");
    }
    let schema: serde_json::Value = serde_json::from_str(&weir(&["schema"])).unwrap();
    assert_eq!(schema, weir::config::file_schema());
    assert!(jsonschema::meta::is_valid(&schema), "the schema of the configuration is not a JSON Schema");
}
