//! How far each pipeline is: told by the driver and the supervisor through a `watch` channel, shown by the command line.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tokio::sync::watch;
use weir_protocol::PipelineId;

/// How far the pipelines of a host are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Each pipeline that runs or ran.
    pub pipelines: BTreeMap<PipelineId, PipelineProgress>,
}

/// How far one pipeline is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PipelineProgress {
    /// What it is doing.
    pub state: PipelineState,
    /// Records read since this process began, decided or not.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The epoch being filled; 0: none yet.
    pub epoch: u64,
    /// The newest epoch that is decided; 0: none.
    pub decided: u64,
    /// Handles that are decided and not known to be visible.
    pub unconfirmed: u32,
    /// Restarts since this process began.
    pub restarts: u32,
    /// The last error, in one line.
    pub note: Option<String>,
}

/// What a pipeline is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PipelineState {
    /// Opening its source and sinks.
    #[default]
    Starting,
    /// Committing what an earlier run decided.
    Recovering,
    /// Reading and writing.
    Running,
    /// Waiting for something to read.
    Idle,
    /// Waiting for a target to commit what is decided, before it may read on.
    Stalled,
    /// Waiting before a restart.
    BackingOff,
    /// Finishing its epoch because it was asked to stop.
    Stopping,
    /// Ended as it should.
    Done,
    /// Ended with an error.
    Stopped,
}

impl fmt::Display for PipelineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Starting => "starting",
            Self::Recovering => "recovering",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Stalled => "waiting for a target",
            Self::BackingOff => "waiting to restart",
            Self::Stopping => "stopping",
            Self::Done => "done",
            Self::Stopped => "stopped",
        })
    }
}

/// Tells one pipeline's progress. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Publisher {
    all: watch::Sender<Progress>,
    id: PipelineId,
}

impl Publisher {
    /// For the pipeline of that name.
    pub fn new(all: watch::Sender<Progress>, id: PipelineId) -> Self {
        Self { all, id }
    }

    /// Changes it.
    pub fn update(&self, change: impl FnOnce(&mut PipelineProgress)) {
        self.all.send_modify(|progress| change(progress.pipelines.entry(self.id.clone()).or_default()));
    }

    /// The newest epoch that is decided; 0: none.
    pub fn decided(&self) -> u64 {
        self.all.borrow().pipelines.get(&self.id).map_or(0, |progress| progress.decided)
    }
}
