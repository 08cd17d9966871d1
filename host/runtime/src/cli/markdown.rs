//! `docs/cli.md`: the help of every command. A test keeps the file equal to what this makes.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::Cli;
use crate::error::Exit;

const BEGINNING: &str = "\
# Command line

Data goes to stdout, text for people and logs go to stderr. With `--json`, data and errors are JSON on stdout: one object. `weir run` on a terminal shows its
progress; elsewhere it only logs.

## Exit codes

| code | meaning |
| --- | --- |
";

const SIGNALS: &str = "
A command that is not understood ends with 2 too. A process that a signal ended has no exit code; shells show 128 and the signal's number, such as 137 for SIGKILL.
`weir run` handles SIGINT and SIGTERM: at the first, each pipeline finishes its epoch and commits it, and the exit code is 0, or 6 if a target did not take
the commits within 30 seconds; at the second, the process ends at once. Both are safe: the next start settles what is left.
";

/// The whole page.
pub fn markdown() -> String {
    let mut out = BEGINNING.to_owned();
    for exit in Exit::ALL {
        let _ = writeln!(out, "| {} | {} |", exit.number(), exit.meaning());
    }
    out.push_str(SIGNALS);
    let mut command = Cli::command().term_width(100);
    command.build();
    section(&mut out, &command, "weir");
    out
}

fn section(out: &mut String, command: &clap::Command, name: &str) {
    let help = command.clone().render_long_help().to_string();
    let _ = write!(out, "\n## `{name}`\n\n```text\n{}\n```\n", help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end());
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        section(out, inner, &format!("{name} {}", inner.get_name()));
    }
}
