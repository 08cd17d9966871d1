//! Every kind of bad input has a stated outcome: docs/sources.md lists them.

use super::*;
use crate::config::values::Size;

#[tokio::test]
async fn a_line_over_the_limit_names_file_line_and_byte() {
    for (format, head) in [(FileFormat::Lines, "1\n"), (FileFormat::Json, "1\n"), (FileFormat::Csv, "a\n")] {
        let mut folder = Folder::new(format);
        folder.config.max_record_bytes = Size(10);
        folder.write("in", format!("{head}123456789\n1234567890\n3\n"));
        assert_error(&folder.refused().await, codes::RECORD_TOO_LONG, &["/in, line 3, byte 12:", "10 bytes", "`max_record_bytes`"]);
    }
}

#[tokio::test]
async fn a_line_over_the_sinks_batch_says_that_the_sink_is_the_narrower_limit() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.limits.bytes = 100;
    folder.write("in", format!("1\n{}\n", "x".repeat(100)));
    assert_error(&folder.refused().await, codes::RECORD_TOO_LONG, &["/in, line 2, byte 2:", "100 bytes", "largest batch"]);
}

#[tokio::test]
async fn a_record_over_the_default_limit_of_a_mebibyte_is_refused() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.limits.bytes = 16 * 1024 * 1024;
    folder.write("in", vec![b'x'; 8 * 1024 * 1024]);
    assert_error(&folder.refused().await, codes::RECORD_TOO_LONG, &["/in, line 1, byte 0:", "1048576 bytes"]);
}

#[tokio::test]
async fn invalid_utf8_where_json_is_promised_names_file_line_and_byte() {
    let mut folder = Folder::new(FileFormat::Json);
    folder.write("in", b"{}\n\n{\"a\":\"\xff\"}\n");
    assert_error(&folder.refused().await, codes::BAD_UTF8, &["/in, line 3, byte 10:"]);
    let mut folder = Folder::new(FileFormat::Lines);
    folder.write("in", b"\xff\n");
    assert_eq!(folder.read().await.unwrap(), ["\u{fffd}"], "lines are any bytes");
}

#[tokio::test]
async fn a_line_that_is_no_json_is_refused_where_validation_is_on() {
    let mut folder = Folder::new(FileFormat::Json);
    folder.config.validate = true;
    folder.write("in", "{}\n{\"a\":}\n");
    assert_error(&folder.refused().await, codes::BAD_JSON, &["/in, line 2, byte 3:", "column"]);
}

#[tokio::test]
async fn a_row_with_too_few_or_too_many_fields_names_file_and_line() {
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in", "a,b\n\"1\n1\",2\n3\n");
    assert_error(&folder.refused().await, codes::CSV_FIELDS, &["/in, line 4, byte 12:", "too few fields: 1", "has 2"]);
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in", "a,b\n1,2,3\n");
    assert_error(&folder.refused().await, codes::CSV_FIELDS, &["/in, line 2, byte 4:", "too many fields: 3"]);
}

#[tokio::test]
async fn a_quote_that_never_ends_is_refused() {
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in", "a,b\n1,2\n3,\"4\n5,6\n");
    assert_error(&folder.refused().await, codes::CSV_QUOTE, &["/in, line 3, byte 8:"]);
}

#[tokio::test]
async fn a_header_must_be_usable_and_the_same_in_every_file() {
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in-1", "a,a\n1,2\n");
    assert_error(&folder.refused().await, codes::CSV_HEADER, &["in-1", "`a` twice"]);
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in-1", "a,b\n1,2\n");
    folder.write("in-2", "b,a\n1,2\n");
    assert_error(&folder.refused().await, codes::CSV_HEADER, &["in-2", "`b,a`", "`a,b`"]);
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in-1", "a,b\n1,2\n");
    folder.write("in-2", b"a,\xff\n");
    assert_error(&folder.refused().await, codes::BAD_UTF8, &["in-2", "byte 2"]);
}

#[tokio::test]
async fn a_header_that_changed_is_noticed_when_a_file_is_read_on() {
    let mut folder = Folder::new(FileFormat::Csv);
    folder.write("in-2", "a,b\n1,2\n");
    folder.read().await.unwrap();
    folder.append("in-2", "3,4\n");
    folder.write("in-1", "x,y\n");
    assert_error(&folder.refused().await, codes::CSV_HEADER, &["in-2", "`a,b`", "`x,y`"]);
}

