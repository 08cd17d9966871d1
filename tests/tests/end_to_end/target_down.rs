//! A target that does not answer.

use weir_tests::host::{Host, eventually};

use crate::fixture::Orders;

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_is_down_stalls_the_pipeline_after_two_epochs_and_loses_nothing() {
    let orders = Orders::new(100_000, ", rate: 20_000", "interval: 100ms").await;
    let host = Host::start(&orders.config, &[]);
    eventually("some epochs are visible", async || orders.emulator.visible_rows("shop", "orders").await > 2_000).await;
    orders.emulator.fail_commits(true).await;
    eventually("two epochs wait", async || orders.emulator.unfinished().await >= 2).await;
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(orders.emulator.unfinished().await <= 2, "a third epoch has begun");
    }
    orders.emulator.fail_commits(false).await;
    let end = host.wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    orders.assert_exactly_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_target_is_down_says_that_commits_are_outstanding_and_the_next_start_makes_them() {
    let orders = Orders::new(50_000, ", rate: 20_000", "interval: 100ms").await;
    let host = Host::start(&orders.config, &[]);
    eventually("some epochs are visible", async || orders.emulator.visible_rows("shop", "orders").await > 2_000).await;
    orders.emulator.fail_commits(true).await;
    eventually("an epoch waits", async || orders.emulator.unfinished().await >= 1).await;
    host.terminate();
    let end = host.wait().await;
    assert_eq!(end.code, Some(6), "{}", end.log);

    orders.emulator.fail_commits(false).await;
    let end = Host::start(&orders.config, &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    orders.assert_exactly_once().await;
}
