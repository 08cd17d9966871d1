//! The host: takes the ledger's lease, runs the pipelines beside each other, starts one again that failed, and ends when all have ended or when
//! it is asked to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use weir_engine::{Input, Plugin};
use weir_ledger::{Holder, Ledger, SqliteLedger};
use weir_protocol::{PipelineId, SinkId};

use crate::clock::{self, Backoff};
use crate::config::{Config, LedgerConfig, PipelineConfig, SourceConfig};
use crate::driver::{self, Ended, Ending, Generational, Purpose};
use crate::error::Exit;
use crate::lease::{self, Lease};
use crate::progress::{PipelineState, Progress, Publisher};
use crate::shutdown::{self, Shutdown};
use crate::sink::Sink;
use crate::source::Source;
use crate::source::file::FileSource;
use crate::source::generate::GenerateSource;
use crate::stop::{Stop, Then};
use crate::sweep::Gone;

/// The plugins that the config names, loaded, by the stem of their file.
pub type Plugins = BTreeMap<String, Plugin>;

/// What to run, and who watches.
#[derive(Debug)]
pub struct RunOptions {
    /// These pipelines; none: all of them.
    pub pipelines: Vec<PipelineId>,
    /// Where to tell how far they are.
    pub progress: watch::Sender<Progress>,
}

/// How a host ended that was allowed to run.
#[derive(Debug)]
pub enum Outcome {
    /// Every pipeline has ended its source or finished its epoch, and everything decided is visible.
    Done,
    /// Stopped as asked, before these pipelines could finish their epoch or see it visible. The next start goes on with it.
    Outstanding {
        /// Those pipelines.
        pipelines: Vec<PipelineId>,
    },
    /// These pipelines stopped with a coded error; the others have ended.
    Stopped {
        /// Each with why.
        pipelines: Vec<(PipelineId, Stop)>,
    },
}

/// Why the host did not run, or may not run any more.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// The code; each has a page under docs/errors.
    pub code: &'static str,
    /// What happened, and what to do.
    pub message: String,
    /// How the process ends.
    pub exit: Exit,
}

impl From<Stop> for RunError {
    fn from(stop: Stop) -> Self {
        Self { code: stop.code, message: stop.message, exit: Exit::LedgerRefused }
    }
}

/// Runs the pipelines of a config until they end, or until SIGINT or SIGTERM.
pub async fn run(config: Config, plugins: Plugins, options: RunOptions) -> Result<Outcome, RunError> {
    let ledger = open_ledger(&config.ledger).await?;
    let holder = Holder::this_process().map_err(|error| RunError {
        code: "internal",
        message: format!("cannot tell what this process is: {error}"),
        exit: Exit::Internal,
    })?;
    let lease = match lease::take(&ledger, &holder).await.map_err(Stop::from_ledger)? {
        Ok(lease) => lease,
        Err(other) => return Err(lease_held(&config.ledger, &other)),
    };
    let lease_taken = clock::now();
    let (stopper, shutdown) = shutdown::channel();
    let signals = tokio::spawn(async {
        if let Err(error) = shutdown::listen_for_signals(stopper).await {
            tracing::error!(%error, "cannot listen for SIGINT and SIGTERM; only SIGKILL ends this host early, which is safe");
        }
    });

    let mut running = JoinSet::new();
    for (id, pipeline) in config.pipelines {
        if !options.pipelines.is_empty() && !options.pipelines.contains(&id) {
            continue;
        }
        let runner = Runner {
            publisher: Publisher::new(options.progress.clone(), id.clone()),
            id,
            config: pipeline,
            folder: config.folder.clone(),
            plugins: plugins.clone(),
            ledger: ledger.clone(),
            lease: lease.clone(),
            shutdown: shutdown.clone(),
            input: None,
            gone: Gone::since(lease_taken),
        };
        running.spawn(runner.run());
    }
    let outcome = wait(&mut running).await;
    signals.abort();
    if outcome.is_ok()
        && let Err(error) = ledger.release_lease(&holder).await
    {
        tracing::warn!(%error, "cannot give the lease back; the next start sees that this process is gone");
    }
    outcome
}

