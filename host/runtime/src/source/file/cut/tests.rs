//! Cutting against a plain model of each format: the same records with the same numbers, whatever the blocks, the limits and the restarts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;

use super::super::config::{FileFormat, FileSourceConfig};
use super::*;

const LIMIT: usize = 64;

fn limits(bytes: usize, records: u32, ends: bool) -> CutLimits {
    CutLimits { bytes, records, record_bytes: LIMIT.min(bytes), ends }
}

fn cutter(format: FileFormat, columns: usize) -> Cutter {
    Cutter::new(&FileSourceConfig::new("x", format), columns)
}

/// The records of a file, as one would find them who has all the time in the world.
fn model(format: FileFormat, data: &[u8]) -> Vec<Vec<u8>> {
    let data = match format {
        FileFormat::Json => data.strip_prefix(BYTE_ORDER_MARK).unwrap_or(data),
        FileFormat::Lines | FileFormat::Csv => data,
    };
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut quoted = false;
    for &byte in data {
        quoted ^= byte == b'"' && format == FileFormat::Csv;
        if byte == b'\n' && !quoted {
            records.push(std::mem::take(&mut record));
        } else {
            record.push(byte);
        }
    }
    if !record.is_empty() {
        records.push(record);
    }
    match format {
        FileFormat::Lines => records,
        FileFormat::Json => records.into_iter().filter(|line| !line.iter().all(u8::is_ascii_whitespace)).collect(),
        FileFormat::Csv => {
            let stripped = records.into_iter().map(|row| row.strip_suffix(b"\r").map(<[u8]>::to_vec).unwrap_or(row));
            stripped.filter(|row| !row.is_empty()).collect()
        }
    }
}

/// How a file is read: the sizes of blocks, over and over, and whether the reader is given up after a cut.
#[derive(Clone, Debug)]
struct Schedule {
    blocks: Vec<usize>,
    restarts: Vec<bool>,
    limits: CutLimits,
}

/// Reads a file by a schedule, and gives its records.
fn cut_all(format: FileFormat, columns: usize, data: &[u8], schedule: &Schedule) -> Result<Vec<Vec<u8>>, Problem> {
    let mut cutter = cutter(format, columns);
    let mut records = Vec::new();
    let (mut offset, mut end) = (0, 0);
    let mut blocks = schedule.blocks.iter().copied().cycle();
    let mut restarts = schedule.restarts.iter().copied().cycle();
    loop {
        let window = Window { bytes: &data[offset..end], first: offset == 0, last: end == data.len() };
        let last = window.last;
        let cut = cutter.cut(window, &schedule.limits).map_err(|problem| Problem { at: problem.at + offset, ..problem })?;
        let bytes = match cut.records {
            Records::Window(range) => data[offset..end][range].to_vec(),
            Records::Copied(copy) => copy,
        };
        let lines = line_feeds(&data[offset..offset + cut.taken]);
        assert_eq!(cut.lines, lines, "line feeds");
        assert!(bytes.len() <= schedule.limits.bytes && cut.count <= schedule.limits.records, "within limits");
        assert!(!schedule.limits.ends || cut.count == 0 || cut.ends.is_some());
        let ends = cut.ends.unwrap_or_else(|| memchr::memchr_iter(b'\n', &bytes).map(|feed| feed as u32 + 1).collect());
        assert_eq!((ends.len(), ends.last().copied().unwrap_or(0) as usize), (cut.count as usize, bytes.len()), "ends");
        let mut start = 0;
        for record_end in ends {
            let record = &bytes[start..record_end as usize];
            records.push(record.strip_suffix(b"\n").expect_line_feed().to_vec());
            start = record_end as usize;
        }
        offset += cut.taken;
        if cut.taken == 0 && last {
            assert_eq!(offset, data.len(), "everything was taken");
            return Ok(records);
        }
        if cut.taken > 0 && restarts.next().unwrap() {
            cutter = super::tests::cutter(format, columns);
            end = offset;
        }
        if cut.taken == 0 || end == offset {
            end = (end + blocks.next().unwrap()).min(data.len());
        }
    }
}

trait ExpectLineFeed<'a> {
    fn expect_line_feed(self) -> &'a [u8];
}

impl<'a> ExpectLineFeed<'a> for Option<&'a [u8]> {
    fn expect_line_feed(self) -> &'a [u8] {
        self.unwrap_or_else(|| panic!("a record without its line feed"))
    }
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let blocks = prop::collection::vec(1..40usize, 1..8);
    let restarts = prop::collection::vec(any::<bool>(), 1..8);
    (blocks, restarts, LIMIT..LIMIT * 4, 1..9u32, any::<bool>()).prop_map(|(blocks, restarts, bytes, records, ends)| Schedule {
        blocks,
        restarts,
        limits: limits(bytes, records, ends),
    })
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![3 => "[a-z ]{0,20}", 1 => Just(String::new()), 1 => "[a-z]{0,5}\r"];
    (prop::collection::vec(text, 0..30), any::<bool>(), any::<bool>()).prop_map(|(lines, terminated, mark)| {
        let mut data = if mark { BYTE_ORDER_MARK.to_vec() } else { Vec::new() };
        data.extend(lines.join("\n").into_bytes());
        if terminated {
            data.push(b'\n');
        }
        data
    })
}

