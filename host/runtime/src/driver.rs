//! One generation of one pipeline: read the facts, settle what they ask for, fill epochs, decide them, commit them. Recovery is the same path
//! as a start: the facts of a crashed run are merely facts with something left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{RwLock, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use weir_ledger::{Decided, Ledger, LedgerError};
use weir_protocol::decide::{EpochDraft, LaneEpoch, unsettled};
use weir_protocol::invariants::Event;
use weir_protocol::{
    CommitPermit, Confirmation, Decision, Durable, Epoch, Generation, Labels, Lane, Manifest, PipelineFacts, PipelineId, PipelineState,
    SinkId, SplitId,
};

use crate::clock::{self, Backoff};
use crate::commit::Committers;
use crate::config::PipelineConfig;
use crate::lane::{self, Command, Filling, LaneSetup};
use crate::lease::Lease;
use crate::progress::{PipelineState as Shown, Publisher};
use crate::shutdown::Shutdown;
use crate::sink::Sink;
use crate::source::{BatchLimits, Source};
use crate::stop::{Stop, Then};
use crate::sweep::{self, Gone, Sweep};
use crate::watch::Watch;

/// How long decided handles may take to commit once the pipeline is asked to stop.
pub(crate) const COMMIT_GRACE: Duration = Duration::from_secs(30);
/// How long a confirmation waits for a decision to carry it.
const CONFIRMATION_WAIT: Duration = Duration::from_secs(1);
/// How long a lane may take to close before it is cut off.
const CLOSE_WAIT: Duration = Duration::from_secs(15);
/// Largest batch, in bytes.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// Largest batch, in records.
const MAX_BATCH_RECORDS: u32 = 65_536;
/// Slices in the handles of one decision after which the epoch ends, so that an epoch of many small files stays far below
/// [`weir_protocol::MAX_DECISION_BYTES`]; a slice takes about 700 bytes.
const MAX_SLICES_PER_DECISION: u64 = 4_000;
/// Commands that a lane has not taken yet, and reports that the driver has not.
const QUEUED_MESSAGES: usize = 64;

/// How a generation ended without a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The source has ended, and everything read is visible.
    EndOfInput,
    /// A stop was asked for; everything decided is visible.
    ShutDown,
    /// A stop was asked for, and there was no time to finish the epoch or to see it visible. The next start goes on with it.
    Outstanding,
}

/// What a generation is raised for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To read and write.
    Run,
    /// Only to settle what the generations before it left, because the pipeline cannot go on.
    SettleOnly,
}

/// What one generation works with.
pub(crate) struct Generational<'a> {
    pub(crate) pipeline: &'a PipelineId,
    pub(crate) config: &'a PipelineConfig,
    pub(crate) source: Box<dyn Source>,
    pub(crate) sinks: BTreeMap<SinkId, Arc<Sink>>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) lease: Lease,
    pub(crate) shutdown: Shutdown,
    pub(crate) progress: Publisher,
    /// Since when earlier generations can send nothing any more.
    pub(crate) gone: Gone,
    pub(crate) purpose: Purpose,
}

/// A generation's end.
pub(crate) struct Ended {
    pub(crate) result: Result<Ending, Stop>,
    /// The generation, if one was raised and has worked.
    pub(crate) generation: Option<Generation>,
    /// Whether a lane had to be cut off in the middle of a call.
    pub(crate) cut_off: bool,
}

/// Runs one generation to its end.
pub(crate) async fn run(work: Generational<'_>) -> Ended {
    let shutdown = work.shutdown.clone();
    let started = tokio::select! {
        started = Driver::start(work) => started,
        // Nothing has begun, so there is nothing to finish.
        () = shutdown.wait_now() => return Ended { result: Ok(Ending::Outstanding), generation: None, cut_off: false },
    };
    let mut driver = match started {
        Ok(driver) => driver,
        Err(stop) => return Ended { result: Err(stop), generation: None, cut_off: false },
    };
    let result = driver.drive().await;
    let cut_off = driver.close().await;
    let result = match result {
        Ok(ending) => driver.step_down().await.map(|()| ending),
        Err(stop) => Err(stop),
    };
    Ended { result, generation: Some(driver.generation), cut_off }
}

