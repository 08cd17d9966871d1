//! The progress display: a line for each pipeline, drawn anew when something changes.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::sync::watch;
use tokio::time::Instant;
use weir_protocol::PipelineId;

use super::output::{grouped, size};
use crate::clock;
use crate::progress::{PipelineProgress, PipelineState, Progress};

/// Over how long a rate is measured.
const RATE_WINDOW: Duration = Duration::from_secs(2);
/// How often the display is drawn at least, so that a stalled pipeline is seen to be alive.
const TICK: Duration = Duration::from_millis(200);

/// Draws until the sender is gone.
pub(super) async fn show(mut watched: watch::Receiver<Progress>, display: MultiProgress) {
    let mut lines: BTreeMap<PipelineId, Line> = BTreeMap::new();
    loop {
        let changed = tokio::select! {
            changed = watched.changed() => Some(changed),
            () = clock::sleep(TICK) => None,
        };
        let progress = watched.borrow_and_update().clone();
        for (id, pipeline) in &progress.pipelines {
            lines.entry(id.clone()).or_insert_with(|| Line::new(id, &display)).draw(pipeline, clock::now());
        }
        if let Some(Err(_)) = changed {
            break;
        }
        if changed.is_some() {
            clock::sleep(TICK / 2).await;
        }
    }
    for line in lines.values() {
        line.bar.finish_and_clear();
    }
}

/// One pipeline's line.
struct Line {
    bar: ProgressBar,
    since: Instant,
    records: u64,
    per_second: u64,
}

impl Line {
    fn new(id: &PipelineId, display: &MultiProgress) -> Self {
        let bar = display.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:.bold}  {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(id.to_string());
        Self { bar, since: clock::now(), records: 0, per_second: 0 }
    }

    fn draw(&mut self, pipeline: &PipelineProgress, now: Instant) {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= RATE_WINDOW {
            let read = pipeline.records.saturating_sub(self.records);
            let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
            self.per_second = read.saturating_mul(1000) / milliseconds;
            (self.since, self.records) = (now, pipeline.records);
        }
        self.bar.set_message(message(pipeline, self.per_second));
        self.bar.tick();
    }
}

fn message(pipeline: &PipelineProgress, per_second: u64) -> String {
    let mut parts = vec![
        pipeline.state.to_string(),
        format!("{} records ({}/s)", grouped(pipeline.records), grouped(per_second)),
        size(pipeline.bytes),
        format!("epoch {}, {} decided", pipeline.epoch, pipeline.decided),
    ];
    if pipeline.unconfirmed > 0 {
        parts.push(format!("{} to commit", pipeline.unconfirmed));
    }
    if pipeline.restarts > 0 {
        parts.push(format!("{} restarts", pipeline.restarts));
    }
    let troubled = matches!(pipeline.state, PipelineState::BackingOff | PipelineState::Stalled | PipelineState::Stopped);
    if let Some(note) = pipeline.note.as_deref().filter(|_| troubled) {
        parts.push(note.lines().next().unwrap_or_default().to_owned());
    }
    parts.join(" · ")
}
