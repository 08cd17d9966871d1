//! What becomes of bodies: formats, values, filtered rows, error logs.

use doris_emulator::{ColumnType, TableSpec};
use serde_json::Value;

use crate::support::{Connection, Doris, ROOT, load};

/// An emulator with a table `shop.typed` of an id, a nullable price and a nullable time.
fn typed() -> Doris {
    let doris = Doris::start();
    let table = TableSpec::any("shop", "typed").column("id", ColumnType::Bigint).nullable("price", ColumnType::Double);
    doris.client.create_table(&table.nullable("at", ColumnType::Datetime)).unwrap();
    doris
}

/// Loads, commits and shows the table's rows.
fn loaded(doris: &Doris, table: &str, headers: &[&str], body: &str) -> Vec<String> {
    let before = doris.client.rows("shop", table).unwrap().len();
    let reply = load(doris.be(), table, &format!("{table}-{before}"), headers, body);
    assert_eq!(reply["Status"], "Success", "{reply}");
    doris.commit(reply["TxnId"].as_i64().unwrap());
    doris.client.rows("shop", table).unwrap().split_off(before)
}

fn counts(reply: &Value) -> [u64; 3] {
    ["NumberTotalRows", "NumberLoadedRows", "NumberFilteredRows"].map(|name| reply[name].as_u64().unwrap())
}

#[test]
fn csv_comes_back_as_sent_with_any_delimiters() {
    let doris = typed();
    let comma = "column_separator: ,";
    assert_eq!(loaded(&doris, "typed", &[comma], "1,2.5,2024-01-01\n2,\\N,\\N"), ["1,2.5,2024-01-01", "2,\\N,\\N"]);
    // CRLF is tolerated with the default delimiter, and empty lines do not count.
    assert_eq!(loaded(&doris, "typed", &[comma], "3,1,2024-01-01\r\n\r\n4,1,2024-01-01\r\n").len(), 2);
    assert_eq!(
        loaded(&doris, "typed", &["column_separator: ||", "line_delimiter: \\x0102"], "5||1||\\N\u{1}\u{2}6||1||\\N"),
        ["5||1||\\N", "6||1||\\N"]
    );
    assert_eq!(loaded(&doris, "typed", &[], "7\t1\t\\N\n"), ["7\t1\t\\N"]);
    let quoted = [comma, "enclose: \"", "escape: \\"];
    assert_eq!(loaded(&doris, "orders", &quoted, "1,\"a\nb\"\n2,\"c,\\\"d\"\n"), ["1,\"a\nb\"", "2,\"c,\\\"d\""]);
}

#[test]
fn the_columns_header_orders_the_fields() {
    let doris = typed();
    let headers = ["column_separator: ,", "columns: at, unused, id"];
    assert_eq!(loaded(&doris, "typed", &headers, "2024-01-01,x,1\n").len(), 1);
    let missing = load(doris.be(), "typed", "missing", &["columns: price"], "1\n");
    assert!(missing["Message"].as_str().unwrap().contains("Column has no default value, column=id"), "{missing}");
    assert_eq!(doris.label_state("missing"), "ABORTED");
}

#[test]
fn json_comes_by_line_as_an_array_or_as_one_object() {
    let doris = typed();
    let by_line = ["format: json", "read_json_by_line: true"];
    assert_eq!(
        loaded(&doris, "typed", &by_line, "{\"id\": 1}\n\n{\"id\":2, \"price\": null}"),
        ["{\"id\": 1}", "{\"id\":2, \"price\": null}"]
    );
    let array = ["format: json", "strip_outer_array: true"];
    let body = "[{\"id\": 3},\n {\n  \"id\": 4,\n  \"at\": \"2024-01-01 10:00:00\"\n }\n]";
    assert_eq!(loaded(&doris, "typed", &array, body), ["{\"id\": 3}", "{\"id\":4,\"at\":\"2024-01-01 10:00:00\"}"]);
    let document = ["format: JSON", "read_json_by_line: false"];
    assert_eq!(loaded(&doris, "typed", &document, "{\"id\": 5}"), ["{\"id\": 5}"]);
    let refused = load(doris.be(), "typed", "array", &document, "[{\"id\": 5}]");
    assert!(refused["Message"].as_str().unwrap().contains("`strip_outer_array` must be TRUE"), "{refused}");
    // By line is the default of the newest versions.
    assert_eq!(loaded(&doris, "typed", &["format: json"], "{\"id\": 6}\n{\"id\": 7}\n").len(), 2);
}

