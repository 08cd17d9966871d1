//! The host under test as a process of its own, so that it can be killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

/// Longest wait for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A running `weir run`. Killed when dropped.
#[derive(Debug)]
pub struct Host {
    child: Child,
    log: PathBuf,
}

/// How a host ended.
#[derive(Debug)]
pub struct HostEnd {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stderr.
    pub log: String,
}

impl Host {
    /// Starts `weir run` on a config, with more arguments. Every host of a config writes to the end of the same log.
    pub fn start(config: &Path, arguments: &[&str]) -> Self {
        let log = config.with_extension("log");
        let stderr = File::options().create(true).append(true).open(&log).unwrap();
        let child = Command::new(crate::paths::binary("weir"))
            .arg("run")
            .arg("--config")
            .arg(config)
            .args(arguments)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the host has not ended")
    }

    /// SIGKILL, and waits until the process is gone. True: it was still running.
    pub async fn kill(&mut self) -> bool {
        if let Some(status) = self.child.try_wait().unwrap() {
            let log = self.read_log();
            assert!(status.success(), "the host ended by itself with {status}:\n{log}");
            return false;
        }
        self.child.kill().await.unwrap();
        true
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        signal(self.pid(), "TERM");
    }

    /// Has it ended?
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub async fn wait(mut self) -> HostEnd {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let log = self.read_log();
        let status = ended.unwrap_or_else(|_| panic!("the host did not end within {PATIENCE:?}:\n{log}")).unwrap();
        HostEnd { code: status.code(), log }
    }

    /// What it has written to stderr so far.
    pub fn read_log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The most memory it has had resident so far, in bytes. None once it has ended.
    pub fn try_peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }
}

/// Sends a signal by name.
pub fn signal(pid: u32, name: &str) {
    let status = std::process::Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// Waits until something holds, asking again and again.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !holds().await {
        assert!(since.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