#[tokio::test]
async fn no_file_is_an_error_unless_one_was_read_before() {
    let mut folder = Folder::new(FileFormat::Lines);
    assert_error(&folder.refused().await, codes::NO_FILES, &["in*"]);
    folder.write("in", "1\n");
    folder.read().await.unwrap();
    folder.remove("in");
    assert!(folder.read().await.unwrap().is_empty());
    assert_error(&Folder::new(FileFormat::Csv).refused().await, codes::NO_FILES, &["header"]);
}

#[tokio::test]
async fn only_regular_files_are_read() {
    let mut folder = Folder::new(FileFormat::Lines);
    fs::create_dir(folder.path("in-folder")).unwrap();
    assert_error(&folder.refused().await, codes::NOT_A_FILE, &["in-folder is a folder"]);
    fs::remove_dir(folder.path("in-folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("in-socket")).unwrap();
    assert_error(&folder.refused().await, codes::NOT_A_FILE, &["in-socket is no regular file"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_a_coded_stop() {
    for mut folder in [Folder::new(FileFormat::Lines), Folder::followed(FileFormat::Lines)] {
        // A link to itself cannot be opened by anybody, root included.
        std::os::unix::fs::symlink(folder.path("in-loop"), folder.path("in-loop")).unwrap();
        assert_error(&folder.refused().await, codes::UNREADABLE, &["in-loop"]);
        folder.remove("in-loop");
        std::os::unix::fs::symlink(folder.path("nothing"), folder.path("in-broken")).unwrap();
        assert_error(&folder.refused().await, codes::UNREADABLE, &["in-broken"]);
    }
}

#[tokio::test]
async fn a_file_that_vanishes_before_it_is_read_is_a_coded_stop() {
    for folder in [Folder::new(FileFormat::Lines), Folder::followed(FileFormat::Lines)] {
        folder.write("in", "1\n");
        let mut run = folder.start().await.unwrap();
        let splits = run.source.discover(&folder.known).await.unwrap();
        folder.remove("in");
        let error = run.read_split(&splits[0], &mut Records::new()).await.unwrap_err();
        assert_error(&error, codes::LOST_FILE, &["/in ", "bytes 0 to 2"]);
    }
}

#[tokio::test]
async fn a_bounded_file_that_shrinks_while_it_is_read_is_a_coded_stop() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.limits.records = 1;
    folder.write("in", "1\n".repeat(1_000_000));
    let mut run = folder.start().await.unwrap();
    let split = run.source.discover(&folder.known).await.unwrap().remove(0);
    let mut reader = run.source.open(&split, None).await.unwrap();
    reader.read(&folder.limits).await.unwrap();
    fs::OpenOptions::new().write(true).open(folder.path("in")).unwrap().set_len(1_500_000).unwrap();
    run.readers.insert(split.clone(), reader);
    run.limits = LIMITS;
    let error = run.read_split(&split, &mut Records::new()).await.unwrap_err();
    assert_error(&error, codes::TRUNCATED, &["/in ", "bytes 1500000 to 2000000", "record 750000"]);
}

#[tokio::test]
async fn a_position_of_another_source_is_refused() {
    let mut folder = Folder::new(FileFormat::Lines);
    folder.write("in", "1\n");
    folder.known.insert(SplitId::try_from("generate:0/1".to_owned()).unwrap(), Position(b"5".to_vec()));
    assert_error(&folder.refused().await, codes::BAD_POSITION, &["generate:0/1"]);
    folder.known.clear();
    folder.read().await.unwrap();
    let (split, position) = folder.known.pop_first().unwrap();
    let mut newer = place(&position);
    newer["v"] = 2.into();
    folder.known.insert(split, Position(newer.to_string().into_bytes()));
    assert_error(&folder.refused().await, codes::BAD_POSITION, &["version 2"]);
}

#[test]
fn a_pattern_that_is_none_is_refused() {
    let config = FileSourceConfig::new("in-[", FileFormat::Lines);
    let Err(error) = FileSource::new(config, std::path::Path::new("/")) else { panic!("accepted") };
    assert_error(&error, codes::BAD_PATTERN, &["`in-[`"]);
}

#[tokio::test]
async fn a_folder_whose_name_looks_like_a_pattern_is_taken_literally() {
    let folder = Folder::followed(FileFormat::Lines);
    let odd = folder.path("a[b]*");
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("in"), "1\n").unwrap();
    let mut source = FileSource::new(folder.config.clone(), &odd).unwrap();
    source.prepare().await.unwrap();
    assert_eq!(source.discover(&folder.known).await.unwrap().len(), 1);
}