#[test]
fn an_empty_body_is_a_success_without_rows() {
    let doris = typed();
    let json = "format: json";
    for (label, headers) in [("csv", &[][..]), ("lines", &[json, "read_json_by_line: true"]), ("array", &[json, "strip_outer_array: true"])]
    {
        let reply = load(doris.be(), "typed", label, headers, "");
        assert_eq!((reply["Status"].as_str(), counts(&reply)), (Some("Success"), [0, 0, 0]));
    }
}

#[test]
fn one_bad_row_fails_a_load_and_the_error_log_names_it() {
    let doris = typed();
    let reply = load(doris.be(), "typed", "bad", &["column_separator: ,"], "1,1,\\N\nseven,1,\\N\n3,1,\\N\n");
    assert_eq!((&reply["Status"], &reply["Message"]), (&"Fail".into(), &"[DATA_QUALITY_ERROR]too many filtered rows".into()));
    assert_eq!(counts(&reply), [3, 0, 1]);
    assert!(reply["FirstErrorMsg"].as_str().unwrap().contains("seven"), "{reply}");
    assert_eq!(doris.label_state("bad"), "ABORTED");
    let url = reply["ErrorURL"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", doris.be())).unwrap();
    assert!(path.starts_with("/api/_load_error_log?file=__shard_0/error_log_insert_stmt_"), "{url}");
    let log = Connection::open(doris.be()).request("GET", path, &[ROOT]);
    assert!(log.text().starts_with("Reason: ") && log.text().contains("src line [seven,1,\\N]; "), "{}", log.text());
    let outside = Connection::open(doris.be()).request("GET", "/api/_load_error_log?file=__shard_0/../journal.jsonl", &[]);
    assert!(outside.text().starts_with("file not exist"), "{}", outside.text());
}

#[test]
fn the_filter_ratio_is_compared_strictly() {
    let doris = typed();
    let body = "{\"id\": 1}\n{\"id\": 2}\n{\"id\": 3}\n{\"id\": \"x\"}\n";
    let json = ["format: json", "read_json_by_line: true"];
    let reply = load(doris.be(), "typed", "ratio-1", &[&json[..], &["max_filter_ratio: 0.25"]].concat(), body);
    assert_eq!((reply["Status"].as_str(), counts(&reply)), (Some("Success"), [4, 3, 1]));
    assert!(reply.get("ErrorURL").is_some());
    doris.commit(reply["TxnId"].as_i64().unwrap());
    assert_eq!(doris.client.rows("shop", "typed").unwrap().len(), 3);
    let reply = load(doris.be(), "typed", "ratio-2", &[&json[..], &["max_filter_ratio: 0.24"]].concat(), body);
    assert_eq!((reply["Status"].as_str(), counts(&reply)), (Some("Fail"), [4, 0, 1]));
}

#[test]
fn strictness_decides_about_bad_values_in_nullable_columns() {
    let doris = typed();
    let body = "1,cheap,\\N\n";
    let loose = load(doris.be(), "typed", "loose", &["column_separator: ,"], body);
    assert_eq!(counts(&loose), [1, 1, 0]);
    let strict = load(doris.be(), "typed", "strict", &["column_separator: ,", "strict_mode: true"], body);
    assert_eq!((strict["Status"].as_str(), counts(&strict)), (Some("Fail"), [1, 0, 1]));
}
