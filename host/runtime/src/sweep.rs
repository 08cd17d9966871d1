//! Working off what generations that ended may have left at their targets, beside the generation that runs now.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use weir_ledger::Ledger;
use weir_protocol::invariants::Event;
use weir_protocol::{Durable, Generation, PipelineFacts, SweepDebt};

use crate::clock;
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

/// Everything that a sweep works with.
pub(crate) struct Sweep {
    pub(crate) facts: Durable<PipelineFacts>,
    pub(crate) committers: Committers,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) watch: Watch,
    /// Since when no instance of an earlier generation can send anything any more.
    pub(crate) gone_since: Instant,
    /// At least this long after `gone_since` for the paying pass, whatever the sinks say.
    pub(crate) least_settle: Duration,
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
            if began >= self.settled_at(debt) {
                self.pay(debt, reports).await?;
            } else {
                settling.push(debt);
            }
        }
        if reports.send(Report::FirstPass).await.is_err() {
            return Ok(());
        }
        settling.sort_by_key(|debt| self.settled_at(debt));
        for debt in settling {
            clock::sleep(self.settled_at(debt).saturating_duration_since(clock::now())).await;
            self.pass(debt).await?;
            self.pay(debt, reports).await?;
        }
        Ok(())
    }

    fn settled_at(&self, debt: &SweepDebt) -> Instant {
        self.gone_since + Duration::from_millis(u64::from(debt.settle_ms())).max(self.least_settle)
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
        self.ledger.discharge(&facts.pipeline, facts.generation, debt.generation).await.map_err(Stop::from_ledger)?;
        self.watch.observe(&Event::DebtPaid(debt.generation))?;
        let _ = reports.send(Report::Paid(debt.generation)).await;
        Ok(())
    }
}
