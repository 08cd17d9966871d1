//! The program itself: its line when ready, its help, SIGKILL at any moment, and memory under a large body.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use doris_emulator::{Addresses, Client, TableSpec, Transaction, TransactionState};

use crate::support::{Connection, ROOT, head, json_lines, load, two_phase};

/// Kills in the crash test.
const KILLS: u64 = 25;
/// Rows of each of its loads.
const ROWS: u64 = 200;
/// Bytes of the large body.
const LARGE_BYTES: u64 = 400 << 20;
/// Memory that the program may take while it receives it.
const PEAK_BYTES_MAX: u64 = 64 << 20;

/// The program, killed when dropped.
struct Program {
    child: Child,
    addresses: Addresses,
}

impl Program {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doris-emulator"));
        command.arg("--data").arg(data).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, addresses: serde_json::from_str(&line).unwrap() }
    }

    fn client(&self) -> Client {
        Client::new(self.addresses.control)
    }

    fn be(&self) -> SocketAddr {
        self.addresses.be[0]
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have been killed already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a client of one run was told.
#[derive(Default)]
struct Told {
    precommitted: Vec<(i64, u64)>,
    committed: Vec<(i64, u64)>,
    aborted: Vec<i64>,
}

/// Loads, commits and aborts one after another until the program is gone; notes only what was answered.
fn work(be: SocketAddr, run: u64, started: &AtomicBool) -> Told {
    let mut told = Told::default();
    for number in 0.. {
        let first = (run * 100_000 + number) * ROWS;
        let Some(id) = try_load(be, &format!("run-{run}-{number}"), &json_lines(first, ROWS)) else { return told };
        started.store(true, Ordering::SeqCst);
        let operation = match number % 3 {
            0 => "commit",
            1 => "abort",
            _ => {
                told.precommitted.push((id, first));
                continue;
            }
        };
        let headers = [ROOT, "Content-Length: 0", &format!("txn_id: {id}"), &format!("txn_operation: {operation}")];
        match try_request(be, "/api/shop/_stream_load_2pc", &headers, b"") {
            Some(reply) if reply["status"] == "Success" && operation == "commit" => told.committed.push((id, first)),
            Some(reply) if reply["status"] == "Success" => told.aborted.push(id),
            Some(reply) => panic!("{reply}"),
            None => return told,
        }
    }
    told
}

fn try_load(be: SocketAddr, label: &str, body: &str) -> Option<i64> {
    let headers = [ROOT, "two_phase_commit: true", "format: json", &format!("label: {label}"), &format!("Content-Length: {}", body.len())];
    let reply = try_request(be, "/api/shop/orders/_stream_load", &headers, body.as_bytes())?;
    assert_eq!(reply["Status"], "Success", "{reply}");
    reply["TxnId"].as_i64()
}

/// A request to a program that may die meanwhile.
fn try_request(be: SocketAddr, path: &str, headers: &[&str], body: &[u8]) -> Option<serde_json::Value> {
    let mut connection = Connection::try_open(be)?;
    connection.try_send(&head("PUT", path, headers)).ok()?;
    connection.try_send(body).ok()?;
    connection.try_read_reply().map(|reply| reply.json())
}

#[test]
fn every_promise_survives_sigkill_with_its_rows_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path());
    program.client().create_table(&TableSpec::any("shop", "orders")).unwrap();
    let mut committed_rows = 0;
    let (mut runs, mut kept) = (Vec::new(), Vec::new());
    for run in 0..KILLS {
        let started = AtomicBool::new(false);
        let told = std::thread::scope(|scope| {
            let (be, started) = (program.be(), &started);
            let worker = scope.spawn(move || work(be, run, started));
            let deadline = Instant::now() + Duration::from_secs(20);
            while !started.load(Ordering::SeqCst) && Instant::now() < deadline {
                std::thread::yield_now();
            }
            // The moment of the kill moves through the work from run to run.
            std::thread::sleep(Duration::from_micros(run * 1_237));
            program.kill();
            worker.join().unwrap()
        });
        program = Program::start(folder.path());
        kept.push(program.client().transactions(&Default::default()).unwrap());
        runs.push(told);
    }
    for (told, kept) in runs.iter().zip(&kept) {
        check(told, kept);
        committed_rows += told.committed.len() as u64 * ROWS;
    }
    assert!(committed_rows > 0, "nothing was committed before any kill");
    check_rows(&program, &runs);
}

/// What was told must be so after the kill.
fn check(told: &Told, kept: &[Transaction]) {
    let state = |id: i64| kept.iter().find(|it| it.id == id).map(|it| (it.state, it.rows));
    for &(id, _) in &told.precommitted {
        assert_eq!(state(id), Some((TransactionState::Precommitted, ROWS)), "transaction {id}");
    }
    for &(id, _) in &told.committed {
        assert_eq!(state(id), Some((TransactionState::Visible, ROWS)), "transaction {id}");
    }
    for &id in &told.aborted {
        assert_eq!(state(id).map(|it| it.0), Some(TransactionState::Aborted), "transaction {id}");
    }
    assert!(kept.iter().all(|it| it.state != TransactionState::Prepare), "a PREPARE transaction outlived the program");
}

