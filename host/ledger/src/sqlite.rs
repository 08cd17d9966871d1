//! The embedded ledger: one SQLite file with a write-ahead log.
//!
//! Three connections, each opened when it is first needed: one that decides, whose every commit is synced; one for heartbeats, whose commits are not; one that
//! reads. SQLite lets one of the first two write at a time. A process that was frozen in the middle of a write keeps the file's lock: others wait
//! five seconds for it and are then told who it is.

mod open;
mod reader;
mod session;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use sqlx::{Row, query};
use weir_protocol::{
    AttemptRecord, Confirmation, Decision, Durable, Generation, LedgerId, Manifest, PipelineFacts, PipelineId, Replacement,
};

pub use reader::SqliteReader;
use session::{FileIdentity, Purpose, Seat, Session, before_commit};

use crate::durable::vouch;
use crate::lease;
use crate::rows::{self, Extent};
use crate::{Decided, Holder, LeaseAnswer, Ledger, LedgerError, PipelineSummary, check};

/// A ledger in a SQLite file, on a local disk.
#[derive(Debug)]
pub struct SqliteLedger {
    path: PathBuf,
    id: LedgerId,
    decides: Seat,
    beats: Seat,
    reads: Seat,
    #[cfg(test)]
    lost_answers: std::sync::Mutex<std::collections::VecDeque<crate::memory::LostAnswer>>,
}

impl SqliteLedger {
    /// Opens the ledger at a path, and creates it first if it is not there and `create` says so. Answers whether it was created now: a
    /// new ledger in a wrong folder is how people double data, so the caller tells them.
    ///
    /// [`LedgerError::CannotOpen`] names what is wrong with the path, the permissions or the file; nothing that is not a ledger is ever changed.
    pub async fn open(path: &Path, create: bool) -> Result<(Self, bool), LedgerError> {
        let path = open::check_path_to_write(path, create)?;
        let created = open::prepare(&path, create).await?;
        let file = FileIdentity::of(&path).map_err(|error| open::cannot_open(&path, error.to_string()))?;
        let seat = |purpose| Seat::new(&path, file, purpose);
        let (decides, beats, reads) = (seat(Purpose::Decide), seat(Purpose::Beat), seat(Purpose::Read));
        let mut session = decides.connection().await?;
        let id = open::read_id(session.conn()).await?;
        session.keep();
        #[cfg(not(test))]
        let ledger = Self { path, id, decides, beats, reads };
        #[cfg(test)]
        let ledger = Self { path, id, decides, beats, reads, lost_answers: Default::default() };
        Ok((ledger, created))
    }

    /// Opens an existing ledger to look at it, also while a host uses it, and without a trace.
    pub async fn open_read_only(path: &Path) -> Result<SqliteReader, LedgerError> {
        SqliteReader::open(path).await
    }

    async fn current_lease(session: &mut Session<'_>) -> Result<Option<(Holder, i64)>, LedgerError> {
        let row = query("SELECT holder, counter FROM lease").fetch_optional(session.conn()).await.map_err(|error| before_commit(&error))?;
        let Some(row) = row else { return Ok(None) };
        let holder: &[u8] = row.try_get("holder").map_err(|error| before_commit(&error))?;
        let counter = row.try_get("counter").map_err(|error| before_commit(&error))?;
        Ok(Some((rows::from_json(holder, "lease")?, counter)))
    }

    /// A takeover that found the file locked: names who holds the lease, who is the likeliest to hold the lock.
    async fn name_blocker(&self, error: LedgerError) -> LedgerError {
        let LedgerError::Unavailable { message } = error else { return error };
        let Ok(mut session) = self.reads.begin().await else { return LedgerError::Unavailable { message } };
        match Self::current_lease(&mut session).await {
            Ok(Some((holder, _))) => open::cannot_open(
                &self.path,
                format!("it is locked ({message}), probably by {holder}, which holds its lease; if that process is frozen, end it"),
            ),
            Ok(None) | Err(_) => LedgerError::Unavailable { message },
        }
    }

