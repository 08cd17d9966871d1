//! The invariants' monitor, shared by everything that acts for one generation.

use std::sync::{Arc, Mutex, PoisonError};

use weir_protocol::PipelineFacts;
use weir_protocol::invariants::{Event, Monitor, Violation};

/// Tells the monitor what is about to happen; a violation stops the pipeline before it does.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Arc<Mutex<Monitor>>);

impl Watch {
    /// Watches from the facts that a start has read.
    pub(crate) fn new(facts: &PipelineFacts) -> Self {
        Self(Arc::new(Mutex::new(Monitor::from_facts(facts))))
    }

    /// See [`Monitor::observe`].
    pub(crate) fn observe(&self, event: &Event<'_>) -> Result<(), Violation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).observe(event)
    }

    /// See [`Monitor::finish`].
    pub(crate) fn finish(&self) -> Result<(), Violation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).finish()
    }
}
