//! Which file is which split.

use super::*;

fn ids(folder: &Folder) -> Vec<String> {
    folder.known.keys().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_growing_file_has_the_same_id_before_it_is_decided() {
    let folder = Folder::followed(FileFormat::Lines);
    folder.write("in", "first line\n");
    let before = folder.start().await.unwrap().source.discover(&folder.known).await.unwrap();
    folder.append("in", "more\n".repeat(1000));
    let after = folder.start().await.unwrap().source.discover(&folder.known).await.unwrap();
    assert_eq!(before, after);
    assert!(before[0].as_str().starts_with("file:"));
}

#[tokio::test]
async fn a_followed_file_is_no_split_before_it_has_a_line() {
    let folder = Folder::followed(FileFormat::Lines);
    folder.write("in", "no end yet");
    let mut run = folder.start().await.unwrap();
    assert!(run.source.discover(&folder.known).await.unwrap().is_empty());
    folder.append("in", " but now\n");
    assert_eq!(texts(&run.read(&folder.known).await.unwrap()), ["no end yet but now"]);
}

#[tokio::test]
async fn a_file_that_grew_goes_on_and_one_that_was_overwritten_begins_anew() {
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in", "a\n1\n2\n");
    assert_eq!(folder.read().await.unwrap(), ["1", "2"]);
    let first = ids(&folder);
    folder.append("in", "3\n");
    assert_eq!(folder.read().await.unwrap(), ["3"]);
    assert_eq!(ids(&folder), first);
    // In place: the same inode, the same first line, and shorter.
    folder.write("in", "a\n4\n");
    assert_eq!(folder.read().await.unwrap(), ["4"]);
    // The same again, and longer.
    folder.write("in", "a\n5\n6\n7\n8\n9\n");
    assert_eq!(folder.read().await.unwrap(), ["5", "6", "7", "8", "9"]);
    assert_eq!(ids(&folder), [first[0].clone(), format!("{}:1", first[0]), format!("{}:2", first[0])]);
    assert!(folder.read().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_incarnation_has_the_same_id_after_a_restart_before_it_is_decided() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.write("in", "same\n1\n2\n");
    folder.read().await.unwrap();
    folder.write("in", "same\n3\n");
    let one = folder.start().await.unwrap().source.discover(&folder.known).await.unwrap();
    let two = folder.start().await.unwrap().source.discover(&folder.known).await.unwrap();
    assert_eq!(one, two);
    assert!(!folder.known.contains_key(&one[0]));
}

#[tokio::test]
async fn a_new_file_with_the_inode_of_a_removed_one_is_another_split() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.config.path = "in-*".to_owned();
    let mut all = Vec::new();
    for number in 0..20 {
        let name = format!("in-{number}");
        folder.write(&name, format!("same first line\n{number}\n"));
        all.extend(folder.read().await.unwrap());
        folder.remove(&name);
    }
    assert_eq!(all.len(), 40, "{all:?}");
}

#[tokio::test]
async fn positions_are_the_same_bytes_for_the_same_place() {
    let folder = Folder::new(FileFormat::Lines);
    folder.write("in", "1\n2\n");
    let mut one = folder.start().await.unwrap();
    one.read(&folder.known).await.unwrap();
    let mut two = folder.start().await.unwrap();
    two.read(&folder.known).await.unwrap();
    assert_eq!(one.positions, two.positions);
    let position = place(one.positions.values().next().unwrap());
    assert_eq!((&position["v"], &position["offset"], &position["record"], &position["seen"]), (&1.into(), &4.into(), &2.into(), &4.into()));
}

#[tokio::test]
async fn a_decided_stretch_can_be_read_again_and_is_refused_once_it_is_gone() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.limits.records = 1;
    folder.write("in", "1\n2\n3\n");
    let mut run = folder.start().await.unwrap();
    let split = run.source.discover(&folder.known).await.unwrap().remove(0);
    let mut reader = run.source.open(&split, None).await.unwrap();
    reader.read(&folder.limits).await.unwrap();
    let from = reader.position();
    folder.read().await.unwrap();
    let mut later = folder.start().await.unwrap();
    assert!(later.source.discover(&folder.known).await.unwrap().is_empty());
    let mut replay = later.source.open(&split, Some(&from)).await.unwrap();
    let Read::Batch(batch) = replay.read(&folder.limits).await.unwrap() else { panic!("no batch") };
    assert_eq!((&batch.bytes[..], batch.first), (&b"2\n"[..], 1));
    folder.write("in", "1\n2\n4\n");
    let Err(error) = later.source.open(&split, Some(&from)).await else { panic!("opened") };
    assert_error(&error, codes::CHANGED, &["/in "]);
    folder.remove("in");
    let Err(error) = later.source.open(&split, Some(&from)).await else { panic!("opened") };
    assert_error(&error, codes::LOST_FILE, &["/in "]);
    let end = folder.known[&split].clone();
    let mut ended = later.source.open(&split, Some(&end)).await.unwrap();
    assert!(matches!(ended.read(&folder.limits).await.unwrap(), Read::End), "what was read to its end needs no file");
}

#[tokio::test]
async fn places_are_described_by_file_line_and_byte() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.write("in", "1\n22\n");
    folder.read().await.unwrap();
    let run = folder.start().await.unwrap();
    let (split, position) = folder.known.first_key_value().unwrap();
    assert_eq!(run.source.describe(split, Some(position)), format!("{}, line 3, byte 5", folder.path("in").display()));
    assert_eq!(run.source.describe(split, None), split.to_string());
}
