//! The only place that asks the time, or for randomness. Everything else is lent values.

use std::time::Duration;

use tokio::time::Instant;

/// Now, on the monotonic clock: for deadlines. A wall clock that is stepped changes nothing here.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits.
pub(crate) async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Growing pauses between tries: doubled each time up to a cap, and each shortened at random by up to a quarter, so that pipelines that failed
/// together do not come back together.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    cap: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first` up to `cap`.
    pub(crate) fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap, next: first }
    }

    /// The pause to make now; the one after it is longer.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next.min(self.cap);
        self.next = pause.saturating_mul(2).min(self.cap);
        pause.mul_f64(1.0 - f64::from(random_byte()) / 255.0 / 4.0)
    }

    /// It worked: begin with short pauses again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Only for jitter: without randomness the pauses are merely regular.
fn random_byte() -> u8 {
    let mut byte = [0];
    match getrandom::fill(&mut byte) {
        Ok(()) => byte[0],
        Err(_) => 0,
    }
}
