//! Bounded reading, and going on at any position.

use proptest::prelude::*;

use super::*;

#[tokio::test]
async fn lines_are_read_in_the_order_of_files_names() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.config.path = "in*.log".to_owned();
    folder.write("in-b.log", "3\n4\n");
    folder.write("in-a.log", "1\n\n2\r\n");
    folder.write("other.log", "no\n");
    folder.write(".in-c.log", "no\n");
    let mut run = folder.start().await.unwrap();
    let splits = run.source.discover(&folder.known).await.unwrap();
    let mut all = Vec::new();
    for split in &splits {
        let mut records = Records::new();
        run.read_split(split, &mut records).await.unwrap();
        all.extend(texts(&records));
    }
    assert_eq!(all, ["1", "", "2\r", "3", "4"]);
    folder.decide(&run);
    assert!(folder.read().await.unwrap().is_empty(), "nothing twice");
}

#[tokio::test]
async fn an_empty_file_has_no_records_and_is_no_error() {
    for format in [FileFormat::Lines, FileFormat::Json] {
        let mut folder = Folder::new(format);
        folder.write("in", "");
        assert!(folder.read().await.unwrap().is_empty());
    }
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in-empty", "");
    folder.write("in-full", "id\n1\n");
    folder.write("in-header-only", "id\n");
    assert_eq!(folder.read().await.unwrap(), ["1"]);
}

#[tokio::test]
async fn a_last_line_without_line_feed_is_emitted_at_a_bounded_end_and_its_late_line_feed_is_skipped() {
    for (format, head) in [(FileFormat::Lines, ""), (FileFormat::Json, ""), (FileFormat::Csv, "id\n")] {
        let mut folder = Folder::new(format);
        folder.write("in", format!("{head}1\n2"));
        assert_eq!(folder.read().await.unwrap(), ["1", "2"]);
        assert!(folder.read().await.unwrap().is_empty());
        folder.append("in", "\n3\n");
        assert_eq!(folder.read().await.unwrap(), ["3"]);
    }
}

#[tokio::test]
async fn a_last_line_that_grows_after_it_was_taken_is_a_coded_stop() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.write("in", "1\n2");
    folder.read().await.unwrap();
    folder.append("in", "3\n");
    assert_error(&folder.refused().await, codes::CHANGED, &["/in ", "byte 3", "record 1"]);
}

#[tokio::test]
async fn a_bounded_file_is_read_to_its_size_at_discovery_and_to_the_end_of_the_record_across_it() {
    let folder = Folder::new(FileFormat::Lines);
    folder.write("in", "1\n2");
    let mut run = folder.start().await.unwrap();
    let splits = run.source.discover(&folder.known).await.unwrap();
    folder.append("in", "2\n3\n4\n");
    let mut records = Records::new();
    run.read_split(&splits[0], &mut records).await.unwrap();
    assert_eq!(texts(&records), ["1", "22"]);
}

#[tokio::test]
async fn csv_leaves_out_the_header_carriage_returns_and_empty_lines() {
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in-1", "\u{feff}id,\"na\nme\"\r\n1,\"a\r\n\"\"b\"\r\n\r\n2,c\r\n");
    folder.write("in-2", "id,\"na\nme\"\n3,d");
    let mut run = folder.start().await.unwrap();
    assert_eq!(run.source.prepare().await.unwrap().columns, ["id", "na\nme"]);
    let mut read = folder.read().await.unwrap();
    read.sort();
    assert_eq!(read, ["1,\"a\r\n\"\"b\"", "2,c", "3,d"]);
}

#[tokio::test]
async fn csv_always_says_where_records_end_and_lines_only_when_asked() {
    for (format, ends) in
        [(FileFormat::Csv, false), (FileFormat::Csv, true), (FileFormat::Lines, false), (FileFormat::Lines, true), (FileFormat::Json, true)]
    {
        let mut folder = Folder::new(format);
        folder.limits.ends = ends;
        folder.write("in", "\"1\"\n\"2\"\n\"3\"\n");
        let mut run = folder.start().await.unwrap();
        let splits = run.source.discover(&folder.known).await.unwrap();
        let mut reader = run.source.open(&splits[0], None).await.unwrap();
        let Read::Batch(batch) = reader.read(&folder.limits).await.unwrap() else { panic!("no batch") };
        assert_eq!(batch.ends.is_some(), ends || format == FileFormat::Csv);
    }
}

