//! Tells when files may have changed: at once where the file system says so, and now and then in any case.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock;

/// Shortest time between two answers, so that a file that is appended to all the time does not keep the host busy with looking.
const MIN_GAP: Duration = Duration::from_millis(200);

/// Watches the folders of a pattern.
pub(super) struct FileWatch {
    changes: watch::Receiver<u64>,
    poll: Duration,
    turn: Mutex<Turn>,
    /// Watches as long as it lives. `None`: the file system does not tell, and only time does.
    _watcher: Option<RecommendedWatcher>,
}

/// What the last answer was about.
#[derive(Clone, Copy, Debug)]
struct Turn {
    answered: u64,
    last: Instant,
}

impl FileWatch {
    pub(super) fn new(pattern: &str, poll: Duration) -> Self {
        let (changed, changes) = watch::channel(0);
        let watcher = start(pattern, changed);
        if let Err(error) = &watcher {
            tracing::debug!(pattern, %error, ?poll, "cannot watch for changes; looking from time to time instead");
        }
        Self { changes, poll, turn: Mutex::new(Turn { answered: 0, last: clock::now() }), _watcher: watcher.ok() }
    }

    /// Returns when something has changed since it returned last, or when it is time to look anyway. Dropped while it waits, it loses nothing.
    pub(super) async fn changed(&self) {
        let Turn { answered, last } = *self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = self.changes.clone();
        let something = async {
            // The sender lives in the watcher; without one, only time tells.
            if changes.wait_for(|count| *count != answered).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep_until(last + MIN_GAP).await;
        };
        tokio::select! {
            () = something => {}
            () = tokio::time::sleep_until(last + self.poll) => {}
        }
        let answered = *self.changes.borrow();
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Turn { answered, last: clock::now() };
    }
}

fn start(pattern: &str, changed: watch::Sender<u64>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.map_or(true, |event| matters(event.kind)) {
            changed.send_modify(|count| *count += 1);
        }
    })?;
    let (folder, mode) = watched(pattern);
    watcher.watch(&folder, mode)?;
    Ok(watcher)
}

/// Reading a file is no change of it.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

/// The folder below which everything lies that a pattern can name, and whether folders in it matter.
fn watched(pattern: &str) -> (PathBuf, RecursiveMode) {
    let path = Path::new(pattern);
    let parent = path.parent().unwrap_or(Path::new("/"));
    let mut folder = PathBuf::new();
    for part in parent {
        let text = part.to_string_lossy();
        if text.contains(['*', '?']) || (text.contains('[') && !only_escapes(&text)) {
            return (folder, RecursiveMode::Recursive);
        }
        folder.push(unescape(&text));
    }
    (folder, RecursiveMode::NonRecursive)
}

/// `[x]` stands for x alone: that is how a character is escaped.
fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for special in ['?', '*', '[', ']'] {
        plain = plain.replace(&format!("[{special}]"), &special.to_string());
    }
    plain
}

fn only_escapes(text: &str) -> bool {
    let rest = ['?', '*', '[', ']'].iter().fold(text.to_owned(), |text, special| text.replace(&format!("[{special}]"), ""));
    !rest.contains('[')
}
