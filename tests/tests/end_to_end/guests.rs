//! The same sink in three languages: the contract is not a Rust contract.

use weir_tests::host::Host;
use weir_tests::paths;
use weir_tests::project::Project;

/// Records that each run counts.
const RECORDS: u64 = 2_500;

async fn counts(language: &str) {
    let project = Project::default();
    let out = project.folder("out");
    let pipeline = format!(
        r#"counting:
  source:
    generate: {{ records: {RECORDS} }}
  checkpoint: {{ interval: 1h, records: 1000 }}
  sinks:
    count:
      plugin: count-{language}
      config: {{ directory: /out }}
      grant: {{ folders: {{ /out: {{ path: ./out, write: true }} }} }}
"#
    );
    let end = Host::start(&project.config(&paths::guests(), &pipeline), &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    let mut total = 0;
    for entry in std::fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.ends_with(".count") && !name.starts_with('.'), "{name} is left");
        total += std::fs::read_to_string(path).unwrap().trim().parse::<u64>().unwrap();
    }
    assert_eq!(total, RECORDS, "{language}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_in_rust_counts_every_record_once() {
    counts("rust").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_in_python_counts_every_record_once() {
    counts("python").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_in_javascript_counts_every_record_once() {
    counts("js").await;
}
