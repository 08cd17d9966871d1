//! One of a pipeline's workers: reads its splits, batch by batch, and hands each batch to its writer of every sink. It does what the driver
//! tells it, and ends an epoch only at a batch boundary.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use tokio::sync::{Notify, RwLock, mpsc};
use weir_engine::{Batch, OpenWriter, Writer};
use weir_protocol::decide::LaneEpoch;
use weir_protocol::invariants::Event;
use weir_protocol::{
    Attempt, Epoch, Generation, Hash, Labels, Lane, Position, Positions, PreparedHandle, SinkId, Slice, SplitId, TAIL_BYTES, Transaction,
};

use crate::lease::Lease;
use crate::sink::Sink;
use crate::source::{BatchLimits, Read, Source, SplitReader};
use crate::stop::Stop;
use crate::watch::Watch;

/// Batches read from one split before the next one has its turn.
const BATCHES_PER_TURN: usize = 16;
/// Readers open in the middle of their splits. With so many, the split under way is read on before another one is taken up.
const MAX_OPEN_READERS: usize = 64;
/// Readers kept open while their splits have nothing new. The others are opened again at their position.
const MAX_IDLE_READERS: usize = 128;

/// What the driver tells a lane.
#[derive(Debug)]
pub(crate) enum Command {
    /// These splits are yours, too. One that is known already may have something new.
    Splits(Vec<SplitId>),
    /// Fill this epoch until the barrier.
    Fill(Epoch),
    /// End the epoch: prepare at every sink, and answer with [`Report::AtBarrier`].
    Barrier,
}

/// What a lane tells the driver.
#[derive(Debug)]
pub(crate) enum Report {
    /// It stands at the barrier.
    AtBarrier(Lane, LaneEpoch),
    /// It has read everything that it was given, up to the splits' ends.
    Drained(Lane),
    /// It cannot go on. It has closed its writers, so what they had under way may be aborted.
    Failed(Stop),
}

/// What the driver watches to tell when an epoch is full.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Slices begun.
    pub(crate) slices: AtomicU64,
    /// Records and bytes since the generation began.
    pub(crate) all_records: AtomicU64,
    pub(crate) all_bytes: AtomicU64,
    /// Told after each batch.
    pub(crate) grown: Notify,
}

impl Filling {
    fn add(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.all_records.fetch_add(records, Ordering::Relaxed);
        self.all_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.grown.notify_one();
    }

    /// The next epoch begins.
    pub(crate) fn start_anew(&self) {
        self.records.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.slices.store(0, Ordering::Relaxed);
    }
}

/// Everything a lane works with.
pub(crate) struct LaneSetup {
    pub(crate) lane: Lane,
    pub(crate) generation: Generation,
    pub(crate) labels: Labels,
    pub(crate) source: Arc<RwLock<Box<dyn Source>>>,
    pub(crate) sinks: BTreeMap<SinkId, Arc<Sink>>,
    pub(crate) positions: Positions,
    pub(crate) limits: BatchLimits,
    pub(crate) filling: Arc<Filling>,
    pub(crate) lease: Lease,
    pub(crate) watch: Watch,
}

/// Runs a lane until its commands end. Its writers are closed when it returns.
pub(crate) async fn run(
    setup: LaneSetup,
    writers: BTreeMap<SinkId, Writer>,
    mut commands: mpsc::Receiver<Command>,
    reports: mpsc::Sender<Report>,
) {
    let mut writing = BTreeMap::new();
    for (sink, writer) in writers {
        writing.insert(sink, Writing::Idle(writer));
    }
    let mut worker = Worker {
        setup,
        writing,
        epoch: None,
        part: LaneEpoch::default(),
        tails: BTreeMap::new(),
        queue: VecDeque::new(),
        readers: BTreeMap::new(),
        idle: BTreeMap::new(),
        told_drained: false,
    };
    // The driver waits for every lane, so one that panics has to say so, too.
    let end = AssertUnwindSafe(worker.work(&mut commands, &reports)).catch_unwind().await;
    let end = end.unwrap_or_else(|_| Err(Stop::internal(format!("lane {} panicked", worker.setup.lane))));
    worker.close().await;
    if let Err(stop) = end {
        // The driver may be gone already, and then nobody needs to know.
        let _ = reports.send(Report::Failed(stop)).await;
    }
}

