//! `weir run`.

use std::io::{self, IsTerminal};

use indicatif::MultiProgress;
use serde_json::json;
use tokio::sync::watch;

use super::Failure;
use super::args::RunArgs;
use super::display;
use super::epochs::unknown_pipeline;
use super::load::load;
use super::output::{Output, grouped};
use crate::error::Exit;
use crate::progress::Progress;
use crate::supervisor::{self, Outcome, RunOptions};

/// Runs the pipelines, and tells how far they are.
pub(super) async fn run(args: RunArgs, output: Output, display: MultiProgress) -> Result<Exit, Failure> {
    let (config, plugins) = load(&args.config.config, &args.engine).await?;
    for pipeline in &args.pipeline {
        if !config.pipelines.contains_key(pipeline) {
            let known = config.pipelines.keys().map(|id| id.as_str());
            return Err(unknown_pipeline(pipeline, &config.file.display().to_string(), known));
        }
    }
    let (progress, watched) = watch::channel(Progress::default());
    let shown = !args.no_progress && io::stderr().is_terminal();
    let display = shown.then(|| tokio::spawn(display::show(watched.clone(), display)));
    let result = supervisor::run(config, plugins, RunOptions { pipelines: args.pipeline, progress }).await;
    if let Some(display) = display {
        // The sender is gone, so it draws the last state and ends.
        let _ = display.await;
    }
    let last = watched.borrow().clone();
    let outcome = result.map_err(|error| Failure::Coded { code: error.code, message: error.message, exit: error.exit })?;
    tell(&outcome, &last, output);
    Ok(exit(&outcome))
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Done => Exit::Done,
        Outcome::Outstanding { .. } => Exit::CommitsOutstanding,
        Outcome::Stopped { .. } => Exit::PipelineStopped,
    }
}

/// The last word: what was read, and what stopped. The errors themselves were logged when they happened.
fn tell(outcome: &Outcome, last: &Progress, output: Output) {
    if output.json {
        let (name, stopped) = match outcome {
            Outcome::Done => ("done", json!({})),
            Outcome::Outstanding { pipelines } => ("outstanding", json!({ "outstanding": pipelines })),
            Outcome::Stopped { pipelines } => {
                let stopped: Vec<_> =
                    pipelines.iter().map(|(id, stop)| json!({ "pipeline": id, "code": stop.code, "message": stop.message })).collect();
                ("stopped", json!({ "stopped": stopped }))
            }
        };
        let mut summary = json!({ "outcome": name, "pipelines": last.pipelines });
        if let (Some(summary), Some(more)) = (summary.as_object_mut(), stopped.as_object()) {
            summary.extend(more.clone());
        }
        output.data(&summary.to_string());
        return;
    }
    for (id, pipeline) in &last.pipelines {
        output.tell(&format!("{id}: {}, {} records read, epoch {} decided", pipeline.state, grouped(pipeline.records), pipeline.decided));
    }
    match outcome {
        Outcome::Done => {}
        Outcome::Outstanding { pipelines } => {
            for id in pipelines {
                output.tell(&format!("{id}: not everything is committed yet; the next run goes on with it"));
            }
        }
        Outcome::Stopped { pipelines } => {
            for (id, stop) in pipelines {
                output.tell(&format!("error[{}]: pipeline {id} stopped: {}", stop.code, stop.message));
            }
        }
    }
}