/// Where the epoch after the head stands.
enum Phase {
    /// Not begun.
    Waiting,
    /// The lanes fill it.
    Filling { since: Instant },
    /// The lanes have been told to end it; these have.
    Preparing { parts: BTreeMap<Lane, LaneEpoch> },
}

/// A lane as the driver sees it.
struct LaneHandle {
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
    drained: bool,
}

struct Driver<'a> {
    pipeline: &'a PipelineId,
    config: &'a PipelineConfig,
    ledger: Arc<dyn Ledger>,
    lease: Lease,
    shutdown: Shutdown,
    progress: Publisher,
    source: Arc<RwLock<Box<dyn Source>>>,
    bounded: bool,
    committers: Committers,
    manifest: Manifest,
    generation: Generation,
    watch: Watch,

    state: PipelineState,
    /// The newest decision of the generations before.
    recovered_to: Epoch,
    phase: Phase,
    /// Rights to commit whose turn has not come, by epoch.
    permits: BTreeMap<Epoch, Vec<CommitPermit>>,
    commits: JoinSet<Result<Confirmation, Stop>>,
    /// Known to be visible, and not yet durable as that.
    unwritten: Vec<Confirmation>,
    unwritten_since: Instant,
    debts: BTreeSet<Generation>,
    first_pass_done: bool,
    sweeper: JoinHandle<()>,
    sweep_reports: mpsc::Receiver<sweep::Report>,
    lanes: Vec<LaneHandle>,
    lane_reports: mpsc::Receiver<lane::Report>,
    filling: Arc<Filling>,
    /// Records and bytes that have been told already.
    published: (u64, u64),
    /// The lane that reads each split.
    assigned: BTreeMap<SplitId, usize>,
    /// A decided handle that cannot become visible without a person. The pipeline ends once the other commits under way have ended.
    hopeless: Option<Stop>,
    /// No epoch begins any more.
    ending: Option<Ending>,
    /// When a stop was asked for.
    asked_since: Option<Instant>,
}

impl<'a> Driver<'a> {
    /// From the facts to a driver that has everything open.
    async fn start(work: Generational<'a>) -> Result<Self, Stop> {
        let mut work = work;
        let (committers, profiles) = Committers::open(&work.sinks, work.lease.clone()).await?;
        let sinks = work.sinks.iter().filter_map(|(id, sink)| Some(sink.manifest(profiles.get(id)?))).collect();
        let manifest = Manifest { lanes: work.config.lanes, source: work.source.identity(), delivery: work.config.delivery, sinks };
        let facts = raise(&work, &manifest).await?;
        let (state, permits) = facts.recover()?;
        let generation = facts.get().generation;
        let labels = Labels::new(work.ledger.id(), work.pipeline.clone());
        let watch = Watch::new(facts.get());
        let debts = facts.get().debts.iter().map(|debt| debt.generation).collect();
        tracing::info!(pipeline = %work.pipeline, %generation, decided = %state.head().epoch, unconfirmed = state.unconfirmed().count(), "generation raised");

        // An epoch ends at a batch boundary, so a batch is no larger than an epoch may become.
        let records = work.config.checkpoint.records.map_or(MAX_BATCH_RECORDS, |most| u32::try_from(most).unwrap_or(MAX_BATCH_RECORDS));
        let mut limits = BatchLimits { bytes: MAX_BATCH_BYTES, records: records.min(MAX_BATCH_RECORDS), ends: false };
        for profile in profiles.values() {
            limits.ends |= profile.ends;
            limits.bytes = limits.bytes.min(profile.max_batch_bytes.map_or(MAX_BATCH_BYTES, |wish| wish as usize));
            limits.records = limits.records.min(profile.max_batch_records.unwrap_or(MAX_BATCH_RECORDS));
        }
        let bounded = work.source.bounded();
        let splits = match work.purpose {
            Purpose::Run => work.source.discover(state.positions()).await.map_err(Stop::from_discovery)?,
            Purpose::SettleOnly => Vec::new(),
        };
        let source = Arc::new(RwLock::new(work.source));
        let filling = Arc::new(Filling::default());
        let (reports, lane_reports) = mpsc::channel(QUEUED_MESSAGES);
        let mut lanes = Vec::new();
        let lane_count = if work.purpose == Purpose::Run { work.config.lanes } else { 0 };
        for number in 0..lane_count {
            let setup = LaneSetup {
                lane: Lane(number),
                generation,
                labels: labels.clone(),
                source: source.clone(),
                sinks: work.sinks.clone(),
                positions: state.positions().clone(),
                limits,
                filling: filling.clone(),
                lease: work.lease.clone(),
                watch: watch.clone(),
            };
            let mut writers = BTreeMap::new();
            for (id, sink) in &work.sinks {
                let writer = sink.open_writer(Lane(number)).await.map_err(|error| Stop::from_plugin(id, error))?;
                writers.insert(id.clone(), writer);
            }
            let (commands, received) = mpsc::channel(QUEUED_MESSAGES);
            let task = tokio::spawn(lane::run(setup, writers, received, reports.clone()));
            lanes.push(LaneHandle { commands, task, drained: false });
        }

        let (to_driver, sweep_reports) = mpsc::channel(QUEUED_MESSAGES);
        let sweep = Sweep { facts, committers: committers.clone(), ledger: work.ledger.clone(), watch: watch.clone(), gone: work.gone };
        let sweeper = tokio::spawn(sweep.run(to_driver));
        let mut driver = Self {
            pipeline: work.pipeline,
            config: work.config,
            ledger: work.ledger,
            lease: work.lease,
            shutdown: work.shutdown,
            progress: work.progress,
            source,
            bounded,
            committers,
            manifest,
            generation,
            watch,
            recovered_to: state.head().epoch,
            state,
            phase: Phase::Waiting,
            permits,
            commits: JoinSet::new(),
            unwritten: Vec::new(),
            unwritten_since: clock::now(),
            debts,
            first_pass_done: false,
            sweeper,
            sweep_reports,
            lanes,
            lane_reports,
            filling,
            published: (0, 0),
            assigned: BTreeMap::new(),
            hopeless: None,
            ending: (work.purpose == Purpose::SettleOnly).then_some(Ending::ShutDown),
            asked_since: (work.purpose == Purpose::SettleOnly).then(clock::now),
        };
        driver.assign(splits).await;
        Ok(driver)
    }

