//! Transactions in a real folder, one call after the other.

use std::fs;

use super::native::NativeFolder;
use super::*;
use crate::error::Kind;
use crate::settle::Verdict;
use crate::transaction::{BUFFER_BYTES, FILES};

fn folder() -> (tempfile::TempDir, NativeFolder) {
    let directory = tempfile::tempdir().unwrap();
    let folder = NativeFolder(directory.path().to_owned());
    (directory, folder)
}

#[test]
fn records_are_invisible_until_commit_and_then_in_one_file() {
    let (_directory, folder) = folder();
    let mut writer = open(PLAIN, Role::Writer, folder.clone());
    let prepared = prepare(&mut writer, "l-1", &["{\"a\":1}\n{\"a\":2}\n", "3\n"]).unwrap();
    assert_eq!(prepared.records, Some(3));
    assert_eq!((visible(&folder).len(), hidden(&folder)), (0, vec![".l-1.0.open".to_owned()]));

    let mut committer = open(PLAIN, Role::Committer, folder.clone());
    assert_eq!(committer.commit("l-1", &prepared.handle).unwrap(), Verdict::Committed);
    let expected = [("orders-l-1.jsonl".to_owned(), "{\"a\":1}\n{\"a\":2}\n3\n".to_owned())];
    assert_eq!(visible(&folder), expected);
    assert!(hidden(&folder).is_empty());
    assert_eq!(committer.commit("l-1", &prepared.handle).unwrap(), Verdict::AlreadyCommitted);
    assert_eq!(visible(&folder), expected);
}

#[test]
fn a_rolled_transaction_is_several_numbered_files_under_one_handle() {
    let (_directory, folder) = folder();
    let mut writer = open(ROLLING, Role::Writer, folder.clone());
    let prepared = prepare(&mut writer, "l", &["1\n", "2\n2\n", "3\n"]).unwrap();
    open(ROLLING, Role::Committer, folder.clone()).commit("l", &prepared.handle).unwrap();
    let files = visible(&folder);
    assert_eq!(contents(&files), ["1\n", "2\n2\n", "3\n"]);
    assert_eq!(files[2].0, "orders-l.00002.jsonl");
}

#[test]
fn a_file_ends_at_the_first_batch_that_reaches_the_size() {
    let (_directory, folder) = folder();
    let config = r#"{"directory":"/out","prefix":"p","roll_bytes":4}"#;
    let prepared = prepare(&mut open(config, Role::Writer, folder.clone()), "l", &["1\n", "2\n", "3\n"]).unwrap();
    open(config, Role::Committer, folder.clone()).commit("l", &prepared.handle).unwrap();
    assert_eq!(contents(&visible(&folder)), ["1\n2\n", "3\n"]);
}

#[test]
fn a_handle_has_the_same_size_for_a_thousand_files() {
    let (_directory, folder) = folder();
    let batches = vec!["1\n"; 1000];
    let prepared = prepare(&mut open(ROLLING, Role::Writer, folder.clone()), "l", &batches).unwrap();
    assert!(prepared.handle.len() < 200);
    open(ROLLING, Role::Committer, folder.clone()).commit("l", &prepared.handle).unwrap();
    assert_eq!(visible(&folder).len(), 1000);
    assert!(hidden(&folder).is_empty());
}

#[test]
fn a_transaction_with_too_many_files_is_refused_and_can_be_aborted() {
    let memory = super::memory::Memory::new();
    let mut writer = open(ROLLING, Role::Writer, memory.clone());
    writer.begin("l", [1; 16]).unwrap();
    for _ in 0..FILES {
        writer.invoke("l", lines("1\n")).unwrap();
    }
    let error = writer.invoke("l", lines("1\n")).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    writer.abort("l").unwrap();
    assert!(hidden(&memory).is_empty());
}

#[test]
fn batches_larger_and_smaller_than_the_buffer_arrive_whole_and_in_order() {
    let (_directory, folder) = folder();
    let mut writer = open(PLAIN, Role::Writer, folder.clone());
    writer.begin("l", [1; 16]).unwrap();
    let mut expected = String::new();
    for (index, size) in
        [1, 10, BUFFER_BYTES / 4, 5, BUFFER_BYTES / 4 - 3, BUFFER_BYTES - 20, 5, 3 * BUFFER_BYTES + 7, 2, BUFFER_BYTES].iter().enumerate()
    {
        let line = format!("{index}{}\n", "x".repeat(*size));
        writer.invoke("l", lines(&line)).unwrap();
        expected.push_str(&line);
    }
    let prepared = writer.precommit("l").unwrap();
    open(PLAIN, Role::Committer, folder.clone()).commit("l", &prepared.handle).unwrap();
    assert!(contents(&visible(&folder)) == [expected.as_str()]);
}