/// Rows of three fields, some quoted with line feeds, quotes and commas inside, ended in three ways, with empty lines between.
fn rows() -> impl Strategy<Value = Vec<u8>> {
    let field =
        prop_oneof![3 => "[a-z ]{0,6}", 1 => "[a-z,\r\n]{0,6}".prop_map(|text| format!("\"{text}\"")), 1 => Just("\"a\"\"b\"".to_owned())];
    let row = (prop::collection::vec(field, 3), prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just("\r\n\r\n")]);
    (prop::collection::vec(row, 0..20), any::<bool>()).prop_map(|(rows, terminated)| {
        let mut data: String = rows.into_iter().map(|(fields, end)| fields.join(",") + end).collect();
        if !terminated {
            data.truncate(data.trim_end_matches(['\r', '\n']).len());
        }
        data.into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lines_are_the_same_however_they_are_read(data in lines(), schedule in schedules()) {
        prop_assert_eq!(cut_all(FileFormat::Lines, 0, &data, &schedule).unwrap(), model(FileFormat::Lines, &data));
    }

    #[test]
    fn json_lines_are_the_same_however_they_are_read(data in lines(), schedule in schedules()) {
        prop_assert_eq!(cut_all(FileFormat::Json, 0, &data, &schedule).unwrap(), model(FileFormat::Json, &data));
    }

    #[test]
    fn csv_rows_are_the_same_however_they_are_read(data in rows(), schedule in schedules()) {
        prop_assert_eq!(cut_all(FileFormat::Csv, 3, &data, &schedule).unwrap(), model(FileFormat::Csv, &data));
    }

    /// Whatever the bytes: no panic, and what is refused is refused whatever the blocks.
    #[test]
    fn any_bytes_end_the_same_way_however_they_are_read(
        data in prop::collection::vec(prop_oneof![4 => prop::sample::select(b"ab,\"\r\n \xc3\xa9".to_vec()), 1 => any::<u8>()], 0..200),
        format in prop::sample::select(vec![FileFormat::Lines, FileFormat::Json, FileFormat::Csv]),
        one in schedules(),
        other in schedules(),
    ) {
        // The limit of bytes is the only part of the schedule that may decide over a record.
        let other = Schedule { limits: CutLimits { bytes: one.limits.bytes, ..other.limits }, ..other };
        let one = cut_all(format, 2, &data, &one).map_err(|problem| problem.kind_of());
        let other = cut_all(format, 2, &data, &other).map_err(|problem| problem.kind_of());
        prop_assert_eq!(one.is_ok(), other.is_ok());
        if let (Ok(one), Ok(other)) = (one, other) {
            prop_assert_eq!(one, other);
        }
    }
}

impl Problem {
    fn kind_of(&self) -> std::mem::Discriminant<ProblemKind> {
        std::mem::discriminant(&self.kind)
    }
}

fn whole(bytes: &[u8]) -> Window<'_> {
    Window { bytes, first: true, last: true }
}

fn problem(format: FileFormat, data: &[u8]) -> Problem {
    let schedule = Schedule { blocks: vec![1000], restarts: vec![false], limits: limits(200, 100, false) };
    cut_all(format, 2, data, &schedule).unwrap_err()
}

#[test]
fn a_record_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
    for format in [FileFormat::Lines, FileFormat::Json, FileFormat::Csv] {
        let exact = format!("{},2", "1".repeat(LIMIT - 3));
        for end in ["", "\n"] {
            let schedule = Schedule { blocks: vec![7], restarts: vec![false], limits: limits(200, 100, false) };
            let fits = cut_all(format, 2, format!("a,b\n{exact}{end}").as_bytes(), &schedule).unwrap();
            assert_eq!(fits, [b"a,b".to_vec(), exact.clone().into_bytes()], "{format:?} {end:?}");
            assert_eq!(
                problem(format, format!("a,b\n1{exact}{end}").as_bytes()),
                Problem { at: 4, kind: ProblemKind::TooLong { limit: LIMIT } },
                "{format:?} {end:?}"
            );
        }
    }
}

#[test]
fn a_row_of_exactly_the_limit_may_end_in_carriage_return_and_line_feed() {
    let exact = format!("{},2", "1".repeat(LIMIT - 3));
    let schedule = Schedule { blocks: vec![1], restarts: vec![true], limits: limits(LIMIT, 100, false) };
    assert_eq!(cut_all(FileFormat::Csv, 2, format!("{exact}\r\n{exact}\r\n").as_bytes(), &schedule).unwrap().len(), 2);
    assert_eq!(problem(FileFormat::Csv, format!("1{exact}\r\n").as_bytes()).at, 0);
}

