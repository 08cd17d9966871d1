//! A folder in memory that tells what is seen now from what survives a loss of power, and that ends or fails at a chosen step.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

use crate::folder::{Cause, Fault, Folder, OutputFile};

/// A write takes no more than this at once, so that every file needs several.
const WRITE_BYTES: usize = 16;

/// What happens to a process at one of its steps, counted from 0.
#[derive(Debug, Clone, Copy)]
pub(super) enum Plan {
    /// Nothing.
    Live,
    /// It ends before this step.
    Crash(u32),
    /// This step fails; whether it was done all the same is `done`.
    Fail { step: u32, cause: Cause, done: bool },
}

/// One process that uses a disk.
#[derive(Clone)]
pub(super) struct Memory {
    disk: Arc<Mutex<Disk>>,
    process: Arc<Mutex<(Plan, u32)>>,
    turns: Option<(Arc<Turns>, usize)>,
}

#[derive(Clone, Default)]
struct Disk {
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since the folder was synced. Any of them may be lost, also an earlier one without a later one.
    pending: Vec<Change>,
    files: Vec<Content>,
    /// Bytes that still fit; nothing: no limit.
    space: Option<usize>,
}

#[derive(Clone)]
enum Change {
    Add(String, usize),
    Remove(String),
    Rename(String, String, usize),
}

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    synced: usize,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { disk: Arc::default(), process: Arc::new(Mutex::new((Plan::Live, 0))), turns: None }
    }

    /// Another process on the same disk.
    pub(super) fn process(&self, plan: Plan) -> Self {
        Self { disk: self.disk.clone(), process: Arc::new(Mutex::new((plan, 0))), turns: None }
    }

    /// Another process on the same disk that takes its steps when it is its turn.
    pub(super) fn in_turns(&self, turns: &Arc<Turns>, actor: usize) -> Self {
        Self { turns: Some((turns.clone(), actor)), ..self.process(Plan::Live) }
    }

    /// A disk of its own with the same content.
    pub(super) fn copy(&self) -> Self {
        let disk = self.disk.lock().unwrap().clone();
        Self { disk: Arc::new(Mutex::new(disk)), ..Self::new() }
    }

    /// How many steps this process was asked for.
    pub(super) fn steps(&self) -> u32 {
        self.process.lock().unwrap().1
    }

    pub(super) fn limit_space(&self, bytes: Option<usize>) {
        self.disk.lock().unwrap().space = bytes;
    }

    /// The power goes: of what was not synced, `keep` decides about each change of a name, and about how many bytes of a file.
    pub(super) fn lose_power(&self, mut keep: impl FnMut(usize) -> usize) {
        let mut disk = self.disk.lock().unwrap();
        let mut names = disk.durable_names.clone();
        for change in std::mem::take(&mut disk.pending) {
            if keep(1) == 1 {
                change.apply(&mut names);
            }
        }
        for file in &mut disk.files {
            let unsynced = file.bytes.len() - file.synced;
            file.synced += keep(unsynced);
            file.bytes.truncate(file.synced);
        }
        disk.names = names.clone();
        disk.durable_names = names;
    }

    /// A careful reader: it makes sure that the file is there to stay, reads it, removes it, and makes sure that it is gone.
    pub(super) fn take_visible(&self) -> Vec<String> {
        let mut disk = self.disk.lock().unwrap();
        disk.sync();
        let names: Vec<String> = disk.names.keys().filter(|name| !name.starts_with('.')).cloned().collect();
        let mut taken = Vec::new();
        for name in names {
            let file = disk.names.remove(&name).unwrap();
            taken.push(String::from_utf8(disk.files[file].bytes.clone()).unwrap());
        }
        disk.sync();
        taken
    }

    /// One step: counted, in its turn, and subject to the plan.
    fn step<T>(&self, action: impl FnOnce(&mut Disk) -> Result<T, Fault>) -> Result<T, Fault> {
        let _turn = self.turns.as_ref().map(|(turns, actor)| turns.take(*actor));
        let (plan, step) = {
            let mut process = self.process.lock().unwrap();
            process.1 += 1;
            (process.0, process.1 - 1)
        };
        let mut disk = self.disk.lock().unwrap();
        match plan {
            Plan::Crash(at) if step >= at => Err(Fault::new(Cause::Failed, "crashed")),
            Plan::Fail { step: at, cause, done } if step == at => {
                if done {
                    action(&mut disk)?;
                }
                Err(Fault::new(cause, "injected"))
            }
            _ => action(&mut disk),
        }
    }
}

