//! Input that cannot be read: a coded stop that names file and place, and nothing is lost once it is mended.
//!
//! Every kind of bad input is tested with the source alone; this is about what the host makes of it.

use weir_tests::compare::Records;
use weir_tests::emulator::{Emulator, ORDERS_COLUMNS};
use weir_tests::host::Host;
use weir_tests::project::Project;

use crate::fixture::{assert_shown_once, orders_config};

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_no_utf8_stops_the_pipeline_and_names_its_place_and_after_mending_nothing_is_lost() {
    let project = Project::default();
    let emulator = Emulator::start(&project.folder("doris")).await;
    emulator.create_table("shop", "orders", ORDERS_COLUMNS).await;
    let good = weir_tests::orders::lines(3_000).await;
    let half = good[..good.len() / 2].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    project.folder("in");
    let bad = [&good[..half], b"{\"customer\": \"\xff\xfe\"}\n", &good[half..]].concat();
    project.write("in/a.jsonl", &bad);
    let config = orders_config(&project, &emulator, "file: { path: in/*.jsonl, format: json }", "interval: 1h");

    let end = Host::start(&config, &[]).wait().await;
    assert_eq!(end.code, Some(5), "{}", end.log);
    let line = good[..half].iter().filter(|byte| **byte == b'\n').count() + 1;
    for part in ["error[", "in/a.jsonl", &format!("line {line}")] {
        assert!(end.log.contains(part), "{part:?} is not in:\n{}", end.log);
    }
    assert_eq!(emulator.unfinished().await, 0, "what was under way has been aborted");
    assert_eq!(emulator.visible_rows("shop", "orders").await, 0);

    // Mended by editing the line in place: nothing of the file was decided, so it is read anew.
    project.write("in/a.jsonl", &good);
    let end = Host::start(&config, &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    let mut read = Records::default();
    read.add_lines(&good[..]);
    assert_shown_once(&read, &emulator, &project.join("out")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_doris_refuses_stops_the_pipeline_with_the_words_of_doris_and_shows_nothing_of_its_epoch() {
    let project = Project::default();
    let emulator = Emulator::start(&project.folder("doris")).await;
    let strict =
        ORDERS_COLUMNS.iter().fold(doris_emulator::TableSpec::any("shop", "orders"), |spec, (name, kind)| spec.column(*name, *kind));
    tokio::task::block_in_place(|| emulator.client.create_table(&strict)).unwrap();
    project.folder("in");
    let mut lines = weir_tests::orders::lines(100).await;
    lines.extend_from_slice(b"{\"id\": \"not a number\"}\n");
    project.write("in/a.jsonl", &lines);
    let config = orders_config(&project, &emulator, "file: { path: in/*.jsonl, format: json }", "interval: 1h");

    let end = Host::start(&config, &[]).wait().await;
    assert_eq!(end.code, Some(5), "{}", end.log);
    for part in ["error[plugin-bad-data]", "too many filtered rows", "a.jsonl"] {
        assert!(end.log.contains(part), "{part:?} is not in:\n{}", end.log);
    }
    assert_eq!(emulator.visible_rows("shop", "orders").await, 0);
    assert_eq!(emulator.unfinished().await, 0);
    assert_eq!(weir_tests::compare::temporary_files(&project.join("out")), Vec::<String>::new());
}
