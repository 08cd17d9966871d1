//! Following: appended data, new files, rotation, truncation.

use super::*;

/// A folder that is followed, with a run that has read what there was, all of it decided.
async fn following(format: FileFormat, data: &str) -> (Folder, Run) {
    let mut folder = Folder::followed(format);
    folder.write("in", data);
    let mut run = folder.start().await.unwrap();
    run.read(&folder.known).await.unwrap();
    folder.decide(&run);
    (folder, run)
}

/// Waits for changes until something comes.
async fn next(run: &mut Run, known: &Positions) -> Vec<String> {
    timeout(PATIENCE, async {
        loop {
            run.changed().await;
            let records = run.read(known).await.unwrap();
            if !records.is_empty() {
                return texts(&records);
            }
        }
    })
    .await
    .unwrap()
}

/// Reads and decides one batch.
async fn half_read(folder: &mut Folder) -> Run {
    let mut run = folder.start().await.unwrap();
    let split = run.source.discover(&folder.known).await.unwrap().remove(0);
    let mut reader = run.source.open(&split, folder.known.get(&split)).await.unwrap();
    assert!(matches!(reader.read(&folder.limits).await.unwrap(), Read::Batch(_)));
    folder.known.insert(split, reader.position());
    run
}

fn only_split(folder: &Folder) -> String {
    assert_eq!(folder.known.len(), 1);
    folder.known.keys().next().unwrap().to_string()
}

#[tokio::test]
async fn appended_lines_and_new_files_are_read() {
    let (mut folder, mut run) = following(FileFormat::Lines, "1\n").await;
    folder.append("in", "2\n3");
    assert_eq!(next(&mut run, &folder.known).await, ["2"], "a line without its line feed waits");
    folder.append("in", "3\n");
    assert_eq!(next(&mut run, &folder.known).await, ["33"]);
    folder.write("in-new", "4\n");
    assert_eq!(next(&mut run, &folder.known).await, ["4"]);
    folder.decide(&run);
    assert!(run.read(&folder.known).await.unwrap().is_empty());
    assert!(folder.read().await.unwrap().is_empty(), "nothing twice after a restart");
}

#[tokio::test]
async fn a_file_system_that_tells_nothing_is_looked_at_from_time_to_time() {
    let (_folder, run) = following(FileFormat::Lines, "1\n").await;
    run.changed().await;
    run.changed().await;
}

#[tokio::test]
async fn waiting_for_changes_that_is_given_up_again_and_again_still_ends() {
    let (_folder, run) = following(FileFormat::Lines, "1\n").await;
    let waited = timeout(PATIENCE, async {
        let mut gave_up = 0;
        while timeout(Duration::from_millis(10), run.source.changed()).await.is_err() {
            gave_up += 1;
        }
        gave_up
    });
    assert!(waited.await.unwrap() > 1);
}

#[tokio::test]
async fn the_position_of_an_unfinished_line_survives_a_restart() {
    let (mut folder, mut run) = following(FileFormat::Json, "{}\n{\"a\"").await;
    assert!(run.read(&folder.known).await.unwrap().is_empty());
    folder.append("in", ":1}\n");
    assert_eq!(folder.read().await.unwrap(), ["{\"a\":1}"]);
}

#[tokio::test]
async fn a_followed_csv_source_waits_for_its_header() {
    let mut folder = Folder::followed(FileFormat::Csv);
    let mut source = FileSource::new(folder.config.clone(), folder.dir.path()).unwrap();
    let waiting = tokio::spawn(async move { source.prepare().await.unwrap().columns });
    folder.write("in", "id,na");
    folder.append("in", "me\n1,a\n");
    assert_eq!(timeout(PATIENCE, waiting).await.unwrap().unwrap(), ["id", "name"]);
    assert_eq!(folder.read().await.unwrap(), ["1,a"]);
    folder.append("in", "2,\"b\n");
    assert!(folder.read().await.unwrap().is_empty(), "the row goes on in the next line");
    folder.append("in", "\"\n");
    assert_eq!(folder.read().await.unwrap(), ["2,\"b\n\""]);
}

