//! Random histories of files that are followed: whatever is appended, rotated, cut short, restarted and decided, each line comes once.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// What happens to the file `in` and to the pipeline that follows it.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many whole lines are appended.
    Append(usize),
    /// A part of a line is appended.
    AppendPart,
    /// The file is renamed, within the pattern or out of it, and a new one begins.
    Rotate { within: bool },
    /// Everything is read and decided, and then the file is emptied in place.
    Truncate,
    /// Everything is read and decided, and then the rotated files are removed.
    RemoveOld,
    /// What is there is read.
    Read,
    /// At most so many batches are read.
    ReadSome(usize),
    /// What was read is decided.
    Decide,
    /// What was read and not decided is forgotten, as by a crash or a failed epoch.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..9usize).prop_map(Step::Append),
        2 => Just(Step::AppendPart),
        2 => any::<bool>().prop_map(|within| Step::Rotate { within }),
        1 => Just(Step::Truncate),
        1 => Just(Step::RemoveOld),
        3 => Just(Step::Read),
        3 => (1..4usize).prop_map(Step::ReadSome),
        3 => Just(Step::Decide),
        2 => Just(Step::Restart),
    ]
}

/// A folder, a pipeline that follows it, and what should come of it.
struct History {
    folder: Folder,
    run: Run,
    /// Read since the last decision.
    undecided: Records,
    decided: Records,
    written: Vec<String>,
    /// The part of a line at the end of the file.
    part: String,
    rotated: Vec<String>,
    rotations: usize,
}

impl History {
    async fn new(records: u32) -> Self {
        let mut folder = Folder::followed(FileFormat::Lines);
        folder.limits.records = records;
        folder.write("in", "");
        let run = folder.start().await.unwrap();
        let (undecided, decided) = (Records::new(), Records::new());
        Self { folder, run, undecided, decided, written: Vec::new(), part: String::new(), rotated: Vec::new(), rotations: 0 }
    }

    fn append(&mut self, lines: usize) {
        for _ in 0..lines {
            let rest = format!("line {}", self.written.len());
            self.folder.append("in", format!("{rest}\n"));
            self.written.push(std::mem::take(&mut self.part) + &rest);
        }
    }

    async fn read(&mut self, batches: usize) {
        let mut left = batches;
        for split in self.run.source.discover(&self.folder.known).await.unwrap() {
            let mut reader = match self.run.readers.remove(&split) {
                Some(reader) => reader,
                None => self.run.source.open(&split, self.run.positions.get(&split)).await.unwrap(),
            };
            while left > 0 {
                let read = timeout(PATIENCE, reader.read(&self.folder.limits)).await.unwrap().unwrap();
                self.run.positions.insert(split.clone(), reader.position());
                match read {
                    Read::Batch(batch) => collect(&batch, &mut self.undecided),
                    Read::Idle | Read::End => break,
                }
                left -= 1;
            }
            // Sometimes a reader is kept, and sometimes not.
            if left.is_multiple_of(2) {
                self.run.readers.insert(split, reader);
            }
        }
    }

    fn decide(&mut self) {
        self.folder.decide(&self.run);
        for (name, record) in std::mem::take(&mut self.undecided) {
            assert!(self.decided.insert(name, record).is_none(), "one name twice");
        }
    }

    async fn settle(&mut self) {
        self.append(1);
        self.read(usize::MAX).await;
        self.decide();
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Append(lines) => self.append(lines),
            Step::AppendPart => {
                self.folder.append("in", "part ");
                self.part.push_str("part ");
            }
            Step::Rotate { within } => {
                self.append(1);
                if !within {
                    // A file that leaves the pattern before anybody has looked is never known.
                    self.run.source.discover(&self.folder.known).await.unwrap();
                }
                self.rotations += 1;
                let name = format!("{}{}", if within { "in." } else { "old." }, self.rotations);
                self.folder.rename("in", &name);
                self.folder.write("in", "");
                self.rotated.push(name);
            }
            Step::Truncate => {
                self.settle().await;
                fs::OpenOptions::new().write(true).open(self.folder.path("in")).unwrap().set_len(0).unwrap();
            }
            Step::RemoveOld => {
                self.settle().await;
                for name in std::mem::take(&mut self.rotated) {
                    self.folder.remove(&name);
                }
            }
            Step::Read => self.read(usize::MAX).await,
            Step::ReadSome(batches) => self.read(batches).await,
            Step::Decide => self.decide(),
            Step::Restart => {
                self.undecided.clear();
                self.run = self.folder.start().await.unwrap();
            }
        }
    }

    async fn check(mut self) {
        self.settle().await;
        let read: Vec<String> = texts(&self.decided);
        let distinct: BTreeSet<&String> = read.iter().collect();
        assert_eq!(distinct.len(), read.len(), "a line twice: {read:?}");
        assert_eq!(distinct, self.written.iter().collect(), "the lines that were written");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn each_line_comes_once(steps in prop::collection::vec(step(), 1..40), records in 1..6u32) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut history = History::new(records).await;
            for step in steps {
                history.take(step).await;
            }
            history.check().await;
        });
    }
}
