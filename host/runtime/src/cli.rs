//! The command line: commands, help, output. The only place that prints, besides logs. Data goes to stdout, people's text to stderr.

mod args;
mod check;
mod display;
mod epochs;
mod load;
mod markdown;
mod output;
mod plugins;
mod run;

use clap::CommandFactory as _;
use indicatif::MultiProgress;

pub use args::Cli;
pub use markdown::markdown;

use crate::config::{Report, file_schema};
use crate::error::{Exit, code};
use crate::telemetry;

use args::Command;
use output::Output;

/// Does what the command line says. Called once, from `main`.
pub async fn main(cli: Cli) -> Exit {
    let output = Output { json: cli.json };
    let display = MultiProgress::new();
    let logs = cli.logs.options(matches!(cli.command, Command::Run(_)));
    let result = match telemetry::start(&logs, &display) {
        Ok(()) => command(cli.command, output, display).await,
        Err(message) => Err(Failure::Coded { code: code::USAGE_BAD_LOG, message, exit: Exit::Usage }),
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => output.failure(&failure),
    }
}

async fn command(command: Command, output: Output, display: MultiProgress) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => run::run(args, output, display).await,
        Command::Check(args) => check::check(args, output).await,
        Command::Plugins(args) => plugins::plugins(args, output).await,
        Command::Epochs(args) => epochs::epochs(args, output).await,
        Command::Schema => {
            output.data(&format!("{:#}", file_schema()));
            Ok(Exit::Done)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "weir", &mut script);
            output.data(String::from_utf8_lossy(&script).trim_end());
            Ok(Exit::Done)
        }
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// The configuration was refused.
    Config(Box<Report>),
    /// Anything else with a code.
    Coded {
        /// It has a page under docs/errors.
        code: &'static str,
        /// What happened, and what to do.
        message: String,
        /// How the process ends.
        exit: Exit,
    },
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::Config(Box::new(report))
    }
}
