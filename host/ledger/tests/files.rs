//! What a SQLite ledger does with files: paths that are none, damage, copies, readers beside a writer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, query};
use tempfile::TempDir;
use weir_ledger::{Decided, Holder, LeaseAnswer, Ledger, LedgerError, SqliteLedger};
use weir_protocol::{Decision, Epoch, Generation, PipelineFacts};

use support::*;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.db");
    (folder, path)
}

async fn open(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path, true).await.unwrap().0
}

async fn start(path: &Path) -> Host {
    Host::start(Arc::new(open(path).await)).await
}

/// The message of a ledger that cannot be opened.
async fn refused(path: &Path, create: bool) -> String {
    match SqliteLedger::open(path, create).await {
        Err(error @ LedgerError::CannotOpen { .. }) => {
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            error.to_string()
        }
        other => panic!("expected to be refused, got {other:?}"),
    }
}

/// A connection of some other program.
async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).foreign_keys(false).create_if_missing(true).connect().await.unwrap()
}

async fn change(path: &Path, sql: &'static str) {
    let mut conn = raw(path).await;
    let changed = query(sql).execute(&mut conn).await.unwrap().rows_affected();
    assert!(changed > 0 || sql.starts_with("PRAGMA") || sql.starts_with("CREATE"), "{sql} changed nothing");
    conn.close().await.unwrap();
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Copies a ledger while this process has it open. By another process, since closing a file here would drop the locks that SQLite holds on it.
fn copy(from: &Path, to: &Path) {
    for end in ["", "-wal"] {
        let (from, to) = (format!("{}{end}", from.display()), format!("{}{end}", to.display()));
        if Path::new(&from).exists() {
            assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
        }
    }
}

#[tokio::test]
async fn a_ledger_is_created_only_if_that_is_wanted_and_keeps_its_id() {
    let (folder, path) = folder();
    assert!(refused(&path, false).await.contains("no such file"));
    assert!(names(folder.path()).is_empty());
    let (ledger, created) = SqliteLedger::open(&path, true).await.unwrap();
    assert!(created);
    for create in [true, false] {
        let (again, created) = SqliteLedger::open(&path, create).await.unwrap();
        assert_eq!((again.id(), created), (ledger.id(), false));
    }
    let other = open(&folder.path().join("other.db")).await;
    assert_ne!(other.id(), ledger.id());
}

#[tokio::test]
async fn a_path_that_cannot_be_a_ledger_is_refused_by_what_is_wrong_with_it() {
    let (folder, path) = folder();
    assert!(refused(folder.path(), true).await.contains("it is a folder"));
    assert!(refused(&folder.path().join("none/weir.db"), true).await.contains("none does not exist"));
    assert!(refused(Path::new("/dev/null"), true).await.contains("neither a file nor a folder"));
    fs::write(&path, "orders:\n  source: data\n".repeat(100)).unwrap();
    assert!(refused(&path, true).await.contains("not a SQLite database"));
    assert!(refused(&path.join("weir.db"), true).await.contains("cannot open"));
    let before = fs::read(&path).unwrap();
    assert!(SqliteLedger::open_read_only(&path).await.unwrap_err().to_string().contains("not a SQLite database"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn somebody_elses_database_is_refused_and_stays_as_it_is() {
    let (_folder, path) = folder();
    change(&path, "CREATE TABLE orders (id INTEGER)").await;
    let before = fs::read(&path).unwrap();
    assert!(refused(&path, true).await.contains("not a ledger"));
    assert!(SqliteLedger::open_read_only(&path).await.unwrap_err().to_string().contains("not a ledger"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_ledger_of_a_newer_program_is_refused_and_stays_as_it_is() {
    let (_folder, path) = folder();
    drop(open(&path).await);
    change(&path, "PRAGMA user_version = 2").await;
    assert!(refused(&path, true).await.contains("schema version 2"));
    assert!(SqliteLedger::open_read_only(&path).await.unwrap_err().to_string().contains("schema version 2"));
}

#[tokio::test]
async fn an_empty_file_and_what_a_killed_creation_left_become_a_ledger() {
    let (folder, path) = folder();
    fs::write(&path, "").unwrap();
    assert!(refused(&path, false).await.contains("empty"));
    assert!(SqliteLedger::open(&path, true).await.unwrap().1);
    let killed = folder.path().join("killed.db");
    change(&killed, "PRAGMA journal_mode = WAL").await;
    assert!(fs::metadata(&killed).unwrap().len() > 0);
    assert!(SqliteLedger::open(&killed, true).await.unwrap().1);
}

#[tokio::test]
async fn a_name_that_looks_like_a_url_is_a_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["file:weir.db", "weir.db?mode=memory", "50% weir#1.db"] {
        let path = folder.path().join(name);
        start(&path).await.run(1).await;
        assert!(names(folder.path()).contains(name));
        assert!(SqliteLedger::open_read_only(&path).await.unwrap().peek(&pipeline()).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_reader_sees_every_decision_while_a_host_writes() {
    let (_folder, path) = folder();
    let mut host = start(&path).await;
    let reader = SqliteLedger::open_read_only(&path).await.unwrap();
    assert_eq!(reader.id(), host.ledger.id());
    for _ in 0..20 {
        host.run(1).await;
        assert_eq!(reader.peek(&pipeline()).await.unwrap().unwrap(), host.facts().await);
    }
    let other = SqliteLedger::open_read_only(&path).await.unwrap();
    let reading = tokio::spawn(async move {
        let mut seen = Epoch::GENESIS;
        while seen < Epoch(100) {
            let facts = other.history(&pipeline()).await.unwrap().unwrap();
            assert!(facts.head.epoch >= seen);
            seen = facts.head.epoch;
        }
    });
    host.run(80).await;
    reading.await.unwrap();
    assert_eq!(reader.pipelines().await.unwrap(), host.ledger.pipelines().await.unwrap());
}

#[tokio::test]
async fn a_reader_leaves_no_trace_without_a_host_and_after_a_killed_one() {
    let (folder, path) = folder();
    let mut host = start(&path).await;
    host.run(3).await;
    let facts = host.facts().await;
    // What a kill leaves: the file and its log as they are in this moment.
    let killed = folder.path().join("killed");
    fs::create_dir(&killed).unwrap();
    copy(&path, &killed.join("weir.db"));
    assert!(Command::new("cp").arg(format!("{}-shm", path.display())).arg(killed.join("weir.db-shm")).status().unwrap().success());
    let clean = folder.path().join("clean");
    fs::create_dir(&clean).unwrap();
    copy(&path, &clean.join("weir.db"));
    change(&clean.join("weir.db"), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    for place in [killed, clean] {
        let before = names(&place);
        let bytes = fs::read(place.join("weir.db")).unwrap();
        let reader = SqliteLedger::open_read_only(&place.join("weir.db")).await.unwrap();
        assert_eq!(reader.peek(&pipeline()).await.unwrap(), Some(facts.clone()));
        assert_eq!(names(&place), before);
        assert_eq!(fs::read(place.join("weir.db")).unwrap(), bytes);
    }
    let missing = SqliteLedger::open_read_only(&folder.path().join("none.db")).await.unwrap_err();
    assert!(missing.to_string().contains("no such file"), "{missing}");
}

#[tokio::test]
async fn history_goes_back_further_than_a_start_needs() {
    let (_folder, path) = folder();
    let mut host = start(&path).await;
    let decisions = host.run(250).await;
    let reader = SqliteLedger::open_read_only(&path).await.unwrap();
    let facts = reader.history(&pipeline()).await.unwrap().unwrap();
    assert_eq!(facts.decisions, decisions[250 - weir_ledger::DECISIONS_KEPT as usize..]);
    assert_eq!(facts.confirmations.len(), facts.decisions.len() - 1);
}

#[tokio::test]
async fn a_file_put_in_the_ledgers_place_under_a_running_host_stops_it() {
    let (folder, path) = folder();
    let mut host = start(&path).await;
    host.run(2).await;
    let backup = folder.path().join("backup.db");
    copy(&path, &backup);
    host.run(2).await;
    fs::rename(&backup, &path).unwrap();
    for answer in [
        host.ledger.decide(&host.draft(), &[]).await.map(|_| ()),
        host.ledger.heartbeat(&Holder::this_process().unwrap()).await,
        host.ledger.peek(&pipeline()).await.map(|_| ()),
    ] {
        let Err(LedgerError::Corrupt { message }) = answer else { panic!("{answer:?}") };
        assert!(message.contains("replaced"), "{message}");
    }
}

#[tokio::test]
async fn a_restored_older_copy_fences_what_was_decided_after_it() {
    let (folder, path) = folder();
    let mut host = start(&path).await;
    let decisions = host.run(2).await;
    let backup = folder.path().join("backup.db");
    copy(&path, &backup);
    let lost = host.run(3).await;
    let restored = start(&backup).await;
    // By itself the copy is a good ledger: what it lacks is known to the targets, whose answers the runtime checks.
    assert_eq!(restored.ledger.id(), host.ledger.id());
    assert_eq!(restored.facts().await.decisions, decisions);
    for decision in &lost {
        assert!(matches!(restored.ledger.decide(decision, &[]).await.unwrap(), Decided::Refused { generation: Generation(2), .. }));
    }
    let debts = restored.facts().await.debts;
    assert_eq!((debts.len(), debts[0].base), (1, Epoch(2)), "what the copy does not know is swept, and found committed");
}

#[tokio::test]
async fn damage_is_named_by_what_does_not_fit() {
    for (sql, words) in [
        ("UPDATE decision SET body = CAST(replace(CAST(body AS TEXT), 'a.jsonl', 'b.jsonl') AS BLOB) WHERE epoch = 2", "hash"),
        (
            "UPDATE decision SET body = (SELECT body FROM decision WHERE epoch = 1), hash = (SELECT hash FROM decision WHERE epoch = 1) WHERE epoch = 2",
            "another one",
        ),
        ("DELETE FROM decision WHERE epoch = 2", "out of turn"),
        ("DELETE FROM decision WHERE epoch = 3", "EO-4"),
        ("DELETE FROM decision WHERE epoch = 1", "snapshot"),
        ("UPDATE pipeline SET head_epoch = 2", "EO-4"),
        ("UPDATE pipeline SET head_hash = 'x'", "hash"),
        ("UPDATE generation SET manifest = CAST(replace(CAST(manifest AS TEXT), '/out', '/tmp') AS BLOB)", "manifest"),
        ("DELETE FROM generation", "manifest is missing"),
        ("UPDATE handle SET epoch = 1 WHERE epoch = 2", "EO-1"),
        ("UPDATE lease SET holder = x'7b7d'", "lease"),
    ] {
        let (_folder, path) = folder();
        let mut host = start(&path).await;
        host.ledger.take_lease(&Holder::this_process().unwrap(), None).await.unwrap();
        host.run(3).await;
        drop(host);
        change(&path, sql).await;
        let ledger = open(&path).await;
        let answers =
            [ledger.peek(&pipeline()).await.map(|_| ()), ledger.take_lease(&Holder::this_process().unwrap(), None).await.map(|_| ())];
        let messages: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).map(ToString::to_string).collect();
        assert!(answers.iter().all(|answer| matches!(answer, Ok(()) | Err(LedgerError::Corrupt { .. }))), "{sql}: {answers:?}");
        assert!(messages.iter().any(|message| message.contains(words)), "{sql}: {answers:?}");
    }
}

/// A ledger of 40 decisions with all of them in its log, and the facts after each.
async fn logged(path: &Path) -> (Vec<Decision>, Vec<PipelineFacts>) {
    let ledger = open(&path.with_extension("origin")).await;
    let mut host = Host::start(Arc::new(ledger)).await;
    let (mut decisions, mut facts) = (Vec::new(), vec![host.facts().await]);
    for _ in 0..40 {
        decisions.extend(host.run(1).await);
        facts.push(host.facts().await);
    }
    copy(&path.with_extension("origin"), path);
    (decisions, facts)
}

#[tokio::test]
async fn a_torn_log_is_a_shorter_chain_and_never_half_a_decision() {
    let (folder, path) = folder();
    let (_, facts) = logged(&path).await;
    let (file, log) = (fs::read(&path).unwrap(), fs::read(format!("{}-wal", path.display())).unwrap());
    assert!(log.len() > 100_000, "{}", log.len());
    let mut lengths = BTreeSet::new();
    let mut cases = TestRunner::deterministic();
    for _ in 0..400 {
        let (cut, flip) =
            (any::<prop::sample::Index>(), any::<Option<(prop::sample::Index, u8)>>()).new_tree(&mut cases).unwrap().current();
        let mut bytes = log[..=cut.index(log.len())].to_vec();
        if let Some((at, bits)) = flip {
            let at = at.index(bytes.len());
            bytes[at] ^= bits.max(1);
        }
        let place = tempfile::tempdir_in(folder.path()).unwrap();
        let torn = place.path().join("weir.db");
        fs::write(&torn, &file).unwrap();
        fs::write(place.path().join("weir.db-wal"), &bytes).unwrap();
        match SqliteLedger::open(&torn, false).await {
            Ok((ledger, _)) => match ledger.peek(&pipeline()).await.unwrap() {
                Some(found) => {
                    let epoch = found.head.epoch.0;
                    assert_eq!(found, facts[usize::try_from(epoch).unwrap()]);
                    lengths.insert(epoch);
                }
                None => {
                    lengths.insert(0);
                }
            },
            Err(LedgerError::CannotOpen { message, .. }) => {
                assert!(message.contains("empty"), "the log was cut before the ledger: {message}")
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(lengths.len() > 20, "{lengths:?}");
}

#[tokio::test]
async fn a_flipped_byte_in_the_file_never_shows_a_decision_that_was_not_made() {
    let (folder, path) = folder();
    let (decisions, _) = logged(&path).await;
    change(&path, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let file = fs::read(&path).unwrap();
    let flipped = folder.path().join("flipped.db");
    let (mut noticed, mut harmless) = (0, 0);
    let mut cases = TestRunner::deterministic();
    for _ in 0..300 {
        let (at, bits) = (any::<prop::sample::Index>(), 1_u8..=255).new_tree(&mut cases).unwrap().current();
        let mut bytes = file.clone();
        bytes[at.index(file.len())] ^= bits;
        fs::write(&flipped, &bytes).unwrap();
        let facts = match SqliteLedger::open_read_only(&flipped).await {
            Ok(reader) => reader.peek(&pipeline()).await,
            Err(error) => Err(error),
        };
        match facts {
            Ok(Some(facts)) => {
                harmless += 1;
                assert!(facts.decisions.iter().all(|decision| decisions.contains(decision)));
                assert_eq!(facts.head, decisions[39].head().unwrap());
            }
            Ok(None) => noticed += 1,
            Err(LedgerError::Corrupt { .. } | LedgerError::CannotOpen { .. } | LedgerError::Unavailable { .. }) => noticed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(noticed > 50 && harmless > 10, "{noticed} noticed, {harmless} harmless");
}

#[tokio::test]
async fn a_frozen_process_that_keeps_the_lock_is_named_by_its_pid() {
    let (_folder, path) = folder();
    let ledger = open(&path).await;
    let frozen = Holder { pid: 1, process_start_ticks: 0, ..Holder::this_process().unwrap() };
    assert_eq!(ledger.take_lease(&frozen, None).await.unwrap(), LeaseAnswer::Taken);
    let mut conn = raw(&path).await;
    query("BEGIN IMMEDIATE").execute(&mut conn).await.unwrap();
    let other = open_beside(&path).await;
    let error = other.take_lease(&Holder::this_process().unwrap(), None).await.unwrap_err();
    assert!(matches!(&error, LedgerError::CannotOpen { .. }) && error.to_string().contains("process 1 on"), "{error}");
    query("ROLLBACK").execute(&mut conn).await.unwrap();
    assert!(matches!(other.take_lease(&Holder::this_process().unwrap(), None).await.unwrap(), LeaseAnswer::Held { .. }));
}

/// Opens a ledger whose write lock somebody holds.
async fn open_beside(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path, false).await.unwrap().0
}
