//! Badly behaved plugins in one host: each pipeline ends with a coded error, the host lives, and another pipeline goes on.
//!
//! What each abuse does to one instance is tested with the engine alone; this is about the host around it.

use std::net::TcpListener;

use weir_tests::compare::{Comparison, Records};
use weir_tests::host::Host;
use weir_tests::paths;
use weir_tests::project::Project;

/// One badly behaved pipeline: its name, its plugin's config, its limits, and the code that it must end with.
struct Abuse {
    name: &'static str,
    config: &'static str,
    limits: &'static str,
    code: &'static str,
}

const ABUSES: &[Abuse] = &[
    Abuse { name: "traps", config: "abuse: trap", limits: "call: 10s", code: "plugin-trap" },
    Abuse { name: "traps-in-precommit", config: "abuse: trap, in: precommit", limits: "call: 10s", code: "plugin-trap" },
    Abuse { name: "loops-for-ever", config: "abuse: spin", limits: "call: 1s", code: "plugin-timeout" },
    Abuse { name: "waits-for-ever", config: "abuse: wait-http, address: \"SILENT\"", limits: "call: 1s", code: "plugin-timeout" },
    Abuse { name: "grows", config: "abuse: grow", limits: "memory: 64MiB", code: "plugin-memory" },
    Abuse { name: "rejects-twice", config: "abuse: reject-twice", limits: "call: 10s", code: "plugin-rejection" },
    Abuse { name: "rejects-out-of-range", config: "abuse: reject-out-of-range", limits: "call: 10s", code: "plugin-rejection" },
    Abuse { name: "returns-a-huge-handle", config: "abuse: huge-handle", limits: "memory: 512MiB", code: "plugin-handle-size" },
    Abuse {
        name: "calls-a-host-not-granted",
        config: "abuse: call-http, address: \"127.0.0.1:9\"",
        limits: "call: 10s",
        code: "http-not-granted",
    },
    Abuse { name: "rejects-a-record", config: "abuse: reject-last", limits: "call: 10s", code: "record-rejected" },
    Abuse { name: "counts-wrongly", config: "abuse: wrong-records", limits: "call: 10s", code: "prepared-wrong" },
    Abuse {
        name: "loses-what-was-decided",
        config: "abuse: verdict, in: commit, verdict: lost",
        limits: "call: 10s",
        code: "transaction-lost",
    },
    Abuse {
        name: "forgets-what-was-decided",
        config: "abuse: verdict, in: commit, verdict: unknown",
        limits: "call: 10s",
        code: "transaction-unknown",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn every_abuse_ends_in_a_coded_error_and_other_pipelines_go_on() {
    // It accepts connections, in its backlog, and never says anything.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let project = Project::default();
    let mut pipelines = pipeline("well-behaved", "profile: { ends: false }", "call: 10s", &[]);
    project.folder("out-well-behaved");
    for abuse in ABUSES {
        project.folder(&format!("out-{}", abuse.name));
        let config = abuse.config.replace("SILENT", &silent);
        let grants: &[&str] = if abuse.name == "calls-a-host-not-granted" { &[] } else { &[&silent] };
        pipelines.push_str(&pipeline(abuse.name, &config, abuse.limits, grants));
    }
    pipelines.push_str(&pipeline("floods-the-log", "abuse: flood-log, bytes: 5000000", "call: 30s", &[]));
    project.folder("out-floods-the-log");

    let end = Host::start(&project.config(&paths::test_guests(), &pipelines), &[]).wait().await;
    assert_eq!(end.code, Some(5), "{}", end.log);
    for abuse in ABUSES {
        let stopped = format!("error[{}]: pipeline {} stopped", abuse.code, abuse.name);
        assert!(end.log.contains(&stopped), "{stopped:?} is not in:\n{}", end.log);
    }
    for good in ["well-behaved", "floods-the-log"] {
        assert!(!end.log.contains(&format!("pipeline {good} stopped")), "{}", end.log);
        let mut read = Records::default();
        weir_tests::orders::each(1_000, |line| read.add(line)).await;
        let mut shown = read.same_hashes();
        for entry in std::fs::read_dir(project.join(&format!("out-{good}"))).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "data") {
                shown.add_lines(std::io::BufReader::new(std::fs::File::open(path).unwrap()));
            }
        }
        assert_eq!(read.compare(&shown), Comparison { found: 1_000, missing: 0, duplicated: 0 }, "{good}");
    }
    assert!(end.log.len() < 2_000_000, "a flood of {} bytes went through", end.log.len());
}

fn pipeline(name: &str, config: &str, limits: &str, http: &[&str]) -> String {
    let http: Vec<String> = http.iter().map(|address| format!("\"{address}\"")).collect();
    format!(
        r#"{name}:
  source:
    generate: {{ records: 1000 }}
  restart: {{ backoff: 10ms, max_backoff: 20ms, attempts: 1 }}
  sinks:
    out:
      plugin: unruly
      config: {{ directory: /out, {config} }}
      grant: {{ folders: {{ /out: {{ path: ./out-{name}, write: true }} }}, http: [{}] }}
      limits: {{ {limits} }}
"#,
        http.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_loses_what_was_decided_does_not_keep_the_other_sink_from_committing() {
    let project = Project::default();
    let mut pipeline = "orders:\n  source:\n    generate: { records: 1000 }\n  sinks:\n".to_owned();
    for (sink, config) in [("loses", "abuse: verdict, verdict: lost"), ("takes-its-time", "abuse: slow, ms: 1500")] {
        project.folder(sink);
        pipeline.push_str(&format!(
            "    {sink}: {{ plugin: unruly, config: {{ directory: /out, in: commit, {config} }}, grant: {{ folders: {{ /out: ./{sink} }} }} }}\n"
        ));
    }
    let end = Host::start(&project.config(&paths::test_guests(), &pipeline), &[]).wait().await;
    assert_eq!(end.code, Some(5), "{}", end.log);
    assert!(end.log.contains("error[transaction-lost]"), "{}", end.log);
    let names = std::fs::read_dir(project.join("takes-its-time")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.ends_with(".data")).count(), 1, "the other sink's transaction is not committed:\n{}", end.log);
}