/// Waits for every pipeline. One that may not decide any more ends the host at once, because then none may.
async fn wait(running: &mut JoinSet<(PipelineId, Result<Ending, Stop>)>) -> Result<Outcome, RunError> {
    let mut stopped = Vec::new();
    let mut outstanding = Vec::new();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((_, Ok(Ending::EndOfInput | Ending::ShutDown))) => {}
            Ok((id, Ok(Ending::Outstanding))) => outstanding.push(id),
            Ok((_, Err(stop))) if stop.then == Then::EndHost => {
                running.shutdown().await;
                return Err(stop.into());
            }
            Ok((id, Err(stop))) => stopped.push((id, stop)),
            Err(error) => {
                running.shutdown().await;
                return Err(RunError { code: "internal", message: format!("a pipeline's task failed: {error}"), exit: Exit::Internal });
            }
        }
    }
    Ok(match (stopped.is_empty(), outstanding.is_empty()) {
        (false, _) => Outcome::Stopped { pipelines: stopped },
        (true, false) => Outcome::Outstanding { pipelines: outstanding },
        (true, true) => Outcome::Done,
    })
}

async fn open_ledger(config: &LedgerConfig) -> Result<Arc<dyn Ledger>, RunError> {
    let LedgerConfig::Sqlite { path } = config;
    let (ledger, created) = SqliteLedger::open(path, true).await.map_err(Stop::from_ledger)?;
    if created {
        // A new ledger in the wrong folder is how people double data, so it is never made silently.
        tracing::warn!(path = %path.display(), id = %ledger.id(), "created a new, empty ledger: every pipeline begins at its source's beginning");
    }
    Ok(Arc::new(ledger))
}

fn lease_held(ledger: &LedgerConfig, other: &Holder) -> RunError {
    RunError {
        code: "lease-held",
        message: format!(
            "another host holds {ledger}: process {} on {}. One host runs a ledger's pipelines; stop that one first",
            other.pid, other.machine
        ),
        exit: Exit::LedgerRefused,
    }
}

/// Runs one pipeline, generation after generation.
struct Runner {
    id: PipelineId,
    config: PipelineConfig,
    folder: PathBuf,
    plugins: Plugins,
    ledger: Arc<dyn Ledger>,
    lease: Lease,
    shutdown: Shutdown,
    publisher: Publisher,
    /// What the records are, once the source has said.
    input: Option<Input>,
    gone: Gone,
}

impl Runner {
    async fn run(mut self) -> (PipelineId, Result<Ending, Stop>) {
        let result = self.restart_until_it_ends().await;
        match &result {
            Ok(ending) => {
                tracing::info!(pipeline = %self.id, ?ending, "pipeline ended");
                let shown = if *ending == Ending::Outstanding { PipelineState::Stopping } else { PipelineState::Done };
                self.publisher.update(|progress| progress.state = shown);
            }
            Err(stop) => {
                tracing::error!(pipeline = %self.id, code = stop.code, "{}", stop.message);
                self.publisher.update(|progress| {
                    progress.state = PipelineState::Stopped;
                    progress.note = Some(stop.to_string());
                });
            }
        }
        (self.id, result)
    }

    async fn restart_until_it_ends(&mut self) -> Result<Ending, Stop> {
        let restart = self.config.restart;
        let mut backoff = Backoff::new(restart.backoff, restart.max_backoff);
        let mut failures = 0;
        loop {
            let decided = self.publisher.decided();
            let stop = match self.generation(Purpose::Run).await {
                Ok(ending) => return Ok(ending),
                Err(stop) => stop,
            };
            if self.publisher.decided() > decided {
                failures = 0;
                backoff.reset();
            }
            failures += 1;
            let given_up = restart.attempts.is_some_and(|attempts| failures > attempts);
            match stop.then {
                Then::EndHost => return Err(stop),
                Then::EndPipeline => return Err(self.settle_after(stop).await),
                Then::Restart if given_up => return Err(self.settle_after(stop.gave_up(failures)).await),
                Then::Restart if self.shutdown.asked() => return self.settle_and_stop().await,
                Then::Restart => {}
            }
            let pause = backoff.pause();
            tracing::warn!(pipeline = %self.id, code = stop.code, ?pause, "{}; reading again from the last decision", stop.message);
            self.publisher.update(|progress| {
                progress.state = PipelineState::BackingOff;
                progress.restarts += 1;
                progress.note = Some(stop.to_string());
            });
            tokio::select! {
                () = clock::sleep(pause) => {}
                () = self.shutdown.wait() => return self.settle_and_stop().await,
            }
        }
    }

