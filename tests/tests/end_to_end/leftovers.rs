//! What a host that was killed has left at a target.

use weir_tests::host::{Host, eventually};

use crate::fixture::Orders;

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_reaches_doris_after_the_host_was_killed_and_restarted_leaves_nothing_prepared() {
    let orders = Orders::new(60_000, ", rate: 30_000", "interval: 100ms").await;
    let mut host = Host::start(&orders.config, &[]);
    eventually("some epochs are visible", async || orders.emulator.visible_rows("shop", "orders").await > 3_000).await;
    orders.emulator.hold_next_load().await;
    eventually("a load is held whole, and Doris does not know its label yet", async || orders.emulator.held_loads().await == 1).await;
    assert!(host.kill().await);

    let before = orders.emulator.visible_rows("shop", "orders").await;
    let host = Host::start(&orders.config, &[]);
    eventually("the next host goes on", async || orders.emulator.visible_rows("shop", "orders").await > before).await;
    orders.emulator.release_held_loads().await;

    let end = host.wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    orders.assert_exactly_once().await;
}
