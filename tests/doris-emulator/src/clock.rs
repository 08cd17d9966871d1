//! The emulator's clock: the machine's, plus an offset that tests move forward.
//!
//! Every time-out and retention period is measured with it, so that "an hour later" takes no hour.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 as the emulator sees them; never goes back, not even over a restart.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    offset_ms: AtomicU64,
}

impl Clock {
    /// A clock that is ahead of the machine's by `offset_ms`, as found in the journal.
    pub(crate) fn ahead_by(offset_ms: u64) -> Self {
        Self { offset_ms: AtomicU64::new(offset_ms) }
    }

    /// The current emulated time.
    pub(crate) fn now_ms(&self) -> u64 {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(real.as_millis()).unwrap_or(u64::MAX).saturating_add(self.offset_ms())
    }

    /// How far the clock is ahead of the machine's.
    pub(crate) fn offset_ms(&self) -> u64 {
        self.offset_ms.load(Ordering::SeqCst)
    }

    /// Moves the clock forward and returns the new offset.
    pub(crate) fn advance(&self, by_ms: u64) -> u64 {
        self.offset_ms.fetch_add(by_ms, Ordering::SeqCst).saturating_add(by_ms)
    }
}