    /// Goes on until the source ends, a stop is asked for, or something fails.
    async fn drive(&mut self) -> Result<Ending, Stop> {
        loop {
            self.start_commits()?;
            self.publish();
            if let Some(ending) = self.finished().await? {
                return Ok(ending);
            }
            if self.may_fill() {
                self.fill().await;
            }
            self.next_event().await?;
            if let Some(parts) = self.all_parts() {
                self.decide(parts).await?;
            }
        }
    }

    /// Waits for the next thing that happens, and takes note of it.
    async fn next_event(&mut self) -> Result<(), Stop> {
        let filling = self.filling.clone();
        let source = self.source.clone();
        let follow = !self.bounded && self.ending.is_none() && self.first_pass_done;
        let barrier_due = match self.phase {
            Phase::Filling { since } => Some(since + self.config.checkpoint.interval),
            Phase::Waiting | Phase::Preparing { .. } => None,
        };
        let write_due = (!self.unwritten.is_empty()).then_some(self.unwritten_since + CONFIRMATION_WAIT);
        let grace_over = self.asked_since.map(|asked| asked + COMMIT_GRACE);
        tokio::select! {
            report = self.lane_reports.recv(), if !self.lanes.is_empty() => match report {
                Some(lane::Report::AtBarrier(lane, part)) => {
                    if let Phase::Preparing { parts } = &mut self.phase {
                        parts.insert(lane, part);
                    }
                }
                Some(lane::Report::Drained(lane)) => self.drained(lane).await,
                Some(lane::Report::Failed(stop)) => return Err(stop),
                None => return Err(Stop::internal("every lane has ended".to_owned())),
            },
            Some(done) = self.commits.join_next() => self.committed(done)?,
            report = self.sweep_reports.recv(), if !self.debts.is_empty() || !self.first_pass_done => match report {
                Some(sweep::Report::FirstPass) => self.first_pass_done = true,
                Some(sweep::Report::Paid(generation)) => {
                    self.debts.remove(&generation);
                }
                Some(sweep::Report::Failed(stop)) => return Err(stop),
                None => return Err(Stop::internal("the sweep has ended".to_owned())),
            },
            () = filling.grown.notified(), if barrier_due.is_some() => {
                if self.full() {
                    self.barrier().await;
                }
            }
            () = until(barrier_due) => self.barrier().await,
            () = until(write_due) => self.write_confirmations().await?,
            changed = async { source.read().await.changed().await }, if follow => {
                changed.map_err(Stop::from_discovery)?;
                let splits = self.source.write().await.discover(self.state.positions()).await.map_err(Stop::from_discovery)?;
                self.assign(splits).await;
            }
            () = self.shutdown.wait(), if self.asked_since.is_none() => {
                self.asked_since = Some(clock::now());
                self.ending.get_or_insert(Ending::ShutDown);
                if matches!(self.phase, Phase::Filling { .. }) {
                    self.barrier().await;
                }
            }
            () = until(grace_over) => {}
            () = self.shutdown.wait_now(), if !self.out_of_patience() => {
                self.asked_since = Some(clock::now() - COMMIT_GRACE);
                self.ending.get_or_insert(Ending::ShutDown);
            }
            lost = self.lease.lost() => return Err(Stop::from_lease(lost)),
        }
        Ok(())
    }

