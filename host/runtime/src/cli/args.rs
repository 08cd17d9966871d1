//! What can be written on the command line. `docs/cli.md` shows the same help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use weir_protocol::PipelineId;

use crate::error::Exit;
use crate::telemetry::{LOG_VARIABLE, LogFormat, LogOptions};

fn exit_codes() -> String {
    let mut text = "Exit codes:\n".to_owned();
    for exit in Exit::ALL {
        text += &format!("  {}  {}\n", exit.number(), exit.meaning());
    }
    text + "\nEvery error has a code, such as config-unknown-key, and a page: docs/errors/<code>.md"
}

/// Reads records from a replayable source, hands them to sink plugins compiled to WebAssembly, and shows each exactly once at the target, through
/// crashes of everything
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_help = exit_codes(), max_term_width = 100, propagate_version = false)]
pub struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Write data and errors as JSON to stdout
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) logs: LogArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the pipelines of a configuration until their sources end, or until SIGINT or SIGTERM
    ///
    /// At the first signal each pipeline finishes its epoch and commits it; at a second one the process ends without waiting, which is safe too.
    Run(RunArgs),
    /// Check a configuration and the plugins it names, and report everything that is wrong at once; opens no file, port or database
    Check(CheckArgs),
    /// List the plugins of a folder, or inspect one
    Plugins(PluginsArgs),
    /// Show what a pipeline has decided and whether it is committed; works beside a running host
    Epochs(EpochsArgs),
    /// Print the JSON Schema of the configuration, for editors
    Schema,
    /// Print a script that completes this command line in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// The configuration
    #[arg(long, short, value_name = "FILE", default_value = "weir.yaml")]
    pub(super) config: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct EngineArgs {
    /// Where to keep compiled plugins; whoever can write there is trusted. Default: weir/compiled in the user's cache folder
    #[arg(long, value_name = "DIR")]
    pub(super) cache: Option<PathBuf>,
    /// Compile plugins anew, and keep none
    #[arg(long, conflicts_with = "cache")]
    pub(super) no_cache: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Run only this pipeline; may be given several times
    #[arg(long, short, value_name = "NAME")]
    pub(super) pipeline: Vec<PipelineId>,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    /// Show no progress, even on a terminal
    #[arg(long)]
    pub(super) no_progress: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct PluginsArgs {
    #[command(subcommand)]
    pub(super) command: Option<PluginsCommand>,
    /// The folder of plugins. Default: the one that the configuration names, or ./plugins
    #[arg(long, value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum PluginsCommand {
    /// Show what a plugin says about itself: its guarantee, what it needs, the schema of its config
    Inspect(InspectArgs),
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// The plugin's .wasm file
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

#[derive(Debug, Args)]
pub(super) struct EpochsArgs {
    /// The pipeline
    pub(super) pipeline: PipelineId,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Show at most this many, the newest
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(super) last: usize,
}

#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// What to log: error, warn, info, debug or trace, or directives such as `info,weir::plugin=debug`. Default: the variable WEIR_LOG, or info for
    /// `run` and warn for the others
    #[arg(long, value_name = "LEVEL", global = true)]
    log: Option<String>,
    /// How a log line looks
    #[arg(long, value_name = "FORMAT", global = true, default_value = "text", value_enum)]
    log_format: LogFormat,
}

impl LogArgs {
    pub(super) fn options(&self, runs: bool) -> LogOptions {
        let variable = || std::env::var(LOG_VARIABLE).ok().filter(|value| !value.is_empty());
        let default = if runs { "info" } else { "warn" };
        let filter = self.log.clone().or_else(variable).unwrap_or_else(|| default.to_owned());
        LogOptions { filter, format: self.log_format }
    }
}