    /// Commits what is decided and aborts what is not, because a stop was asked for after a failure.
    async fn settle_and_stop(&mut self) -> Result<Ending, Stop> {
        match self.generation(Purpose::SettleOnly).await {
            Err(stop) if stop.then == Then::Restart => {
                tracing::warn!(pipeline = %self.id, code = stop.code, "not everything could be settled: {}", stop.message);
                Ok(Ending::Outstanding)
            }
            settled => settled,
        }
    }

    /// A stop was asked for before the source could say what its records are, so nothing was opened.
    async fn stopped_before_open(&self) -> Result<Ending, Stop> {
        let Some(facts) = self.ledger.peek(&self.id).await.map_err(Stop::from_ledger)? else { return Ok(Ending::ShutDown) };
        let state = weir_protocol::PipelineState::from_facts(&facts)?;
        Ok(if state.epoch_to_commit().is_some() { Ending::Outstanding } else { Ending::ShutDown })
    }

    /// Aborts what the pipeline had under way when it cannot go on, so that nothing stays prepared at a target until somebody mends it. What
    /// cannot be aborted now stays a debt in the ledger.
    async fn settle_after(&mut self, stop: Stop) -> Stop {
        if stop.leaves_targets_alone() || self.input.is_none() {
            return stop;
        }
        match self.generation(Purpose::SettleOnly).await {
            Ok(Ending::ShutDown | Ending::EndOfInput) => {}
            Ok(Ending::Outstanding) => {
                tracing::warn!(pipeline = %self.id, "not everything could be settled; the next start goes on with it")
            }
            Err(error) => tracing::warn!(pipeline = %self.id, code = error.code, "not everything could be settled: {}", error.message),
        }
        stop
    }

    /// Raises one generation and runs it.
    async fn generation(&mut self, purpose: Purpose) -> Result<Ending, Stop> {
        let mut source = open_source(&self.config.source, &self.folder)?;
        let input = match (purpose, self.input.clone()) {
            (Purpose::SettleOnly, Some(input)) => input,
            (Purpose::Run, _) | (Purpose::SettleOnly, None) => tokio::select! {
                input = source.prepare() => input.map_err(Stop::from_discovery)?,
                () = self.shutdown.wait() => return self.stopped_before_open().await,
            },
        };
        self.input = Some(input.clone());
        let mut sinks = BTreeMap::new();
        for id in self.config.sinks.keys() {
            sinks.insert(id.clone(), Arc::new(self.sink(id, input.clone())?));
        }
        let Ended { result, generation, cut_off } = driver::run(Generational {
            pipeline: &self.id,
            config: &self.config,
            source,
            sinks,
            ledger: self.ledger.clone(),
            lease: self.lease.clone(),
            shutdown: self.shutdown.clone(),
            progress: self.publisher.clone(),
            gone: self.gone.clone(),
            purpose,
        })
        .await;
        if let Some(generation) = generation {
            self.gone.add(generation, cut_off);
        }
        result
    }

    fn sink(&self, id: &SinkId, input: Input) -> Result<Sink, Stop> {
        let missing = || Stop::internal(format!("sink {id} was not checked"));
        let config = self.config.sinks.get(id).ok_or_else(missing)?;
        let plugin = self.plugins.get(&config.plugin).ok_or_else(missing)?;
        Ok(Sink {
            pipeline: self.id.clone(),
            id: id.clone(),
            plugin: plugin.clone(),
            config_json: config.config_json.clone(),
            grants: config.grants.clone(),
            limits: config.limits,
            input,
            lanes: self.config.lanes,
        })
    }
}

fn open_source(config: &SourceConfig, folder: &Path) -> Result<Box<dyn Source>, Stop> {
    Ok(match config {
        SourceConfig::File(file) => Box::new(FileSource::new(file.clone(), folder).map_err(Stop::from_discovery)?),
        SourceConfig::Generate(generate) => Box::new(GenerateSource::new(generate.clone())),
    })
}