    /// Is there nothing left to do, or no time left to do it?
    async fn finished(&mut self) -> Result<Option<Ending>, Stop> {
        let Some(ending) = self.ending else { return Ok(None) };
        if let Some(stop) = self.hopeless.clone() {
            if !self.commits.is_empty() && !self.out_of_patience() {
                return Ok(None);
            }
            self.write_confirmations().await?;
            return Err(stop);
        }
        let settled = self.state.epoch_to_commit().is_none();
        if self.out_of_patience() {
            self.write_confirmations().await?;
            let done = settled && matches!(self.phase, Phase::Waiting);
            return Ok(Some(if done { Ending::ShutDown } else { Ending::Outstanding }));
        }
        // What a former generation left is worked off before a success is reported; a stop that was asked for does not wait for it, except where
        // that is what this generation is for.
        let owes = !self.debts.is_empty() && (self.asked_since.is_none() || self.lanes.is_empty());
        if !matches!(self.phase, Phase::Waiting) || !settled || owes {
            return Ok(None);
        }
        self.write_confirmations().await?;
        Ok(Some(ending))
    }

    fn out_of_patience(&self) -> bool {
        self.asked_since.is_some_and(|asked| clock::now().duration_since(asked) >= COMMIT_GRACE)
    }

    /// May the lanes begin the next epoch? Not before what a former generation decided is visible and what it left has been swept once.
    fn may_fill(&self) -> bool {
        matches!(self.phase, Phase::Waiting) && self.ending.is_none() && self.recovered() && self.state.may_begin(0)
    }

    fn recovered(&self) -> bool {
        self.first_pass_done && self.state.epoch_to_commit().is_none_or(|epoch| epoch > self.recovered_to)
    }

    async fn fill(&mut self) {
        self.filling.start_anew();
        let epoch = self.state.head().epoch.next();
        self.phase = Phase::Filling { since: clock::now() };
        self.tell_lanes(|| Command::Fill(epoch)).await;
        // A lane that has nothing left would not say so again.
        if self.bounded && self.lanes.iter().all(|lane| lane.drained) {
            self.ending.get_or_insert(Ending::EndOfInput);
            self.barrier().await;
        }
    }

    /// Is the epoch as large as the config lets it become?
    fn full(&self) -> bool {
        let over = |count: u64, limit: Option<u64>| limit.is_some_and(|limit| count >= limit);
        over(self.filling.records.load(Ordering::Relaxed), self.config.checkpoint.records)
            || over(self.filling.bytes.load(Ordering::Relaxed), self.config.checkpoint.bytes)
            || over(self.filling.slices.load(Ordering::Relaxed) * self.manifest.sinks.len() as u64, Some(MAX_SLICES_PER_DECISION))
    }

    async fn barrier(&mut self) {
        if matches!(self.phase, Phase::Filling { .. }) {
            self.phase = Phase::Preparing { parts: BTreeMap::new() };
            self.tell_lanes(|| Command::Barrier).await;
        }
    }

    async fn drained(&mut self, lane: Lane) {
        if let Some(handle) = self.lanes.get_mut(lane.0 as usize) {
            handle.drained = true;
        }
        if self.bounded && self.lanes.iter().all(|lane| lane.drained) {
            self.ending.get_or_insert(Ending::EndOfInput);
            self.barrier().await;
        }
    }

    async fn tell_lanes(&self, command: impl Fn() -> Command) {
        for lane in &self.lanes {
            lane.tell(command()).await;
        }
    }