#[test]
fn every_csv_file_begins_with_the_header() {
    let (_directory, folder) = folder();
    let columns = ["id".to_owned(), "a name".to_owned()];
    for (label, config, expected) in [
        ("on", r#"{"directory":"/out","prefix":"p","roll_bytes":1}"#, ["id,a name\n1,x\n", "id,a name\n2,y\n"]),
        ("off", r#"{"directory":"/out","prefix":"q","roll_bytes":1,"header":false}"#, ["1,x\n", "2,y\n"]),
    ] {
        let sink = |role| Sink::open(Config::parse(config).unwrap(), Format::Csv, &columns, role, folder.clone(), [9; 16]).unwrap();
        let prepared = prepare(&mut sink(Role::Writer), label, &["1,x\n", "2,y\n"]).unwrap();
        sink(Role::Committer).commit(label, &prepared.handle).unwrap();
        let files = visible(&folder);
        assert_eq!(contents(&files)[files.len() - 2..], expected);
        assert!(files[0].0.ends_with(".csv"));
    }
}

#[test]
fn a_label_that_the_folder_knows_is_a_conflict() {
    let (_directory, folder) = folder();
    let mut writer = open(PLAIN, Role::Writer, folder.clone());
    let prepared = prepare(&mut writer, "l", &["1\n"]).unwrap();
    assert_eq!(writer.begin("l", [1; 16]).unwrap_err().kind(), Kind::Conflict);
    let mut committer = open(PLAIN, Role::Committer, folder.clone());
    committer.commit("l", &prepared.handle).unwrap();
    for config in [PLAIN, ROLLING] {
        assert_eq!(open(config, Role::Writer, folder.clone()).begin("l", [1; 16]).unwrap_err().kind(), Kind::Conflict);
        assert_eq!(open(config, Role::Committer, folder.clone()).abort("l").unwrap_err().kind(), Kind::Conflict);
    }
    assert_eq!(contents(&visible(&folder)), ["1\n"]);
    writer.begin("another", [1; 16]).unwrap();
}

#[test]
fn abort_removes_what_is_under_way_and_what_is_prepared_and_knows_no_more() {
    let (_directory, folder) = folder();
    let mut writer = open(ROLLING, Role::Writer, folder.clone());
    prepare(&mut writer, "prepared", &["1\n", "2\n"]).unwrap();
    writer.begin("under-way", [1; 16]).unwrap();
    writer.invoke("under-way", lines("1\n")).unwrap();
    // Another label, and one that this one is the beginning of, are left alone.
    prepare(&mut open(PLAIN, Role::Writer, folder.clone()), "prepared-2", &["1\n"]).unwrap();
    writer.abort("under-way").unwrap();
    open(PLAIN, Role::Committer, folder.clone()).abort("prepared").unwrap();
    assert_eq!(hidden(&folder), [".prepared-2.0.open"]);
    for label in ["under-way", "prepared", "never-begun"] {
        writer.abort(label).unwrap();
    }
    // The writer is free again.
    prepare(&mut writer, "next", &["1\n"]).unwrap();
}

#[test]
fn a_file_that_a_reader_took_away_stays_committed() {
    let (_directory, folder) = folder();
    let prepared = prepare(&mut open(ROLLING, Role::Writer, folder.clone()), "l", &["1\n", "2\n"]).unwrap();
    let mut committer = open(ROLLING, Role::Committer, folder.clone());
    committer.commit("l", &prepared.handle).unwrap();
    folder.remove("orders-l.00000.jsonl").unwrap();
    assert_eq!(committer.commit("l", &prepared.handle).unwrap(), Verdict::AlreadyCommitted);
    assert_eq!(contents(&visible(&folder)), ["2\n"]);
}

#[test]
fn another_folder_or_an_empty_one_is_refused_and_never_called_committed() {
    let (_directory, folder) = folder();
    let prepared = prepare(&mut open(PLAIN, Role::Writer, folder.clone()), "l", &["1\n"]).unwrap();

    let (_unmounted, empty) = self::folder();
    let error = open(PLAIN, Role::Committer, empty.clone()).commit("l", &prepared.handle).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().contains("is missing") && error.to_string().contains("010101"), "{error}");
    assert!(fs::read_dir(&empty.0).unwrap().next().is_none(), "commit makes no marker");

    open(PLAIN, Role::Writer, empty.clone()).begin("other", [2; 16]).unwrap();
    let error = open(PLAIN, Role::Committer, empty).commit("l", &prepared.handle).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().contains("says 020202"), "{error}");

    assert_eq!(open(PLAIN, Role::Committer, folder).commit("l", &prepared.handle).unwrap(), Verdict::Committed);
}

