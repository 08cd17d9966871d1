//! The host is killed at any moment, again and again.

use std::time::Duration;

use weir_tests::host::Host;

use crate::fixture::Orders;

/// How often it is killed in one run.
const KILLS: u32 = 50;

#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_at_random_moments_lose_nothing_and_double_nothing() {
    let orders = Orders::new(600_000, ", rate: 60_000", "interval: 50ms").await;
    let mut kills = 0;
    while kills < KILLS {
        let mut host = Host::start(&orders.config, &[]);
        tokio::time::sleep(random_moment()).await;
        assert!(host.kill().await, "the source ended after {kills} kills; it must be longer");
        kills += 1;
    }
    let end = Host::start(&orders.config, &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    orders.assert_exactly_once().await;
}

/// Up to 400 ms after the start: before the lease, in the recovery, in the sweep, in an epoch, in a barrier, in a decision, in a commit.
fn random_moment() -> Duration {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).unwrap();
    Duration::from_micros(u64::from(u16::from_le_bytes(bytes)) * 400_000 / 65_536)
}
