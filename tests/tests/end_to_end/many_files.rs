//! Very many, very small files.

use weir_tests::compare::{Comparison, Records};
use weir_tests::host::Host;
use weir_tests::paths;
use weir_tests::project::Project;

/// Their slices would not fit into one decision.
const FILES: u64 = 13_000;

#[tokio::test(flavor = "multi_thread")]
async fn thirteen_thousand_files_are_more_than_one_decision_can_name_and_each_record_is_shown_once() {
    let project = Project::default();
    project.folder("in");
    let mut read = Records::default();
    for number in 0..FILES {
        let line = format!("the only line of file {number}");
        read.add(line.as_bytes());
        project.write(&format!("in/{number:05}.txt"), line + "\n");
    }
    let mut pipeline =
        "files:\n  source:\n    file: { path: in/*.txt, format: lines }\n  checkpoint: { interval: 1h }\n  sinks:\n".to_owned();
    for out in ["one", "two"] {
        project.folder(out);
        let grant = format!("{{ folders: {{ /out: ./{out} }} }}");
        pipeline.push_str(&format!("    {out}: {{ plugin: file, config: {{ directory: /out, prefix: a }}, grant: {grant} }}\n"));
    }
    let end = Host::start(&project.config(&paths::plugins(), &pipeline), &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    for out in ["one", "two"] {
        let mut shown = read.same_hashes();
        shown.add_folder(&project.join(out), None);
        assert_eq!(read.compare(&shown), Comparison { found: FILES, missing: 0, duplicated: 0 }, "{out}");
    }
}