    /// Gives each split to a lane, and tells the lane about it, also if it has it already.
    async fn assign(&mut self, splits: Vec<SplitId>) {
        let mut told: BTreeMap<usize, Vec<SplitId>> = BTreeMap::new();
        for split in splits {
            let next = self.assigned.len() % self.lanes.len().max(1);
            let lane = *self.assigned.entry(split.clone()).or_insert(next);
            told.entry(lane).or_default().push(split);
        }
        for (lane, splits) in told {
            if let Some(handle) = self.lanes.get_mut(lane) {
                handle.drained = false;
                handle.tell(Command::Splits(splits)).await;
            }
        }
    }

    /// Every lane's part of the epoch, once all of them stand at the barrier.
    fn all_parts(&mut self) -> Option<BTreeMap<Lane, LaneEpoch>> {
        let Phase::Preparing { parts } = &mut self.phase else { return None };
        if parts.len() < self.lanes.len() {
            return None;
        }
        let parts = std::mem::take(parts);
        self.phase = Phase::Waiting;
        Some(parts)
    }

    /// Makes the epoch certain to commit, or finds that there is nothing to decide.
    async fn decide(&mut self, lanes: BTreeMap<Lane, LaneEpoch>) -> Result<(), Stop> {
        let draft =
            EpochDraft { pipeline: self.pipeline, generation: self.generation, manifest: &self.manifest, state: &self.state, lanes };
        let Some(decision) = draft.seal()? else { return Ok(()) };
        let decided = self.write(&decision).await?;
        self.state.apply_decision(&decided)?;
        self.unwritten.clear();
        let permits = decided.permits();
        if !permits.is_empty() {
            self.permits.insert(decision.epoch, permits);
        }
        tracing::debug!(pipeline = %self.pipeline, epoch = %decision.epoch, handles = decision.handles.len(), "decided");
        Ok(())
    }

    /// Sends the decision until its outcome is known. Nothing that it names is aborted meanwhile.
    async fn write(&mut self, decision: &Decision) -> Result<Durable<Decision>, Stop> {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let mut out_of_time = std::pin::pin!(async {
            self.shutdown.wait().await;
            clock::sleep(COMMIT_GRACE).await;
        });
        loop {
            self.watch.observe(&Event::DecisionSent(decision))?;
            match self.ledger.decide(decision, &self.unwritten).await {
                Ok(Decided::Made(decided)) => {
                    self.watch.observe(&Event::DecisionMade(decision))?;
                    return Ok(decided);
                }
                Ok(Decided::Refused { generation, .. }) => {
                    self.watch.observe(&Event::DecisionRefused(decision))?;
                    return Err(Stop::fenced(decision.epoch, generation));
                }
                Err(LedgerError::Unavailable { message }) => {
                    tracing::warn!(pipeline = %self.pipeline, epoch = %decision.epoch, %message, "the outcome of a decision is unknown; asking again");
                    tokio::select! {
                        () = clock::sleep(backoff.pause()) => {}
                        () = self.shutdown.wait_now() => return Err(Stop::outcome_unknown(decision.epoch)),
                        () = &mut out_of_time => return Err(Stop::outcome_unknown(decision.epoch)),
                        lost = self.lease.lost() => return Err(Stop::from_lease(lost)),
                    }
                }
                Err(error) => return Err(Stop::from_ledger(error)),
            }
        }
    }

    /// Starts the commits of the oldest epoch that has handles unconfirmed, all at the same time, once those before it are visible.
    fn start_commits(&mut self) -> Result<(), Stop> {
        let Some(epoch) = self.state.epoch_to_commit() else { return Ok(()) };
        for permit in self.permits.remove(&epoch).unwrap_or_default() {
            self.watch.observe(&Event::Commit(&permit.transaction().label))?;
            let committers = self.committers.clone();
            self.commits.spawn(async move { committers.commit(permit).await });
        }
        Ok(())
    }

