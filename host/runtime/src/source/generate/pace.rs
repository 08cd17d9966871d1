//! A rate kept over time. What was not taken in time is not made up for, beyond one second's worth.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;

/// Lets records through at a rate.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Records a second; `None`: as fast as they are taken.
    rate: Option<f64>,
    state: Mutex<Option<State>>,
}

/// How many records may go now.
#[derive(Clone, Copy, Debug)]
struct State {
    allowed: f64,
    at: Instant,
}

impl Pace {
    /// A split's part of a rate over all splits.
    pub(super) fn new(rate: Option<u64>, splits: u64, split: u64) -> Self {
        let own = rate.map(|rate| (rate / splits + u64::from(split < rate % splits)) as f64);
        // A split whose part is nothing still goes on now and then, or the source would never end.
        Self { rate: own.map(|rate| rate.max(1.0 / splits as f64)), state: Mutex::new(None) }
    }

    /// How many of `most` records may go now. Waits a little if none may.
    pub(super) async fn due(&self, most: u64, wait: Duration) -> u64 {
        let Some(rate) = self.rate else { return most };
        let now = self.allowed(rate);
        if now < 1.0 {
            clock::sleep(Duration::from_secs_f64((1.0 - now) / rate).min(wait)).await;
        }
        (self.allowed(rate) as u64).min(most)
    }

    /// So many records have gone.
    pub(super) fn took(&self, records: u64) {
        if let Some(state) = self.state.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            state.allowed -= records as f64;
        }
    }

    fn allowed(&self, rate: f64) -> f64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let state = state.get_or_insert(State { allowed: 0.0, at: now });
        let gained = now.duration_since(state.at).as_secs_f64() * rate;
        state.allowed = (state.allowed + gained).min(rate.max(1.0));
        state.at = now;
        state.allowed
    }
}