impl Disk {
    fn sync(&mut self) {
        self.durable_names = self.names.clone();
        self.pending.clear();
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn file(&self, name: &str) -> Result<usize, Fault> {
        self.names.get(name).copied().ok_or_else(|| Fault::new(Cause::Missing, "no-entry"))
    }

    fn check_free(&self, name: &str) -> Result<(), Fault> {
        if self.names.contains_key(name) { Err(Fault::new(Cause::Exists, "exist")) } else { Ok(()) }
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Add(name, file) => {
                names.insert(name.clone(), *file);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
            Self::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
        }
    }
}

impl Folder for Memory {
    type File = MemoryFile;

    fn create(&self, name: &str) -> Result<MemoryFile, Fault> {
        let index = self.step(|disk| {
            disk.check_free(name)?;
            disk.files.push(Content::default());
            let index = disk.files.len() - 1;
            disk.change(Change::Add(name.to_owned(), index));
            Ok(index)
        })?;
        Ok(MemoryFile { folder: self.clone(), index })
    }

    fn size(&self, name: &str) -> Result<Option<u64>, Fault> {
        self.step(|disk| Ok(disk.names.get(name).map(|&file| disk.files[file].bytes.len() as u64)))
    }

    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.step(|disk| {
            let bytes = disk.names.get(name).map(|&file| disk.files[file].bytes.clone());
            Ok(bytes.map(|bytes| bytes.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).collect()))
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.step(|disk| {
            let file = disk.file(from)?;
            disk.change(Change::Rename(from.to_owned(), to.to_owned(), file));
            Ok(())
        })
    }

    fn link(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.step(|disk| {
            let file = disk.file(from)?;
            disk.check_free(to)?;
            disk.change(Change::Add(to.to_owned(), file));
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.step(|disk| {
            disk.file(name)?;
            disk.change(Change::Remove(name.to_owned()));
            Ok(())
        })
    }

    fn names(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>, Fault> {
        self.step(|disk| Ok(disk.names.keys().filter(|name| wanted(name)).cloned().collect()))
    }

    fn sync(&self) -> Result<(), Fault> {
        self.step(|disk| {
            disk.sync();
            Ok(())
        })
    }

    fn check_changeable(&self, _absent: &str, _present: Option<&str>) -> Result<(), Fault> {
        self.step(|_| Ok(()))
    }
}

pub(super) struct MemoryFile {
    folder: Memory,
    index: usize,
}

impl OutputFile for MemoryFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<usize, Fault> {
        self.folder.step(|disk| {
            let fits = disk.space.unwrap_or(usize::MAX).min(WRITE_BYTES).min(bytes.len());
            if fits == 0 {
                return Err(Fault::new(Cause::Full, "insufficient-space"));
            }
            let file = &mut disk.files[self.index];
            assert_eq!(offset, file.bytes.len() as u64, "the sink writes in order and leaves no hole");
            file.bytes.extend_from_slice(&bytes[..fits]);
            disk.space = disk.space.map(|space| space - fits);
            Ok(fits)
        })
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.folder.step(|disk| {
            let file = &mut disk.files[self.index];
            file.synced = file.bytes.len();
            Ok(())
        })
    }
}

/// Whose turn it is. An actor that has ended gives its turns to the others; when no turn is planned any more, everybody goes on.
pub(super) struct Turns {
    state: Mutex<TurnState>,
    changed: Condvar,
}

struct TurnState {
    planned: Vec<usize>,
    ended: Vec<usize>,
}

pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    /// `planned`: the actors in the order of their steps.
    pub(super) fn new(mut planned: Vec<usize>) -> Arc<Self> {
        planned.reverse();
        Arc::new(Self { state: Mutex::new(TurnState { planned, ended: Vec::new() }), changed: Condvar::new() })
    }

    /// Waits for the actor's turn. It lasts until the value is dropped.
    pub(super) fn take(&self, actor: usize) -> Turn<'_> {
        let mut state = self.state.lock().unwrap();
        loop {
            while state.planned.last().is_some_and(|next| state.ended.contains(next)) {
                state.planned.pop();
            }
            if state.planned.last().is_none_or(|&next| next == actor) {
                return Turn(self);
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    pub(super) fn end(&self, actor: usize) {
        self.state.lock().unwrap().ended.push(actor);
        self.changed.notify_all();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().planned.pop();
        self.0.changed.notify_all();
    }
}