#[tokio::test]
async fn a_file_rotated_by_rename_is_read_to_its_end_and_then_the_new_one() {
    for reopened in [false, true] {
        let (mut folder, mut run) = following(FileFormat::Lines, "1\n").await;
        folder.append("in", "2\n");
        folder.rename("in", "old");
        folder.append("old", "3\n");
        folder.write("in", "4\n");
        if reopened {
            run = folder.start().await.unwrap();
        }
        let splits = run.source.discover(&folder.known).await.unwrap();
        assert_eq!(splits.len(), 2);
        let mut all = Vec::new();
        for split in &splits {
            let mut records = Records::new();
            run.read_split(split, &mut records).await.unwrap();
            all.extend(texts(&records));
        }
        assert_eq!(all, ["2", "3", "4"], "the old file comes first");
        folder.append("old", "5\n");
        let late = run.read(&folder.known).await.unwrap();
        assert_eq!(texts(&late), ["5"], "what is appended after the rename is read, too");
        folder.decide(&run);
        folder.remove("old");
        assert!(folder.read().await.unwrap().is_empty(), "a file read to its end may go");
    }
}

#[tokio::test]
async fn a_file_rotated_within_the_pattern_comes_before_the_new_one() {
    let (folder, mut run) = following(FileFormat::Lines, "1\n").await;
    folder.append("in", "2\n");
    folder.rename("in", "in.1");
    folder.write("in", "3\n");
    let mut all = Vec::new();
    for split in run.source.discover(&folder.known).await.unwrap() {
        let mut records = Records::new();
        run.read_split(&split, &mut records).await.unwrap();
        all.extend(texts(&records));
    }
    assert_eq!(all, ["2", "3"]);
}

#[tokio::test]
async fn a_file_renamed_within_the_pattern_stays_the_same_split() {
    let (mut folder, mut run) = following(FileFormat::Lines, "1\n").await;
    folder.rename("in", "in.1");
    folder.append("in.1", "2\n");
    let records = run.read(&folder.known).await.unwrap();
    assert_eq!(texts(&records), ["2"]);
    assert_eq!(records.keys().next().unwrap().1, 1, "the numbers go on");
    folder.decide(&run);
    only_split(&folder);
}

