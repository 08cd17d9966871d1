//! Several processes on one SQLite ledger: killed while they decide, racing to create it, or without the right to write it.
//!
//! The binary starts itself again as those processes, so it has its own main function: with the role in the environment it is one of them, without it
//! the tests run one after the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "the processes tell each other through pipes, and the tests are listed")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use weir_ledger::{Holder, LeaseAnswer, Ledger, LedgerError, SqliteLedger};
use weir_protocol::{Epoch, Hash, PipelineState};

use support::*;

const ROLE: &str = "WEIR_LEDGER_TEST_ROLE";
const LEDGER: &str = "WEIR_LEDGER_TEST_PATH";
const SEED: &str = "WEIR_TEST_SEED";
/// Kills in one run.
const ROUNDS: u32 = 60;
/// No process of this test may take longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

type Test = fn(&tokio::runtime::Runtime);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Ok(role) = std::env::var(ROLE) {
        let path = PathBuf::from(std::env::var(LEDGER).unwrap());
        return runtime.block_on(async {
            match role.as_str() {
                "decide" => decide_until_killed(&path).await,
                "open" => open_and_tell(&path, false).await,
                "create" => open_and_tell(&path, true).await,
                other => panic!("no role {other}"),
            }
        });
    }
    let tests: &[(&str, Test)] = &[
        ("a_kill_inside_a_decision_leaves_a_decision_or_none", a_kill_inside_a_decision_leaves_a_decision_or_none),
        ("of_processes_that_create_one_ledger_at_once_one_does", of_processes_that_create_one_ledger_at_once_one_does),
        ("what_this_user_may_not_write_is_refused_when_it_is_opened", what_this_user_may_not_write_is_refused_when_it_is_opened),
    ];
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&filter)) {
        test(&runtime);
        println!("test {name} ... ok");
    }
}

/// Starts this binary in a role.
fn start(exe: &Path, role: &str, path: &Path) -> Command {
    let mut command = Command::new(exe);
    command.env(ROLE, role).env(LEDGER, path).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn this_exe() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Takes the lease of whoever was killed, raises the generation, and decides until the end.
async fn decide_until_killed(path: &Path) {
    let (ledger, _) = SqliteLedger::open(path, true).await.unwrap();
    let holder = Holder::this_process().unwrap();
    assert_eq!(ledger.take_lease(&holder, None).await.unwrap(), LeaseAnswer::Taken, "the killed holder is replaced at once");
    let ledger: Arc<dyn Ledger> = Arc::new(ledger);
    let mut host = Host::start(ledger.clone()).await;
    let mut out = std::io::stdout();
    writeln!(out, "started {} {}", host.generation, host.state.head().epoch).unwrap();
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        // A heartbeat in the middle of it, as in a host.
        let (decisions, beat) = tokio::join!(host.run(1), ledger.heartbeat(&holder));
        beat.unwrap();
        let head = decisions[0].head().unwrap();
        writeln!(out, "made {} {}", head.epoch, head.hash).unwrap();
    }
}

async fn open_and_tell(path: &Path, create: bool) {
    match SqliteLedger::open(path, create).await {
        Ok((ledger, created)) => println!("opened {} {created}", ledger.id()),
        Err(error) => println!("{}: {error}", error.code()),
    }
}

/// Everything that a process says until it ends.
fn said(child: &mut Child) -> Vec<String> {
    BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap()).collect()
}

fn a_kill_inside_a_decision_leaves_a_decision_or_none(runtime: &tokio::runtime::Runtime) {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| std::process::id().into());
    println!("kill moments of seed {seed}; {SEED} repeats them");
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &Hash::of(&u64::to_le_bytes(seed)).to_string().as_bytes()[..32]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.db");
    let mut promised: BTreeMap<Epoch, Hash> = BTreeMap::new();
    let mut unpromised = 0;
    for round in 0..ROUNDS {
        let mut child = start(&this_exe(), "decide", &path).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.starts_with("started"), "{first}");
        // The moment of the kill is the one thing here that time decides.
        std::thread::sleep(Duration::from_micros(u64::from(rng.next_u32() % 40_000)));
        child.kill().unwrap();
        for line in lines {
            // The last line may be cut by the kill.
            let line = line.unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            if let ["made", epoch, hash] = words[..]
                && let Ok(hash) = Hash::try_from(hash.to_owned())
            {
                promised.insert(Epoch(epoch.parse().unwrap()), hash);
            }
        }
        child.wait().unwrap();
        unpromised += runtime.block_on(check_promises(&path, &mut promised, round));
    }
    assert!(promised.len() > 100, "only {} decisions were made in all rounds", promised.len());
    println!("{} decisions reported as made in {ROUNDS} rounds, {unpromised} more found made whose answer was cut off", promised.len());
}