    fn committed(&mut self, done: Result<Result<Confirmation, Stop>, tokio::task::JoinError>) -> Result<(), Stop> {
        let confirmation = match done.map_err(|error| Stop::internal(format!("a committer failed: {error}")))? {
            Ok(confirmation) => confirmation,
            Err(stop) if stop.then == Then::EndPipeline => {
                self.hopeless.get_or_insert(stop);
                self.ending.get_or_insert(Ending::ShutDown);
                self.asked_since.get_or_insert(clock::now());
                return Ok(());
            }
            Err(stop) => return Err(stop),
        };
        self.watch.observe(&Event::Confirmed(&confirmation.label))?;
        self.state.apply_confirmation(&confirmation)?;
        if self.unwritten.is_empty() {
            self.unwritten_since = clock::now();
        }
        self.unwritten.push(confirmation);
        Ok(())
    }

    /// Writes the confirmations that no decision has carried in time.
    async fn write_confirmations(&mut self) -> Result<(), Stop> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        match self.ledger.confirm(self.pipeline, self.generation, &self.unwritten).await {
            Ok(()) => self.unwritten.clear(),
            // They are only a note that spares the next start some work; a decision or a later try carries them.
            Err(LedgerError::Unavailable { message }) => {
                tracing::warn!(pipeline = %self.pipeline, %message, "cannot write confirmations yet");
                self.unwritten_since = clock::now();
            }
            Err(error) => return Err(Stop::from_ledger(error)),
        }
        Ok(())
    }

    /// Ends the lanes and waits for them. True: one had to be cut off in the middle of a call.
    async fn close(&mut self) -> bool {
        self.sweeper.abort();
        self.commits.shutdown().await;
        self.lane_reports.close();
        let tasks: Vec<JoinHandle<()>> = std::mem::take(&mut self.lanes).into_iter().map(|lane| lane.task).collect();
        let mut cut_off = false;
        let deadline = clock::now() + CLOSE_WAIT;
        for mut task in tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
                let _ = task.await;
                cut_off = true;
            }
        }
        cut_off
    }

    /// Notes that this generation leaves nothing that the next one would have to sweep, if that is so.
    async fn step_down(&mut self) -> Result<(), Stop> {
        if !matches!(self.phase, Phase::Waiting) {
            return Ok(());
        }
        self.watch.finish()?;
        match self.ledger.step_down(self.pipeline, self.generation).await {
            // It only spares the next start a sweep.
            Err(LedgerError::Unavailable { message }) => {
                tracing::warn!(pipeline = %self.pipeline, %message, "cannot note that nothing is left to sweep");
                Ok(())
            }
            done => done.map_err(Stop::from_ledger),
        }
    }

    fn publish(&mut self) {
        let read = (self.filling.all_records.load(Ordering::Relaxed), self.filling.all_bytes.load(Ordering::Relaxed));
        let before = std::mem::replace(&mut self.published, read);
        self.progress.update(|progress| {
            progress.state = self.shown_state();
            progress.records += read.0 - before.0;
            progress.bytes += read.1 - before.1;
            progress.decided = self.state.head().epoch.0;
            progress.epoch = self.state.head().epoch.next().0;
            progress.unconfirmed = u32::try_from(self.state.unconfirmed().count()).unwrap_or(u32::MAX);
        });
    }

    fn shown_state(&self) -> Shown {
        match self.phase {
            _ if self.ending.is_some() => Shown::Stopping,
            Phase::Filling { .. } if !self.bounded && self.lanes.iter().all(|lane| lane.drained) => Shown::Idle,
            Phase::Filling { .. } | Phase::Preparing { .. } => Shown::Running,
            Phase::Waiting if self.recovered() => Shown::Stalled,
            Phase::Waiting => Shown::Recovering,
        }
    }
}

impl LaneHandle {
    /// A lane that has failed takes no commands any more; its report says why.
    async fn tell(&self, command: Command) {
        let _ = self.commands.send(command).await;
    }
}

/// Checks that the manifest can settle what is owed, and raises the generation.
async fn raise(work: &Generational<'_>, manifest: &Manifest) -> Result<Durable<PipelineFacts>, Stop> {
    let seen = match work.ledger.peek(work.pipeline).await.map_err(Stop::from_ledger)? {
        None => Generation(0),
        Some(facts) => {
            let obligations = unsettled(&facts, manifest)?;
            if !obligations.is_empty() {
                return Err(Stop::unsettled(&obligations));
            }
            facts.generation
        }
    };
    work.lease.ready().await.map_err(Stop::from_lease)?;
    work.ledger.raise_generation(work.pipeline, seen, manifest).await.map_err(Stop::from_ledger)
}

/// Returns at that time; never, if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