#[tokio::test]
async fn a_removed_file_that_was_read_to_its_end_ends_silently() {
    let (mut folder, mut run) = following(FileFormat::Lines, "1\n").await;
    folder.remove("in");
    assert!(run.read(&folder.known).await.unwrap().is_empty());
    assert!(folder.read().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_removed_file_with_an_unfinished_line_is_a_coded_stop() {
    let (mut folder, mut run) = following(FileFormat::Lines, "1\n2").await;
    let (_, mut reader) = run.readers.pop_first().unwrap();
    folder.remove("in");
    let Err(error) = reader.read(&LIMITS).await else { panic!("no error") };
    assert_error(&error, codes::LOST_FILE, &["/in ", "bytes 2 to 3", "record 1"]);
    assert_error(&run.read(&folder.known).await.unwrap_err(), codes::LOST_FILE, &["/in ", "bytes 2 to 3", "record 1"]);
    assert_error(&folder.refused().await, codes::LOST_FILE, &["/in ", "bytes 2 to 3"]);
}

#[tokio::test]
async fn a_half_read_file_is_found_under_another_name_in_its_folder() {
    let mut folder = Folder::followed(FileFormat::Lines);
    folder.limits.records = 1;
    folder.write("in", "1\n2\n3\n");
    half_read(&mut folder).await;
    folder.rename("in", "elsewhere");
    assert_eq!(folder.read().await.unwrap(), ["2", "3"]);
}

#[tokio::test]
async fn a_half_read_file_that_is_gone_is_a_coded_stop_until_it_is_given_up_by_name() {
    for mut folder in [Folder::followed(FileFormat::Lines), Folder::new(FileFormat::Lines)] {
        folder.limits.records = 1;
        folder.write("in", "1\n2\n3\n");
        half_read(&mut folder).await;
        folder.remove("in");
        let split = only_split(&folder);
        assert_error(&folder.refused().await, codes::LOST_FILE, &["/in ", "bytes 2 to 6", "record 1", &split]);
        folder.config.abandon = vec![split];
        assert!(folder.read().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn copy_and_truncate_after_everything_was_decided_begins_a_new_incarnation() {
    let (mut folder, mut run) = following(FileFormat::Lines, "1\n2\n").await;
    fs::copy(folder.path("in"), folder.path("copy")).unwrap();
    folder.write("in", "3\n");
    let records = run.read(&folder.known).await.unwrap();
    assert_eq!(texts(&records), ["3"]);
    folder.decide(&run);
    assert_eq!(folder.known.len(), 2);
    assert!(folder.read().await.unwrap().is_empty());
}

#[tokio::test]
async fn copy_and_truncate_of_what_was_not_yet_read_is_a_coded_stop_that_names_the_range() {
    for rest in ["", "9\n", "7\n8\n9\n10\n11\n"] {
        let mut folder = Folder::followed(FileFormat::Lines);
        folder.limits.records = 1;
        folder.write("in", "1\n2\n3\n");
        let mut run = half_read(&mut folder).await;
        folder.write("in", rest);
        let error = run.read(&folder.known).await.unwrap_err();
        assert_error(&error, codes::TRUNCATED, &["/in ", "bytes 2 to 6", "record 1"]);
        let error = folder.refused().await;
        assert_error(&error, codes::TRUNCATED, &["/in ", "bytes 2 to 6", "record 1"]);
        folder.config.abandon = vec![only_split(&folder)];
        assert_eq!(folder.read().await.unwrap().join("\n"), rest.trim_end(), "given up by name, the new content is read");
    }
}

#[tokio::test]
async fn copy_and_truncate_of_what_was_read_and_not_decided_is_named_after_the_pipeline_went_back() {
    let (mut folder, mut run) = following(FileFormat::Lines, "1\n").await;
    folder.append("in", "2\n3\n");
    assert_eq!(texts(&run.read(&folder.known).await.unwrap()), ["2", "3"]);
    folder.write("in", "4\n");
    // The epoch that holds 2 and 3 may still be decided: they are not lost, and reading goes on.
    assert_eq!(texts(&run.read(&folder.known).await.unwrap()), ["4"]);
    // The epoch has failed, and 2 and 3 are gone.
    assert_error(&folder.refused().await, codes::TRUNCATED, &["/in ", "bytes 2 to 6", "record 1"]);
}

#[tokio::test]
async fn a_file_that_was_read_and_removed_before_its_epoch_was_decided_is_named_after_the_pipeline_went_back() {
    for mut folder in [Folder::followed(FileFormat::Lines), Folder::new(FileFormat::Lines)] {
        folder.write("in", "1\n");
        folder.write("in-2", "2\n");
        let mut run = folder.start().await.unwrap();
        assert_eq!(run.read(&folder.known).await.unwrap().len(), 2);
        folder.remove("in-2");
        assert!(run.read(&folder.known).await.unwrap().is_empty(), "the epoch may still be decided");
        assert_error(&folder.refused().await, codes::LOST_FILE, &["/in-2 ", "bytes 0 to 2"]);
    }
}

#[tokio::test]
async fn a_file_cut_short_beyond_the_position_is_a_coded_stop() {
    let mut folder = Folder::followed(FileFormat::Lines);
    folder.limits.records = 1;
    folder.write("in", "1\n2\n3\n");
    half_read(&mut folder).await;
    fs::OpenOptions::new().write(true).open(folder.path("in")).unwrap().set_len(4).unwrap();
    assert_error(&folder.refused().await, codes::TRUNCATED, &["/in ", "bytes 4 to 6"]);
    folder.config.abandon = vec![only_split(&folder)];
    assert_eq!(folder.read().await.unwrap(), ["2"], "given up by name, what is left is read");
}

#[tokio::test]
async fn an_open_reader_notices_that_its_file_was_cut_short_or_overwritten() {
    for (rest, unread) in [("9\n", false), ("7\n8\n9\n", false), ("9\n", true), ("7\n8\n9\n", true)] {
        let folder = Folder::followed(FileFormat::Lines);
        folder.write("in", if unread { "1\n2\n3" } else { "1\n2\n" });
        let mut run = folder.start().await.unwrap();
        run.read(&folder.known).await.unwrap();
        let (_, mut reader) = run.readers.pop_first().unwrap();
        folder.write("in", rest);
        let read = timeout(PATIENCE, reader.read(&LIMITS)).await.unwrap();
        if unread {
            assert_error(&read.unwrap_err(), codes::TRUNCATED, &["/in ", "bytes 4 to 5", "record 2"]);
        } else {
            assert!(matches!(read.unwrap(), Read::End));
            assert!(matches!(reader.read(&LIMITS).await.unwrap(), Read::End));
        }
    }
}
