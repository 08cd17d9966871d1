//! One host at a time runs the pipelines of a ledger.

use weir_tests::host::{Host, eventually};

use crate::fixture::Orders;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_host_is_refused_and_told_who_holds_the_ledger() {
    let orders = Orders::new(400_000, ", rate: 40_000", "interval: 200ms").await;
    let first = Host::start(&orders.config, &[]);
    eventually("the first host has decided an epoch", async || orders.emulator.visible_rows("shop", "orders").await > 0).await;

    let second = Host::start(&orders.config, &[]).wait().await;
    assert_eq!(second.code, Some(4), "{}", second.log);
    assert!(second.log.contains("lease-held"), "{}", second.log);
    assert!(second.log.contains(&first.pid().to_string()), "the holder's process is named: {}", second.log);

    let end = first.wait().await;
    assert_eq!(end.code, Some(0), "the first host was not disturbed: {}", end.log);
    orders.assert_exactly_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_follows_a_killed_one_takes_over_at_once() {
    let orders = Orders::new(200_000, ", rate: 40_000", "interval: 200ms").await;
    let mut first = Host::start(&orders.config, &[]);
    eventually("the first host has decided an epoch", async || orders.emulator.visible_rows("shop", "orders").await > 0).await;
    assert!(first.kill().await);

    let before = orders.emulator.visible_rows("shop", "orders").await;
    let since = std::time::Instant::now();
    let second = Host::start(&orders.config, &[]);
    eventually("the second host goes on", async || orders.emulator.visible_rows("shop", "orders").await > before).await;
    assert!(since.elapsed() < weir::lease::LEASE_PERIOD, "the dead holder's lease was waited for: {:?}", since.elapsed());

    let end = second.wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    orders.assert_exactly_once().await;
}
