//! Ledgers that do not know what the target shows, and ledgers that must not touch each other.

use weir_tests::host::{Host, eventually};

use crate::fixture::{Orders, generated_orders, orders_config};
use weir_tests::compare::{Comparison, Records};
use weir_tests::project::Project;

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_restored_from_an_older_copy_stops_and_doubles_nothing() {
    let orders = Orders::new(300_000, ", rate: 60_000", "interval: 100ms").await;
    let mut host = Host::start(&orders.config, &[]);
    eventually("some epochs are visible", async || orders.emulator.visible_rows("shop", "orders").await > 20_000).await;
    assert!(host.kill().await);
    let copy = orders.project.folder("copy");
    for name in ["weir.db", "weir.db-wal"] {
        std::fs::copy(orders.project.join(name), copy.join(name)).unwrap();
    }

    let before = orders.emulator.visible_rows("shop", "orders").await;
    let mut host = Host::start(&orders.config, &[]);
    eventually("more epochs are visible", async || orders.emulator.visible_rows("shop", "orders").await > before + 10_000).await;
    assert!(host.kill().await);

    for name in ["weir.db", "weir.db-wal", "weir.db-shm"] {
        let _ = std::fs::remove_file(orders.project.join(name));
    }
    for name in ["weir.db", "weir.db-wal"] {
        std::fs::copy(copy.join(name), orders.project.join(name)).unwrap();
    }
    let end = Host::start(&orders.config, &[]).wait().await;
    assert_eq!(end.code, Some(5), "{}", end.log);
    assert!(end.log.contains("ledger-is-older"), "{}", end.log);

    let read = generated_orders(300_000).await;
    let mut shown = read.same_hashes();
    orders.emulator.add_visible("shop", "orders", &mut shown).await;
    assert_eq!(read.compare(&shown).duplicated, 0, "nothing is there twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ledgers_with_one_pipeline_name_do_not_touch_each_others_transactions() {
    let one = Orders::new(100_000, ", rate: 25_000", "interval: 100ms").await;
    let two = Project::default();
    let config = orders_config(&two, &one.emulator, "generate: { records: 100000, rate: 25_000 }", "interval: 100ms");
    let mut first = Host::start(&one.config, &[]);
    let mut second = Host::start(&config, &[]);
    for _ in 0..4 {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert!(first.kill().await && second.kill().await);
        first = Host::start(&one.config, &[]);
        second = Host::start(&config, &[]);
    }
    let (first, second) = (first.wait().await, second.wait().await);
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{}\n{}", first.log, second.log);

    let mut read = Records::default();
    for _ in 0..2 {
        weir_tests::orders::each(100_000, |line| read.add(line)).await;
    }
    let mut shown = read.same_hashes();
    one.emulator.add_visible("shop", "orders", &mut shown).await;
    assert_eq!(read.compare(&shown), Comparison { found: 200_000, missing: 0, duplicated: 0 });
    assert_eq!(one.emulator.unfinished().await, 0);
}