/// A sink's writer in this lane.
enum Writing {
    Idle(Writer),
    Open(Transaction, OpenWriter),
    /// Between two states, or lost in a failed call.
    Gone,
}

struct Worker {
    setup: LaneSetup,
    writing: BTreeMap<SinkId, Writing>,
    /// The epoch being filled; none while the lane waits.
    epoch: Option<Epoch>,
    part: LaneEpoch,
    /// The last bytes of each slice in `part.read`, by its index there.
    tails: BTreeMap<usize, Vec<u8>>,
    /// Splits that may have something to read.
    queue: VecDeque<SplitId>,
    /// Open readers of queued splits.
    readers: BTreeMap<SplitId, Box<dyn SplitReader>>,
    /// Open readers of splits that had nothing new.
    idle: BTreeMap<SplitId, Box<dyn SplitReader>>,
    told_drained: bool,
}

impl Worker {
    async fn work(&mut self, commands: &mut mpsc::Receiver<Command>, reports: &mpsc::Sender<Report>) -> Result<(), Stop> {
        loop {
            let busy = self.epoch.is_some() && !self.queue.is_empty();
            let command = if busy {
                match commands.try_recv() {
                    Ok(command) => Some(command),
                    Err(mpsc::error::TryRecvError::Empty) => None,
                    Err(mpsc::error::TryRecvError::Disconnected) => return Ok(()),
                }
            } else {
                self.tell_drained(reports).await;
                match commands.recv().await {
                    Some(command) => Some(command),
                    None => return Ok(()),
                }
            };
            match command {
                Some(Command::Splits(splits)) => self.take_up(splits),
                Some(Command::Fill(epoch)) => self.epoch = Some(epoch),
                Some(Command::Barrier) => {
                    let part = self.end_epoch().await?;
                    if reports.send(Report::AtBarrier(self.setup.lane, part)).await.is_err() {
                        return Ok(());
                    }
                }
                None => self.turn(commands).await?,
            }
        }
    }

    async fn tell_drained(&mut self, reports: &mpsc::Sender<Report>) {
        if self.epoch.is_some() && self.queue.is_empty() && !self.told_drained {
            self.told_drained = true;
            let _ = reports.send(Report::Drained(self.setup.lane)).await;
        }
    }

    fn take_up(&mut self, splits: Vec<SplitId>) {
        for split in splits {
            if let Some(reader) = self.idle.remove(&split) {
                self.readers.insert(split.clone(), reader);
            }
            if !self.queue.contains(&split) {
                self.queue.push_back(split);
            }
        }
        self.told_drained = false;
    }

    /// Reads some batches of the split whose turn it is. Ends early when the driver has something to say.
    async fn turn(&mut self, commands: &mpsc::Receiver<Command>) -> Result<(), Stop> {
        let Some(split) = self.queue.pop_front() else { return Ok(()) };
        let mut reader = match self.readers.remove(&split) {
            Some(reader) => reader,
            None => open(&self.setup.source, &split, self.position(&split)).await?,
        };
        for _ in 0..BATCHES_PER_TURN {
            let from = reader.position();
            let read = reader.read(&self.setup.limits).await.map_err(|error| Stop::from_source(&split, error))?;
            let to = reader.position();
            if from != to {
                self.moved(&split, &to);
            }
            match read {
                Read::Batch(batch) => self.write(batch, from, to).await?,
                Read::Idle => {
                    self.rest(split, reader);
                    return Ok(());
                }
                Read::End => return Ok(()),
            }
            if !commands.is_empty() {
                break;
            }
        }
        self.queue.push_front(split.clone());
        self.readers.insert(split, reader);
        if self.queue.len() > 1 && self.readers.len() < MAX_OPEN_READERS {
            self.queue.rotate_left(1);
        }
        Ok(())
    }

    fn position(&self, split: &SplitId) -> Option<&Position> {
        self.part.positions.get(split).or_else(|| self.setup.positions.get(split))
    }

