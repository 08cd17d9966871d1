//! Who runs the pipelines of a ledger, and when another host may take its place.

use std::fmt;
use std::io;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use crate::liveness::{self, Life};

/// A host, named so that another one on the same machine can tell whether it still lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// Random, new with every process.
    pub id: String,
    /// The machine's name, for people. Proves nothing: containers and cloned machines share names.
    pub machine: String,
    /// The installation's id, or empty where it proves nothing (in a container, whose image other machines run too).
    pub machine_id: String,
    /// The boot id of the running kernel. Another one on the same machine means that every process of the old boot is gone.
    pub boot_id: String,
    /// Which pid and time namespaces the two numbers below count in. Numbers of other namespaces cannot be compared.
    pub namespaces: String,
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot, so that a pid that was given to another process is noticed.
    pub process_start_ticks: u64,
}

impl Holder {
    /// This process, under a new random id. The ids that a system does not tell are left empty, and then nothing is concluded from them.
    /// Fails only where the system has no randomness.
    pub fn this_process() -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(liveness::this_process(HEXLOWER.encode(&random)))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.machine)
    }
}

/// The answer to a try at the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// The caller holds it.
    Taken,
    /// Another host does, and may be alive.
    Held {
        /// Who.
        holder: Holder,
        /// Its heartbeat counter. The same value a lease period later means that it is gone.
        counter: i64,
    },
}

/// May the candidate have the lease? The one rule of all implementations: a free lease, its own, that of a holder that is provably dead, and that
/// of a holder whose counter has not moved since `stale`, which the caller was told a lease period ago.
pub(crate) fn answer(current: Option<(&Holder, i64)>, candidate: &Holder, stale: Option<&LeaseAnswer>) -> LeaseAnswer {
    let Some((holder, counter)) = current else { return LeaseAnswer::Taken };
    let held = LeaseAnswer::Held { holder: holder.clone(), counter };
    if holder.id == candidate.id || stale == Some(&held) {
        return LeaseAnswer::Taken;
    }
    match liveness::of(holder, candidate) {
        Life::Dead => LeaseAnswer::Taken,
        Life::Possible => held,
    }
}
