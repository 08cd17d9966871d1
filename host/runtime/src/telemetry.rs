//! Logs. They go to stderr, one line each, and share the terminal with the progress display.
//!
//! Levels: `error` a pipeline or the host ends; `warn` something failed and is tried again, or needs a look; `info` starts, ends, recoveries;
//! `debug` epochs, batches, calls. What plugins write has the target `weir::plugin`.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The environment variable for what is logged; the flag comes first.
pub const LOG_VARIABLE: &str = "WEIR_LOG";

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged, and how.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// A level, or directives such as `info,weir::plugin=debug`.
    pub filter: String,
    /// How a line looks.
    pub format: LogFormat,
}

/// Starts logging. Once a process. The display is shared, so that a log line does not tear it. The error names the bad directive.
pub fn start(options: &LogOptions, display: &MultiProgress) -> Result<(), String> {
    let filter = EnvFilter::try_new(&options.filter).map_err(|error| format!("`{}` does not say what to log: {error}", options.filter))?;
    let writer = BesideProgress { display: display.clone() };
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colours);
    let started = match options.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("logging cannot be started: {error}"))
}

/// Writes a line to stderr while the progress display stands aside.
#[derive(Clone, Debug)]
struct BesideProgress {
    display: MultiProgress,
}

impl Write for BesideProgress {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.display.suspend(|| io::stderr().lock().write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for BesideProgress {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