    /// Notes where a split goes on. What was read of it so far ends there, also where the reader has moved without a record.
    fn moved(&mut self, split: &SplitId, to: &Position) {
        self.part.positions.insert(split.clone(), to.clone());
        if let Some(slice) = self.part.read.iter_mut().rfind(|slice| slice.split == *split) {
            slice.to = to.clone();
        }
    }

    /// Keeps a reader without anything new for the next time, if there is room.
    fn rest(&mut self, split: SplitId, reader: Box<dyn SplitReader>) {
        if self.idle.len() < MAX_IDLE_READERS {
            self.idle.insert(split, reader);
        }
    }

    /// Hands one batch to every sink, all at the same time, and notes what was read.
    async fn write(&mut self, batch: Batch, from: Position, to: Position) -> Result<(), Stop> {
        let Some(epoch) = self.epoch else { return Err(Stop::internal("a batch was read outside an epoch".to_owned())) };
        let batch = Arc::new(batch);
        let mut calls = Vec::new();
        for (id, writing) in &mut self.writing {
            let taken = std::mem::replace(writing, Writing::Gone);
            calls.push(invoke(&self.setup, id.clone(), epoch, taken, batch.clone(), &from));
        }
        let answers = futures_util::future::join_all(calls).await;
        let mut failed = None;
        for (id, answer) in answers {
            match answer {
                Ok(writing) => {
                    self.writing.insert(id, writing);
                }
                Err(stop) => failed = Some(stop.more_severe(failed)),
            }
        }
        if let Some(stop) = failed {
            return Err(stop);
        }
        self.note(&batch, from, to);
        self.setup.filling.add(u64::from(batch.count), batch.bytes.len() as u64);
        Ok(())
    }