#[tokio::test]
async fn blank_json_lines_have_no_number() {
    let mut folder = Folder::new(FileFormat::Json);
    folder.write("in", "\u{feff}{\"a\":1}\n\n  \r\n{\"a\":2}\r\n\n{\"a\":3}\n \n");
    let mut run = folder.start().await.unwrap();
    let records = run.read(&folder.known).await.unwrap();
    assert_eq!(records.keys().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(texts(&records), ["{\"a\":1}", "{\"a\":2}\r", "{\"a\":3}"]);
    folder.decide(&run);
    assert!(folder.read().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_file_named_twice_is_read_once() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.write("in-1", "1\n");
    fs::hard_link(folder.path("in-1"), folder.path("in-2")).unwrap();
    std::os::unix::fs::symlink(folder.path("in-1"), folder.path("in-0")).unwrap();
    assert_eq!(folder.read().await.unwrap(), ["1"]);
    assert!(folder.read().await.unwrap().is_empty());
}

#[tokio::test]
async fn records_across_blocks_are_whole() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.config.max_record_bytes = crate::config::values::Size(4 * 1024 * 1024);
    folder.limits.bytes = 4 * 1024 * 1024;
    let long = |length: usize, letter: char| letter.to_string().repeat(length);
    let lines = [long(700_000, 'a'), long(700_000, 'b'), "c".to_owned(), long(3_900_000, 'd'), long(1_048_575, 'e'), "f".to_owned()];
    folder.write("in", lines.join("\n"));
    assert!(folder.read().await.unwrap() == lines);
}

#[tokio::test]
async fn a_read_that_was_dropped_loses_nothing() {
    let folder = Folder::new(FileFormat::Lines);
    let lines: Vec<String> = (0..300_000).map(|number| number.to_string()).collect();
    folder.write("in", lines.join("\n"));
    let mut run = folder.start().await.unwrap();
    let splits = run.source.discover(&folder.known).await.unwrap();
    let mut reader = run.source.open(&splits[0], None).await.unwrap();
    let mut records = Records::new();
    loop {
        // Polled once and dropped, over and over, until it is ready at once.
        let read = loop {
            tokio::select! {
                biased;
                done = reader.read(&folder.limits) => break done,
                () = tokio::task::yield_now() => {}
            }
        };
        match read.unwrap() {
            Read::Batch(batch) => collect(&batch, &mut records),
            Read::End => break,
            Read::Idle => panic!("a bounded file is never idle"),
        }
    }
    assert!(texts(&records) == lines);
}

/// Reads a file anew from every position that a first reading gave, and compares what follows.
async fn replay_from_everywhere(folder: &Folder) {
    let mut run = folder.start().await.unwrap();
    let splits = run.source.discover(&folder.known).await.unwrap();
    let Some(split) = splits.first() else { return };
    let mut reader = run.source.open(split, None).await.unwrap();
    let mut positions = vec![(reader.position(), reader.next_record())];
    let mut all = Records::new();
    while let Read::Batch(batch) = reader.read(&folder.limits).await.unwrap() {
        collect(&batch, &mut all);
        positions.push((reader.position(), reader.next_record()));
    }
    for (position, number) in positions {
        let mut reader = run.source.open(split, Some(&position)).await.unwrap();
        assert_eq!((reader.position(), reader.next_record()), (position, number));
        let mut rest = Records::new();
        while let Read::Batch(batch) = reader.read(&folder.limits).await.unwrap() {
            collect(&batch, &mut rest);
        }
        let expected: Records = all.clone().into_iter().filter(|((_, record), _)| *record >= number).collect();
        assert_eq!(rest, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_position_leads_to_the_same_rest(
        words in prop::collection::vec("[a-z]{0,12}\r?", 1..40),
        format in prop::sample::select(vec![FileFormat::Lines, FileFormat::Json, FileFormat::Csv]),
        suffix in prop::sample::select(vec!["", ".gz", ".zst"]),
        records in 1..7u32,
        ends in any::<bool>(),
        terminated in any::<bool>(),
    ) {
        let mut folder = Folder::new(format);
        folder.limits = BatchLimits { bytes: 64, records, ends };
        let mut data = if format == FileFormat::Csv { "header\n".to_owned() } else { String::new() };
        data.push_str(&words.join("\n"));
        if terminated {
            data.push('\n');
        }
        folder.write(&format!("in{suffix}"), compressed::compress(suffix, data.as_bytes()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(replay_from_everywhere(&folder));
    }
}