#[test]
fn a_removed_marker_is_put_back_as_the_readme_says() {
    let (_directory, folder) = folder();
    let prepared = prepare(&mut open(PLAIN, Role::Writer, folder.clone()), "l", &["1\n"]).unwrap();
    fs::remove_file(folder.0.join(marker::NAME)).unwrap();
    let mut committer = open(PLAIN, Role::Committer, folder.clone());
    let id = "01".repeat(16);
    assert!(committer.commit("l", &prepared.handle).unwrap_err().to_string().contains(&id));
    fs::write(folder.0.join(marker::NAME), r#"{"format":"weir-folder-1","id":"<id>"}"#.replace("<id>", &id)).unwrap();
    assert_eq!(committer.commit("l", &prepared.handle).unwrap(), Verdict::Committed);
    fs::write(folder.0.join(marker::NAME), "").unwrap();
    assert_eq!(committer.commit("l", &prepared.handle).unwrap_err().kind(), Kind::Refused);
}

#[test]
fn a_changed_config_commits_and_aborts_what_was_prepared_before() {
    let (_directory, folder) = folder();
    let mut writer = open(ROLLING, Role::Writer, folder.clone());
    let prepared = prepare(&mut writer, "one", &["1\n", "2\n"]).unwrap();
    prepare(&mut writer, "two", &["3\n"]).unwrap();
    let renamed = r#"{"directory":"/out","prefix":"new","extension":"log"}"#;
    let mut committer = open(renamed, Role::Committer, folder.clone());
    committer.commit("one", &prepared.handle).unwrap();
    committer.abort("two").unwrap();
    let names: Vec<String> = visible(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["orders-one.00000.jsonl", "orders-one.00001.jsonl"]);
    assert!(hidden(&folder).is_empty());
}

#[test]
fn commit_overwrites_no_file_and_says_which_two_there_are() {
    let (_directory, folder) = folder();
    let prepared = prepare(&mut open(PLAIN, Role::Writer, folder.clone()), "l", &["1\n"]).unwrap();
    fs::write(folder.0.join("orders-l.jsonl"), "somebody's").unwrap();
    let mut committer = open(PLAIN, Role::Committer, folder.clone());
    let error = committer.commit("l", &prepared.handle).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().contains(".l.0.open") && error.to_string().contains("orders-l.jsonl"), "{error}");
    assert_eq!(contents(&visible(&folder)), ["somebody's"]);
    fs::remove_file(folder.0.join("orders-l.jsonl")).unwrap();
    assert_eq!(committer.commit("l", &prepared.handle).unwrap(), Verdict::Committed);
}

#[test]
fn prepared_files_that_somebody_changed_are_not_published() {
    let (_directory, folder) = folder();
    let prepared = prepare(&mut open(PLAIN, Role::Writer, folder.clone()), "l", &["1\n"]).unwrap();
    fs::write(folder.0.join(".l.0.open"), "").unwrap();
    let error = open(PLAIN, Role::Committer, folder.clone()).commit("l", &prepared.handle).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(visible(&folder).is_empty());
}

#[test]
fn a_file_removed_while_it_is_written_is_noticed_before_anything_is_decided() {
    let (_directory, folder) = folder();
    let mut writer = open(ROLLING, Role::Writer, folder.clone());
    writer.begin("l", [1; 16]).unwrap();
    writer.invoke("l", lines("1\n")).unwrap();
    writer.invoke("l", lines("2\n")).unwrap();
    fs::remove_file(folder.0.join(".l.0.open")).unwrap();
    assert_eq!(writer.precommit("l").unwrap_err().kind(), Kind::Unavailable);
    writer.abort("l").unwrap();
    assert!(hidden(&folder).is_empty());
}

