//! The binary: arguments, a runtime, a command, an exit code.

use std::process::ExitCode;

use clap::Parser as _;
use weir::cli::{self, Cli};
use weir::error::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error[internal]: the threads of the host cannot be started: {error}");
            return Exit::Internal.into();
        }
    };
    let exit = runtime.block_on(cli::main(cli));
    // What still runs holds nothing that must be finished: whatever is durable was durable before it was reported.
    runtime.shutdown_background();
    exit.into()
}
