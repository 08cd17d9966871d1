//! A rate kept over time. What was not taken in time is not made up for, beyond one second's worth.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;

/// Records gather for this long before they go, so that a high rate is not made of single records.
const GATHER_SECONDS: f64 = 0.02;

/// Lets records through at a rate, over all splits of a source.
#[derive(Debug)]
pub(super) struct Pace {
    /// Records a second; `None`: as fast as they are taken.
    rate: Option<f64>,
    state: Mutex<Option<State>>,
}

/// How many records may go.
#[derive(Clone, Copy, Debug)]
struct State {
    allowed: f64,
    at: Instant,
}

impl Pace {
    /// So many records a second.
    pub(super) fn new(rate: Option<u64>) -> Self {
        Self { rate: rate.map(|rate| rate.max(1) as f64), state: Mutex::new(None) }
    }

    /// How many of `most` records may go now, at least one. Waits until it is so, a second at the longest unless others take them.
    pub(super) async fn due(&self, most: u64) -> u64 {
        let Some(rate) = self.rate else { return most };
        let wanted = (rate * GATHER_SECONDS).max(1.0).min(most as f64);
        loop {
            let allowed = self.allowed(rate);
            if allowed >= wanted {
                return (allowed as u64).clamp(1, most);
            }
            clock::sleep(Duration::from_secs_f64((wanted - allowed) / rate)).await;
        }
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
        state.allowed = (state.allowed + gained).min(rate);
        state.at = now;
        state.allowed
    }
}