/// Everything that was reported as made is there, and nothing but whole decisions. Answers how many more there are than were reported: one at most,
/// which is promised from now on.
async fn check_promises(path: &Path, promised: &mut BTreeMap<Epoch, Hash>, round: u32) -> u64 {
    let reader = SqliteLedger::open_read_only(path).await.unwrap();
    let facts = reader.history(&pipeline()).await.unwrap().unwrap();
    PipelineState::from_facts(&facts).unwrap();
    let newest = promised.last_key_value().map_or(Epoch::GENESIS, |(epoch, _)| *epoch);
    let head = facts.head.epoch;
    assert!(head >= newest, "round {round}: epoch {newest} was reported as made, and the ledger ends with epoch {head}");
    let more = head.0 - newest.0;
    assert!(more <= 1, "round {round}: epochs {newest} to {head} were made, and their answers held back");
    promised.insert(head, facts.head.hash);
    for decision in &facts.decisions {
        if let Some(hash) = promised.get(&decision.epoch) {
            assert_eq!(decision.head().unwrap().hash, *hash, "round {round}: epoch {} is another decision", decision.epoch);
        }
        assert_eq!(decision.handles.len(), 1);
    }
    let unconfirmed = PipelineState::from_facts(&facts).unwrap().unconfirmed().count();
    assert!(unconfirmed <= 1, "round {round}: a decision and the confirmations that it carries are durable together");
    more
}

fn of_processes_that_create_one_ledger_at_once_one_does(_: &tokio::runtime::Runtime) {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir.db");
        let mut children: Vec<_> = (0..6).map(|_| start(&this_exe(), "create", &path).spawn().unwrap()).collect();
        let answers: Vec<String> = children.iter_mut().flat_map(said).collect();
        for mut child in children {
            child.wait().unwrap();
        }
        let created: Vec<_> = answers.iter().filter(|answer| answer.ends_with("true")).collect();
        assert_eq!(created.len(), 1, "{answers:?}");
        let id = |answer: &String| answer.split(' ').nth(1).map(str::to_owned);
        assert!(answers.iter().all(|answer| answer.starts_with("opened") && id(answer) == id(created[0])), "{answers:?}");
    }
}

/// The administrator may write everything, so a test that runs as one becomes somebody else for this.
fn what_this_user_may_not_write_is_refused_when_it_is_opened(runtime: &tokio::runtime::Runtime) {
    const NOBODY: u32 = 65_534;
    // Below the system's folder for temporary files, which everybody may enter, with a copy of this binary.
    let folder = tempfile::tempdir().unwrap();
    let exe = folder.path().join("processes");
    fs::copy(this_exe(), &exe).unwrap();
    let ledgers = folder.path().join("ledgers");
    fs::create_dir(&ledgers).unwrap();
    let path = ledgers.join("weir.db");
    runtime.block_on(async { SqliteLedger::open(&path, true).await.unwrap() });
    let is_root = fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0).unwrap();
    let ask = |role: &str, path: &Path| {
        let mut command = start(&exe, role, path);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child = command.spawn().unwrap();
        let answer = said(&mut child).join("\n");
        child.wait().unwrap();
        answer
    };
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(folder.path(), 0o755);

    mode(&ledgers, 0o777);
    mode(&path, 0o444);
    let answer = ask("open", &path);
    assert!(answer.starts_with("ledger-cannot-open") && answer.contains("may not write it"), "{answer}");

    mode(&path, 0o000);
    let answer = ask("open", &path);
    assert!(answer.starts_with("ledger-cannot-open") && answer.contains("may not write it"), "{answer}");

    mode(&path, 0o666);
    mode(&ledgers, 0o555);
    for (role, path) in [("open", path.clone()), ("create", ledgers.join("new.db"))] {
        let answer = ask(role, &path);
        assert!(answer.starts_with("ledger-cannot-open") && answer.contains("folder"), "{role}: {answer}");
    }

    mode(&ledgers, 0o777);
    let answer = ask("open", &path);
    assert!(answer.starts_with("opened"), "{answer}");
    mode(&ledgers, 0o755);
    assert!(matches!(runtime.block_on(SqliteLedger::open(&ledgers.join("none.db"), false)), Err(LedgerError::CannotOpen { .. })));
}