    async fn read_facts(&self, seat: &Seat, pipeline: &PipelineId) -> Result<Option<PipelineFacts>, LedgerError> {
        let mut session = seat.begin().await?;
        let facts = rows::facts(session.conn(), self.id, pipeline, Extent::Needed).await?;
        session.rollback().await?;
        Ok(facts)
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    fn id(&self) -> LedgerId {
        self.id
    }

    async fn take_lease(&self, holder: &Holder, stale: Option<&LeaseAnswer>) -> Result<LeaseAnswer, LedgerError> {
        let mut session = match self.decides.begin().await {
            Ok(session) => session,
            Err(error) => return Err(self.name_blocker(error).await),
        };
        let current = Self::current_lease(&mut session).await?;
        let answer = lease::answer(current.as_ref().map(|(holder, counter)| (holder, *counter)), holder, stale);
        if answer != LeaseAnswer::Taken {
            session.rollback().await?;
            return Ok(answer);
        }
        write::lease(session.conn(), holder, current.map_or(0, |(_, counter)| counter + 1)).await?;
        session.commit().await?;
        Ok(answer)
    }

    async fn heartbeat(&self, holder: &Holder) -> Result<(), LedgerError> {
        let mut session = self.beats.begin().await?;
        let beat = query("UPDATE lease SET counter = counter + 1 WHERE holder_id = ?").bind(&holder.id).execute(session.conn()).await;
        if beat.map_err(|error| before_commit(&error))?.rows_affected() == 1 {
            return session.commit().await;
        }
        let other = Self::current_lease(&mut session).await?;
        session.rollback().await?;
        Err(LedgerError::LeaseLost { holder: other.map_or_else(|| "nobody".to_owned(), |(holder, _)| holder.to_string()) })
    }

    async fn release_lease(&self, holder: &Holder) -> Result<(), LedgerError> {
        let mut session = self.decides.begin().await?;
        let release = query("DELETE FROM lease WHERE holder_id = ?").bind(&holder.id).execute(session.conn()).await;
        release.map_err(|error| before_commit(&error))?;
        session.commit().await
    }

    async fn peek(&self, pipeline: &PipelineId) -> Result<Option<PipelineFacts>, LedgerError> {
        self.read_facts(&self.reads, pipeline).await
    }

    async fn pipelines(&self) -> Result<Vec<PipelineSummary>, LedgerError> {
        let mut session = self.reads.begin().await?;
        let summaries = rows::summaries(session.conn()).await?;
        session.rollback().await?;
        Ok(summaries)
    }

    async fn raise_generation(
        &self,
        pipeline: &PipelineId,
        seen: Generation,
        manifest: &Manifest,
    ) -> Result<Durable<PipelineFacts>, LedgerError> {
        let mut session = self.decides.connection().await?;
        write::checkpoint(session.conn()).await?;
        session.keep();
        let mut session = self.decides.begin().await?;
        if let Err(error) = write::raise(session.conn(), pipeline, seen, manifest).await {
            session.rollback().await?;
            return Err(error);
        }
        session.commit().await?;
        // Read after the synced commit, on the connection that made it.
        let facts = self.read_facts(&self.decides, pipeline).await?;
        match facts {
            Some(facts) if facts.generation == seen.next() => Ok(vouch(facts)),
            Some(facts) => Err(LedgerError::Fenced { ours: seen.next(), found: facts.generation }),
            None => Err(LedgerError::corrupt(format!("pipeline {pipeline} is gone"))),
        }
    }

    async fn decide(&self, decision: &Decision, confirmations: &[Confirmation]) -> Result<Decided, LedgerError> {
        let sealed = check::decision(decision)?;
        let mut session = self.decides.begin().await?;
        match write::decide(session.conn(), decision, &sealed, confirmations).await {
            Ok(write::Outcome::Write) => {
                self.commit_decision(session).await?;
                Ok(Decided::Made(vouch(decision.clone())))
            }
            Ok(write::Outcome::Refused { generation, head }) => {
                session.rollback().await?;
                Ok(Decided::Refused { generation, head })
            }
            Err(error) => {
                session.rollback().await?;
                Err(error)
            }
        }
    }

    async fn confirm(&self, pipeline: &PipelineId, generation: Generation, confirmations: &[Confirmation]) -> Result<(), LedgerError> {
        let mut session = self.decides.begin().await?;
        let written = write::confirm(session.conn(), pipeline, generation, confirmations).await;
        finish(session, written).await
    }

    async fn replace(
        &self,
        pipeline: &PipelineId,
        generation: Generation,
        replacement: &Replacement,
    ) -> Result<Durable<Replacement>, LedgerError> {
        let mut session = self.decides.begin().await?;
        let written = write::replace(session.conn(), pipeline, generation, replacement).await;
        finish(session, written).await?;
        Ok(vouch(replacement.clone()))
    }

    async fn record_attempt(&self, pipeline: &PipelineId, generation: Generation, attempt: &AttemptRecord) -> Result<(), LedgerError> {
        let mut session = self.decides.begin().await?;
        let written = write::attempt(session.conn(), self.id, pipeline, generation, attempt).await;
        finish(session, written).await
    }

    async fn discharge(&self, pipeline: &PipelineId, generation: Generation, owed_by: Generation) -> Result<(), LedgerError> {
        let mut session = self.decides.begin().await?;
        let written = write::discharge(session.conn(), pipeline, generation, owed_by).await;
        finish(session, written).await
    }

    async fn step_down(&self, pipeline: &PipelineId, generation: Generation) -> Result<(), LedgerError> {
        let mut session = self.decides.begin().await?;
        let written = write::step_down(session.conn(), pipeline, generation).await;
        finish(session, written).await
    }
}

/// Commits what was written, or takes it back.
async fn finish(session: Session<'_>, written: Result<(), LedgerError>) -> Result<(), LedgerError> {
    match written {
        Ok(()) => session.commit().await,
        Err(error) => {
            session.rollback().await?;
            Err(error)
        }
    }
}

impl SqliteLedger {
    #[cfg(not(test))]
    async fn commit_decision(&self, session: Session<'_>) -> Result<(), LedgerError> {
        session.commit().await
    }

    /// The same, with an answer that can get lost on either side of the commit.
    #[cfg(test)]
    async fn commit_decision(&self, session: Session<'_>) -> Result<(), LedgerError> {
        use crate::memory::LostAnswer;
        let lost = self.lost_answers.lock().map(|mut answers| answers.pop_front()).ok().flatten();
        let unavailable = || LedgerError::Unavailable { message: "the answer was lost".to_owned() };
        match lost {
            None => session.commit().await,
            Some(LostAnswer::NotMade) => Err(unavailable()),
            Some(LostAnswer::Made) => session.commit().await.and(Err(unavailable())),
        }
    }
}
