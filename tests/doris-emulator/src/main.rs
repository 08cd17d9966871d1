//! The program `doris-emulator`: test equipment that speaks Doris's Stream Load with two-phase commit.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use doris_emulator::{Emulator, Options};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Test equipment: speaks Apache Doris's Stream Load with two-phase commit, and can be told to fail.
///
/// Not a database: it keeps rows and transactions in a folder, answers no query, and trusts whoever reaches its control
/// port. When ready it prints one line of JSON with its addresses.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Folder for journal and rows; created when missing, continued when not
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Address of an FE listener; repeat for several [default: 127.0.0.1:0]
    #[arg(long, value_name = "ADDRESS")]
    fe: Vec<SocketAddr>,
    /// Address of a follower FE listener; repeat for several
    #[arg(long, value_name = "ADDRESS")]
    follower_fe: Vec<SocketAddr>,
    /// Address of a BE listener; repeat for several [default: 127.0.0.1:0]
    #[arg(long, value_name = "ADDRESS")]
    be: Vec<SocketAddr>,
    /// Address of the control API
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    control: SocketAddr,
    /// The user that clients must name
    #[arg(long, default_value = "root")]
    user: String,
    /// That user's password
    #[arg(long, default_value = "")]
    password: String,
    /// Keep counts and hashes only, and check no values: for benchmarks
    #[arg(long)]
    discard: bool,
    /// Settings to start with, as a JSON object; GET /settings on the control port shows all
    #[arg(long, value_name = "JSON")]
    settings: Option<String>,
    /// Also write the line with the addresses to this file, complete or not at all
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let (ready_file, options) = options(arguments)?;
    // Before anybody can know that it runs, so that whoever ends it gets exit code 0.
    let stop = Stop::catch()?;
    let emulator = Emulator::start(options)?;
    let line = serde_json::to_string(emulator.addresses())? + "\n";
    if let Some(path) = ready_file {
        write_whole(&path, &line)?;
    }
    let mut stdout = std::io::stdout();
    stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).context("print the addresses")?;
    stop.wait();
    Ok(())
}

fn options(arguments: Arguments) -> anyhow::Result<(Option<PathBuf>, Options)> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let or_any = |given: Vec<SocketAddr>| if given.is_empty() { vec![any] } else { given };
    let settings = arguments.settings.as_deref().map(serde_json::from_str).transpose().context("read --settings")?;
    let options = Options {
        data: arguments.data,
        fe: or_any(arguments.fe),
        follower_fe: arguments.follower_fe,
        be: or_any(arguments.be),
        control: arguments.control,
        user: arguments.user,
        password: arguments.password,
        discard: arguments.discard,
        settings: settings.unwrap_or_default(),
    };
    Ok((arguments.ready_file, options))
}

/// A reader finds the file complete or not at all.
fn write_whole(path: &std::path::Path, line: &str) -> anyhow::Result<()> {
    let part = path.with_extension("part");
    std::fs::write(&part, line).with_context(|| format!("write {}", part.display()))?;
    std::fs::rename(&part, path).with_context(|| format!("write {}", path.display()))
}

/// SIGINT and SIGTERM, caught from when this is made.
struct Stop {
    runtime: tokio::runtime::Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn catch() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("start signal handling")?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt()).context("handle SIGINT")?;
        let terminate = signal(SignalKind::terminate()).context("handle SIGTERM")?;
        drop(entered);
        Ok(Self { runtime, interrupt, terminate })
    }

    /// Waits for one of them. There is nothing to finish then: what was promised is on disk.
    fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        });
    }
}