#[test]
fn what_is_wrong_is_named_with_its_byte() {
    assert_eq!(problem(FileFormat::Json, b"{}\n{\"a\":\"\xff\"}\n"), Problem { at: 9, kind: ProblemKind::NotUtf8 });
    assert_eq!(problem(FileFormat::Json, b"\xef\xbb\xbf{}\n\xff\n"), Problem { at: 6, kind: ProblemKind::NotUtf8 });
    assert_eq!(problem(FileFormat::Json, b"{}\n\xc3"), Problem { at: 3, kind: ProblemKind::NotUtf8 });
    assert_eq!(problem(FileFormat::Csv, b"1,2\n3\n"), Problem { at: 4, kind: ProblemKind::Fields { found: 1, expected: 2 } });
    assert_eq!(problem(FileFormat::Csv, b"1,2\n\n3,4,5\n"), Problem { at: 5, kind: ProblemKind::Fields { found: 3, expected: 2 } });
    assert_eq!(problem(FileFormat::Csv, b"1,2\n3,\"4\n5,6\n"), Problem { at: 4, kind: ProblemKind::OpenQuote });
}

#[test]
fn a_row_of_many_fields_is_counted_to_its_end() {
    let data = format!("{}\n", vec!["x"; 20_000].join(","));
    let limits = CutLimits { bytes: 100_000, records: 10, record_bytes: 100_000, ends: false };
    let mut wide = cutter(FileFormat::Csv, 20_000);
    assert_eq!(wide.cut(whole(data.as_bytes()), &limits).unwrap().count, 1);
    let mut narrow = cutter(FileFormat::Csv, 3);
    assert_eq!(narrow.cut(whole(data.as_bytes()), &limits).unwrap_err().kind, ProblemKind::Fields { found: 20_000, expected: 3 });
}

#[test]
fn json_is_parsed_only_where_that_is_asked_for() {
    let data = b"{\"a\":1}\nnonsense\n";
    let limits = limits(200, 100, false);
    assert_eq!(cutter(FileFormat::Json, 0).cut(whole(data), &limits).unwrap().count, 2);
    let problem = Cutter::Json { validate: true }.cut(whole(data), &limits).unwrap_err();
    assert!(matches!(problem, Problem { at: 8, kind: ProblemKind::NotJson { .. } }), "{problem:?}");
    let two_values = Cutter::Json { validate: true }.cut(whole(b"1 2\n"), &limits).unwrap_err();
    assert!(matches!(two_values.kind, ProblemKind::NotJson { .. }));
    let good = Cutter::Json { validate: true }.cut(whole(b"{\"a\":[1,null]}\r\n\"x\"\n"), &limits).unwrap();
    assert_eq!(good.count, 2);
}

#[test]
fn untouched_records_are_not_copied() {
    let limits = limits(200, 100, false);
    let cases: [(FileFormat, &[u8]); 3] =
        [(FileFormat::Lines, b"a\n\nb\r\n"), (FileFormat::Json, b"\n{}\n{}\n"), (FileFormat::Csv, b"\na,b\n\"c\n\",d\n")];
    for (format, data) in cases {
        let cut = cutter(format, 2).cut(whole(data), &limits).unwrap();
        assert!(matches!(cut.records, Records::Window(_)), "{format:?}");
    }
}

#[test]
fn a_header_is_found_whatever_it_holds() {
    let header = |columns: &[&str], length, lines| {
        HeaderFound::Header(Header { columns: columns.iter().map(|&name| name.to_owned()).collect(), length, lines })
    };
    let find = |bytes: &[u8], last| find_header(bytes, last, LIMIT);
    assert_eq!(find(b"id,name\n1,x\n", false).unwrap(), header(&["id", "name"], 8, 1));
    assert_eq!(find(b"\xef\xbb\xbfid,name\r\n", false).unwrap(), header(&["id", "name"], 12, 1));
    assert_eq!(find(b"\n\r\n\"a\nb\",\"c\"\"d\",\n", false).unwrap(), header(&["a\nb", "c\"d", ""], 17, 4));
    assert_eq!(find(b"id,name", true).unwrap(), header(&["id", "name"], 7, 0));
    assert_eq!(find(b"id,na", false).unwrap(), HeaderFound::Open);
    assert_eq!(find(b"", false).unwrap(), HeaderFound::Open);
    assert_eq!(find(b"\n\n", true).unwrap(), HeaderFound::Empty);
    assert_eq!(find(b"id,\xff\n", true).unwrap_err(), Problem { at: 3, kind: ProblemKind::NotUtf8 });
    assert_eq!(find(b"id,\"x\n1,2\n", true).unwrap_err().kind, ProblemKind::OpenQuote);
    assert_eq!(find(&[b'x'; LIMIT], false).unwrap_err().kind, ProblemKind::TooLong { limit: LIMIT });
}