    /// Adds the batch to the slice that it goes on with, or begins another.
    fn note(&mut self, batch: &Batch, from: Position, to: Position) {
        let (first, records, bytes) = (batch.first, u64::from(batch.count), batch.bytes.len() as u64);
        let index = self.part.read.iter().rposition(|slice| slice.split == batch.split && slice.first + slice.records == first);
        let index = index.unwrap_or_else(|| {
            let tail = Hash::of(&[]);
            self.part.read.push(Slice { split: batch.split.clone(), from: Some(from), to, first, records: 0, bytes: 0, tail });
            self.setup.filling.slices.fetch_add(1, Ordering::Relaxed);
            self.part.read.len() - 1
        });
        let tail = self.tails.entry(index).or_default();
        tail.extend_from_slice(batch.bytes.get(batch.bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default());
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        if let Some(slice) = self.part.read.get_mut(index) {
            slice.records += records;
            slice.bytes += bytes;
        }
    }

    /// Prepares what was written at every sink, all at the same time.
    async fn end_epoch(&mut self) -> Result<LaneEpoch, Stop> {
        self.epoch = None;
        let mut part = std::mem::take(&mut self.part);
        for (index, tail) in std::mem::take(&mut self.tails) {
            if let Some(slice) = part.read.get_mut(index) {
                slice.tail = Hash::of(&tail);
            }
        }
        let mut calls = Vec::new();
        for (id, writing) in &mut self.writing {
            let taken = std::mem::replace(writing, Writing::Gone);
            calls.push(precommit(&self.setup, id.clone(), taken, &part.read));
        }
        let answers = futures_util::future::join_all(calls).await;
        let mut failed = None;
        for (id, answer) in answers {
            match answer {
                Ok((writer, prepared)) => {
                    self.writing.insert(id.clone(), Writing::Idle(writer));
                    part.prepared.extend(prepared.map(|prepared| (id, prepared)));
                }
                Err(stop) => failed = Some(stop.more_severe(failed)),
            }
        }
        if let Some(stop) = failed {
            return Err(stop);
        }
        self.setup.positions.extend(part.positions.clone());
        Ok(part)
    }

    /// Closes what is open, so that nothing that this lane has sent can still take effect through it.
    async fn close(&mut self) {
        for (sink, writing) in std::mem::take(&mut self.writing) {
            let closed = match writing {
                Writing::Idle(writer) => writer.close().await,
                Writing::Open(_, writer) => writer.close().await,
                Writing::Gone => Ok(()),
            };
            if let Err(error) = closed {
                // The debt that this generation leaves is paid only after its settle time, which covers this.
                tracing::debug!(%sink, %error, "a writer did not close in time");
            }
        }
    }
}

async fn open(source: &RwLock<Box<dyn Source>>, split: &SplitId, from: Option<&Position>) -> Result<Box<dyn SplitReader>, Stop> {
    source.read().await.open(split, from).await.map_err(|error| Stop::from_source(split, error))
}

/// Writes a batch to one sink, beginning its transaction if this is the first of the epoch.
async fn invoke(
    setup: &LaneSetup,
    id: SinkId,
    epoch: Epoch,
    writing: Writing,
    batch: Arc<Batch>,
    from: &Position,
) -> (SinkId, Result<Writing, Stop>) {
    let done = async {
        let (transaction, mut writer) = match writing {
            Writing::Open(transaction, writer) => (transaction, writer),
            Writing::Idle(writer) => {
                let transaction = setup.labels.transaction(&id, setup.generation, epoch, setup.lane, Attempt::FIRST)?;
                setup.lease.ready().await.map_err(Stop::from_lease)?;
                let generation = setup.generation;
                setup.watch.observe(&Event::Begin { transaction: &transaction, generation, attempt: Attempt::FIRST })?;
                let open = writer.begin(&transaction).await.map_err(|error| Stop::from_plugin(&id, error))?;
                (transaction, open)
            }
            Writing::Gone => return Err(Stop::internal(format!("sink {id} has no writer"))),
        };
        setup.lease.ready().await.map_err(Stop::from_lease)?;
        let problem = match writer.invoke(&batch).await {
            Err(error) => Stop::from_plugin(&id, error).about(&range(setup, &batch.split, from, batch.first, u64::from(batch.count)).await),
            Ok(rejected) => match rejected.first() {
                None => return Ok(Writing::Open(transaction, writer)),
                Some(rejection) => {
                    let place = setup.source.read().await.describe(&batch.split, None);
                    Stop::rejected(&id, &place, batch.first + u64::from(rejection.index), &rejection.reason)
                }
            },
        };
        if let Err(error) = writer.close().await {
            tracing::debug!(sink = %id, %error, "a writer did not close in time");
        }
        Err(problem)
    };
    let done = done.await;
    (id, done)
}

/// Prepares one sink's transaction, if it has one.
async fn precommit(
    setup: &LaneSetup,
    id: SinkId,
    writing: Writing,
    read: &[Slice],
) -> (SinkId, Result<(Writer, Option<PreparedHandle>), Stop>) {
    let done = async {
        let (transaction, writer) = match writing {
            Writing::Idle(writer) => return Ok((writer, None)),
            Writing::Open(transaction, writer) => (transaction, writer),
            Writing::Gone => return Err(Stop::internal(format!("sink {id} has no writer"))),
        };
        setup.lease.ready().await.map_err(Stop::from_lease)?;
        let (writer, prepared) = match writer.precommit().await {
            Ok(prepared) => prepared,
            Err(error) => return Err(Stop::from_plugin(&id, error).about(&ranges(setup, read).await)),
        };
        let format = setup.sinks.get(&id).map(|sink| sink.plugin.description().written_format().to_owned());
        let prepared = PreparedHandle {
            transaction,
            format: format.unwrap_or_default(),
            handle: prepared.handle,
            held: prepared.records,
            slices: read.to_vec(),
            rejected: Vec::new(),
        };
        Ok((writer, Some(prepared)))
    };
    let done = done.await;
    (id, done)
}

/// Slices named in a message; the others are counted.
const SLICES_NAMED: usize = 3;

/// What was read, for people.
async fn ranges(setup: &LaneSetup, read: &[Slice]) -> String {
    let mut named = Vec::new();
    for slice in read.iter().take(SLICES_NAMED) {
        if let Some(from) = &slice.from {
            named.push(range(setup, &slice.split, from, slice.first, slice.records).await);
        }
    }
    let more = read.len().saturating_sub(SLICES_NAMED);
    if more > 0 { format!("{}, and {more} more", named.join(", ")) } else { named.join(", ") }
}

async fn range(setup: &LaneSetup, split: &SplitId, from: &Position, first: u64, records: u64) -> String {
    let place = setup.source.read().await.describe(split, Some(from));
    format!("{records} records of {place}, from record {first} on")
}
