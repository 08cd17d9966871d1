//! Stopping when asked.

use std::io::Write;

use weir_tests::compare::Records;
use weir_tests::emulator::{Emulator, ORDERS_COLUMNS};
use weir_tests::host::{Host, eventually};
use weir_tests::project::Project;

use crate::fixture::{Orders, assert_shown_once, orders_config};

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_the_epoch_and_what_was_read_is_visible() {
    let project = Project::default();
    let emulator = Emulator::start(&project.folder("doris")).await;
    emulator.create_table("shop", "orders", ORDERS_COLUMNS).await;
    let config = orders_config(&project, &emulator, "file: { path: in/*.jsonl, format: json, follow: true }", "interval: 1h");
    let input = project.folder("in").join("a.jsonl");
    let lines = weir_tests::orders::lines(5_001).await;
    let last =
        lines.iter().rposition(|byte| *byte == b'\n').and_then(|end| lines[..end].iter().rposition(|byte| *byte == b'\n')).unwrap() + 1;
    let mut file = std::fs::File::create(&input).unwrap();
    file.write_all(&lines[..last]).unwrap();
    let mut read = Records::default();
    read.add_lines(&lines[..last]);
    let mut host = Host::start(&config, &[]);
    eventually("a load is under way", async || emulator.loads_begun().await > 0).await;
    assert_eq!(emulator.visible_rows("shop", "orders").await, 0, "the interval is an hour, so nothing is decided yet");
    assert!(!host.has_ended());
    host.terminate();
    let end = host.wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    assert_shown_once(&read, &emulator, &project.join("out")).await;

    // Nothing is owed, so the next start begins at once and reads only what is new.
    let begun = emulator.loads_begun().await;
    let host = Host::start(&config, &[]);
    file.write_all(&lines[last..]).unwrap();
    read.add_lines(&lines[last..]);
    eventually("the new line is on its way", async || emulator.loads_begun().await > begun).await;
    host.terminate();
    let end = host.wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    assert_shown_once(&read, &emulator, &project.join("out")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bounded_source_ends_with_everything_visible() {
    let orders = Orders::new(20_000, "", "interval: 1h").await;
    let end = Host::start(&orders.config, &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    orders.assert_exactly_once().await;

    let end = Host::start(&orders.config, &[]).wait().await;
    assert_eq!(end.code, Some(0), "a second run finds nothing to do: {}", end.log);
    orders.assert_exactly_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_signals_at_once_end_the_host_and_the_next_start_finishes_what_was_left() {
    let orders = Orders::new(60_000, ", rate: 20_000", "interval: 100ms").await;
    let host = Host::start(&orders.config, &[]);
    eventually("some epochs are visible", async || orders.emulator.visible_rows("shop", "orders").await > 2_000).await;
    host.terminate();
    host.terminate();
    let end = host.wait().await;
    assert!(matches!(end.code, Some(0 | 6)), "{:?}: {}", end.code, end.log);
    assert!(orders.emulator.visible_rows("shop", "orders").await < 60_000, "it read on");

    let end = Host::start(&orders.config, &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    orders.assert_exactly_once().await;
}
