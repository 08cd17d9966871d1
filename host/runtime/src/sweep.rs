//! Working off what generations that ended may have left at their targets, beside the generation that runs now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use weir_ledger::{Ledger, LedgerError};
use weir_protocol::invariants::Event;
use weir_protocol::{Durable, Generation, PipelineFacts, SweepDebt};

use crate::clock::{self, Backoff};
use crate::commit::Committers;
use crate::stop::Stop;
use crate::watch::Watch;

/// What the driver hears.
#[derive(Debug)]
pub(crate) enum Report {
    /// Every label of every debt has been aborted once: whatever a former host had completed is gone, and the target has been asked whether it
    /// shows anything that was never decided. Decisions may be made from here on.
    FirstPass,
    /// A debt is paid and struck from the ledger.
    Paid(Generation),
    /// It cannot be done.
    Failed(Stop),
}

/// How long after a lane was cut off a blocking call of its instances may still take effect on this machine.
const CUT_OFF_SETTLE: Duration = Duration::from_secs(5);

/// Since when the generations before this one can send nothing any more.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    /// Those of earlier processes: since this one holds the lease.
    earlier_processes: Instant,
    /// Those of this process: since they were closed, and whether a lane had to be cut off in the middle of a call.
    ours: BTreeMap<Generation, (Instant, bool)>,
}

impl Gone {
    /// This process has run none yet.
    pub(crate) fn since(lease_taken: Instant) -> Self {
        Self { earlier_processes: lease_taken, ours: BTreeMap::new() }
    }

    /// A generation of this process has been closed now.
    pub(crate) fn add(&mut self, generation: Generation, cut_off: bool) {
        self.ours.insert(generation, (clock::now(), cut_off));
    }

    /// When everything that a generation sent has taken effect, or never will.
    fn settled_at(&self, debt: &SweepDebt) -> Instant {
        let settle = Duration::from_millis(u64::from(debt.settle_ms()));
        match self.ours.get(&debt.generation) {
            Some((closed, true)) => *closed + settle.max(CUT_OFF_SETTLE),
            Some((closed, false)) => *closed + settle,
            None => self.earlier_processes + settle,
        }
    }
}

/// Everything that a sweep works with.
pub(crate) struct Sweep {
    pub(crate) facts: Durable<PipelineFacts>,
    pub(crate) committers: Committers,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) watch: Watch,
    pub(crate) gone: Gone,
}

impl Sweep {
    /// Makes the first pass, and another one when everything must have settled.
    pub(crate) async fn run(self, reports: mpsc::Sender<Report>) {
        if let Err(stop) = self.work(&reports).await {
            // The driver may be gone, and then the debt simply stays.
            let _ = reports.send(Report::Failed(stop)).await;
        }
    }

    async fn work(&self, reports: &mpsc::Sender<Report>) -> Result<(), Stop> {
        let mut settling = Vec::new();
        for debt in &self.facts.get().debts {
            let began = clock::now();
            self.pass(debt).await?;
            if began >= self.gone.settled_at(debt) {
                self.pay(debt, reports).await?;
            } else {
                settling.push(debt);
            }
        }
        if reports.send(Report::FirstPass).await.is_err() {
            return Ok(());
        }
        settling.sort_by_key(|debt| self.gone.settled_at(debt));
        for debt in settling {
            clock::sleep(self.gone.settled_at(debt).saturating_duration_since(clock::now())).await;
            self.pass(debt).await?;
            self.pay(debt, reports).await?;
        }
        Ok(())
    }

    /// Aborts every transaction that the generation may have left.
    async fn pass(&self, debt: &SweepDebt) -> Result<(), Stop> {
        for permit in self.facts.sweep(debt)? {
            self.watch.observe(&Event::Abort(&permit.transaction().label))?;
            self.committers.abort(&permit).await?;
            self.watch.observe(&Event::Aborted(&permit.transaction().label))?;
        }
        Ok(())
    }

    async fn pay(&self, debt: &SweepDebt, reports: &mpsc::Sender<Report>) -> Result<(), Stop> {
        let facts = self.facts.get();
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        while let Err(error) = self.ledger.discharge(&facts.pipeline, facts.generation, debt.generation).await {
            let LedgerError::Unavailable { message } = error else { return Err(Stop::from_ledger(error)) };
            tracing::warn!(pipeline = %facts.pipeline, %message, "cannot strike a sweep debt yet");
            clock::sleep(backoff.pause()).await;
        }
        self.watch.observe(&Event::DebtPaid(debt.generation))?;
        let _ = reports.send(Report::Paid(debt.generation)).await;
        Ok(())
    }
}