#[test]
fn a_transaction_of_which_every_record_was_rejected_is_an_empty_file() {
    let (_directory, folder) = folder();
    let mut writer = open(PLAIN, Role::Writer, folder.clone());
    writer.begin("l", [1; 16]).unwrap();
    let batch = Batch { framing: Framing::Bare, count: 1, bytes: b"a\nb", ends: &[3], absent: &[] };
    assert_eq!(writer.invoke("l", batch).unwrap().len(), 1);
    let prepared = writer.precommit("l").unwrap();
    assert_eq!(prepared.records, Some(0));
    open(PLAIN, Role::Committer, folder.clone()).commit("l", &prepared.handle).unwrap();
    assert_eq!(contents(&visible(&folder)), [""]);
}

#[test]
fn two_writers_share_one_marker() {
    let (_directory, folder) = folder();
    let one = prepare(&mut open(PLAIN, Role::Writer, folder.clone()), "one", &["1\n"]).unwrap();
    let mut writer = open(PLAIN, Role::Writer, folder.clone());
    writer.begin("two", [2; 16]).unwrap();
    let two = writer.precommit("two").unwrap();
    let mut committer = open(PLAIN, Role::Committer, folder.clone());
    for (label, prepared) in [("one", one), ("two", two)] {
        assert_eq!(committer.commit(label, &prepared.handle).unwrap(), Verdict::Committed);
    }
}

#[test]
fn calls_out_of_order_are_the_hosts_fault_and_change_nothing() {
    let (_directory, folder) = folder();
    let mut writer = open(PLAIN, Role::Writer, folder.clone());
    let broken = |outcome: Result<(), Error>| assert_eq!(outcome.unwrap_err().kind(), Kind::Broken);
    broken(writer.invoke("l", lines("1\n")).map(drop));
    broken(writer.precommit("l").map(drop));
    broken(writer.commit("l", b"{}").map(drop));
    broken(writer.begin("../l", [1; 16]));
    broken(writer.abort("../l"));
    writer.begin("l", [1; 16]).unwrap();
    broken(writer.begin("m", [1; 16]));
    broken(writer.invoke("m", lines("1\n")).map(drop));
    writer.invoke("l", lines("1\n")).unwrap();
    let mut committer = open(PLAIN, Role::Committer, folder.clone());
    broken(committer.begin("m", [1; 16]));
    broken(committer.commit("l", b"not a handle").map(drop));
    assert_eq!(writer.precommit("l").unwrap().records, Some(1));
}

#[test]
fn a_probe_finds_a_folder_that_is_there_and_changes_nothing() {
    let (_directory, folder) = folder();
    open(PLAIN, Role::Probe, folder.clone());
    assert!(fs::read_dir(&folder.0).unwrap().next().is_none());
    open(PLAIN, Role::Writer, folder.clone()).begin("l", [1; 16]).unwrap();
    let before = fs::read(folder.0.join(marker::NAME)).unwrap();
    let mut probe = open(PLAIN, Role::Probe, folder.clone());
    assert_eq!(fs::read(folder.0.join(marker::NAME)).unwrap(), before);
    assert_eq!(probe.abort("l").unwrap_err().kind(), Kind::Broken);
}

#[test]
fn the_folder_in_memory_behaves_as_a_real_one() {
    use crate::folder::{Fault, OutputFile};
    let (_directory, real) = folder();
    let memory = super::memory::Memory::new();
    fn script<F: Folder>(folder: &F) -> Vec<Result<Option<Vec<u8>>, crate::folder::Cause>> {
        let done = |outcome: Result<(), Fault>| outcome.map(|()| None).map_err(|fault| fault.cause);
        let sizes = |name: &str| Ok(folder.size(name).unwrap().map(|size| vec![size as u8]));
        let mut file = folder.create("a").unwrap();
        vec![
            done(file.write_at(b"one", 0).map(drop)),
            done(file.sync()),
            done(folder.create("a").map(drop)),
            done(folder.link("a", "b")),
            done(folder.link("a", "b")),
            done(folder.link("x", "c")),
            done(folder.rename("x", "c")),
            done(folder.rename("a", "c")),
            sizes("a"),
            sizes("c"),
            done(folder.rename("c", "d")),
            done(folder.remove("x")),
            done(folder.remove("b")),
            Ok(folder.read("d", 2).unwrap()),
            Ok(folder.read("x", 2).unwrap()),
            done(folder.check_changeable("x", Some("d"))),
            done(folder.sync()),
            Ok(Some(folder.names(&|_| true).unwrap().concat().into_bytes())),
        ]
    }
    assert_eq!(script(&memory), script(&real));
}