/// Commits everything that is left, and compares the rows of all that was told to be safe.
fn check_rows(program: &Program, runs: &[Told]) {
    for run in runs {
        for &(id, _) in &run.precommitted {
            let reply = two_phase(program.be(), "shop", &[&format!("txn_id: {id}"), "txn_operation: commit"]);
            assert_eq!(reply["status"], "Success", "{reply}");
        }
    }
    let mut found = std::collections::BTreeMap::new();
    for row in program.client().rows("shop", "orders").unwrap() {
        *found.entry(row).or_insert(0_u64) += 1;
    }
    assert!(found.values().all(|&count| count == 1), "a row is doubled");
    for run in runs {
        for &(_, first) in run.precommitted.iter().chain(&run.committed) {
            for row in json_lines(first, ROWS).lines() {
                assert!(found.contains_key(row), "{row} is missing");
            }
        }
    }
}

#[test]
fn a_torn_last_line_of_the_journal_is_cut_off_and_a_torn_one_before_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path());
    program.client().create_table(&TableSpec::any("shop", "orders")).unwrap();
    assert_eq!(load(program.be(), "orders", "L", &["format: json"], "{}\n")["Status"], "Success");
    program.kill();
    let journal = folder.path().join("journal.jsonl");
    let whole = std::fs::read(&journal).unwrap();
    for torn in [&b"{\"transaction\":{\"id\":1"[..], &b"\0\0\0\0\n"[..]] {
        std::fs::write(&journal, [&whole[..], torn].concat()).unwrap();
        let mut program = Program::start(folder.path());
        assert_eq!(program.client().table_counts("shop", "orders").unwrap().transactions[&TransactionState::Precommitted], 1);
        program.kill();
        assert_eq!(std::fs::read(&journal).unwrap(), whole);
    }
    std::fs::write(&journal, [b"torn\n", &whole[..]].concat()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_doris-emulator")).arg("--data").arg(folder.path()).output().unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("is damaged at byte 0"), "{error}");
}

#[test]
fn rows_that_were_promised_and_are_gone_are_an_error_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path());
    program.client().create_table(&TableSpec::any("shop", "orders")).unwrap();
    let reply = load(program.be(), "orders", "L", &["format: json"], "{}\n");
    program.kill();
    let rows = folder.path().join("rows");
    std::fs::write(rows.join("77.rows"), "of nobody").unwrap();
    Program::start(folder.path()).kill();
    assert!(!rows.join("77.rows").exists(), "rows of no transaction are removed");
    std::fs::write(rows.join(format!("{}.rows", reply["TxnId"])), "").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_doris-emulator")).arg("--data").arg(folder.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("are damaged: 0 bytes"), "{error}");
}

#[test]
fn memory_stays_flat_under_a_large_body() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path());
    program.client().create_table(&TableSpec::any("shop", "orders")).unwrap();
    let piece = json_lines(1_000_000, 50_000);
    let pieces = LARGE_BYTES.div_ceil(piece.len() as u64);
    let headers = [ROOT, "two_phase_commit: true", "format: json", "label: large", "Transfer-Encoding: chunked"];
    let mut connection = Connection::open(program.be());
    connection.send_head("PUT", "/api/shop/orders/_stream_load", &headers);
    let started = Instant::now();
    for _ in 0..pieces {
        connection.send(format!("{:x}\r\n", piece.len()).as_bytes());
        connection.send(piece.as_bytes());
        connection.send(b"\r\n");
    }
    connection.send(b"0\r\n\r\n");
    let reply = connection.read_reply().json();
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!((&reply["Status"], &reply["NumberTotalRows"]), (&"Success".into(), &(pieces * 50_000).into()));
    let peak = peak_bytes(program.child.id());
    let (megabytes, peak_megabytes) = (LARGE_BYTES >> 20, peak >> 20);
    writeln!(std::io::stderr(), "{megabytes} MiB in {seconds:.1} s, peak {peak_megabytes} MiB").unwrap();
    assert!(peak < PEAK_BYTES_MAX, "peak memory {peak_megabytes} MiB");
}

fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn the_program_writes_its_addresses_to_a_ready_file_and_ends_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_doris-emulator"));
    command.args([
        "--follower-fe",
        "127.0.0.1:0",
        "--be",
        "127.0.0.1:0",
        "--be",
        "127.0.0.1:0",
        "--settings",
        r#"{"publish_delay_ms": 5}"#,
    ]);
    command.arg("--data").arg(folder.path().join("data")).arg("--ready-file").arg(&ready).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(std::fs::read_to_string(&ready).unwrap(), line);
    let addresses: Addresses = serde_json::from_str(&line).unwrap();
    assert_eq!((addresses.fe.len(), addresses.follower_fe.len(), addresses.be.len()), (1, 1, 2));
    assert_eq!(Client::new(addresses.control).settings().unwrap().publish_delay_ms, 5);
    let terminated = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap();
    assert!(terminated.success() && child.wait().unwrap().success());
}

#[test]
fn the_help_says_that_it_is_test_equipment() {
    let output = Command::new(env!("CARGO_BIN_EXE_doris-emulator")).arg("--help").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("Test equipment:"));
}
