//! The end of a load: whether Doris holds exactly what was sent, and the handle that commits it.

use serde::{Deserialize, Serialize};

use crate::bindings::weir::sink::types::{Error, Prepared};
use crate::error::{ErrorExt, bad_data, broken, conflict, refused};
use crate::reply::LoadReply;
use crate::verdict::load_failure;

/// Name of the handle's format, as `describe` lists it.
pub(crate) const HANDLE_FORMAT: &str = "doris-txn-1";
/// Version inside the handle; goes with [`HANDLE_FORMAT`].
const VERSION: u32 = 1;

/// All that a commit needs: the transaction's id, and where and under which label to ask when the id is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handle {
    v: u32,
    pub(crate) db: String,
    pub(crate) label: String,
    pub(crate) txn: i64,
}

impl Handle {
    /// Reads a handle of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let handle: Self = serde_json::from_slice(bytes).map_err(|error| broken(format!("the handle is none of this sink: {error}")))?;
        if handle.v != VERSION {
            return Err(refused(format!("the handle has version {}, and this plugin commits {VERSION} ({HANDLE_FORMAT})", handle.v)));
        }
        if handle.txn <= 0 {
            return Err(broken(format!("the handle names transaction {}", handle.txn)));
        }
        Ok(handle)
    }

    fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| broken(format!("the handle cannot be written: {error}")))
    }
}

/// What a load's reply must say before its transaction may be committed.
pub(crate) fn prepared(load: &LoadReply, database: &str, label: &str, rows_sent: u64, filtered_allowed: bool) -> Result<Prepared, Error> {
    if load.status != "Success" {
        return Err(load_failure(load));
    }
    if load.two_phase_commit != "true" {
        return Err(
            conflict(format!("Doris committed {label} without being asked: two-phase commit is off for this load")).with_code("Success")
        );
    }
    if load.txn_id <= 0 || (!load.label.is_empty() && load.label != label) {
        let names = (load.txn_id, &load.label);
        return Err(refused(format!("Doris answered with transaction {} of label `{}` for label {label}", names.0, names.1)));
    }
    if load.number_filtered_rows > 0 && !filtered_allowed {
        return Err(bad_data(format!("Doris dropped {} of {} rows{}", load.number_filtered_rows, load.number_total_rows, first(load))));
    }
    if load.number_total_rows != rows_sent {
        return Err(bad_data(format!(
            "{rows_sent} records were sent and Doris counts {} rows: a record is empty or more than one row, or something between here and Doris cut the load",
            load.number_total_rows
        )));
    }
    let handle = Handle { v: VERSION, db: database.to_owned(), label: label.to_owned(), txn: load.txn_id };
    Ok(Prepared { handle: handle.encode()?, records: u32::try_from(load.number_total_rows).ok() })
}

fn first(load: &LoadReply) -> String {
    if load.first_error_msg.is_empty() { String::new() } else { format!(": {}", load.first_error_msg) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::bindings::weir::sink::types::ErrorKind;

    fn good() -> LoadReply {
        LoadReply {
            txn_id: 18_036,
            label: "l".into(),
            two_phase_commit: "true".into(),
            status: "Success".into(),
            message: "OK".into(),
            number_total_rows: 100,
            ..LoadReply::default()
        }
    }

    #[test]
    fn a_good_reply_makes_a_handle_that_reads_back() {
        let prepared = prepared(&good(), "shop", "l", 100, false).unwrap();
        assert_eq!(prepared.records, Some(100));
        assert_eq!(prepared.handle, br#"{"v":1,"db":"shop","label":"l","txn":18036}"#);
        assert_eq!(Handle::decode(&prepared.handle).unwrap(), Handle { v: 1, db: "shop".into(), label: "l".into(), txn: 18_036 });
    }

    #[test]
    fn every_condition_counts() {
        use ErrorKind::{BadData, Conflict, Refused, Unavailable};
        type Change = fn(&mut LoadReply);
        let cases: [(&str, Change, ErrorKind); 11] = [
            ("status", |load| load.status = "OK".into(), Unavailable),
            ("fail", |load| load.status = "Fail".into(), Unavailable),
            ("label exists", |load| load.status = "Label Already Exists".into(), Conflict),
            ("auto-committed", |load| load.two_phase_commit = "false".into(), Conflict),
            ("group commit", |load| load.two_phase_commit.clear(), Conflict),
            ("no transaction", |load| load.txn_id = -1, Refused),
            ("transaction zero", |load| load.txn_id = 0, Refused),
            ("another label", |load| load.label = "m".into(), Refused),
            ("filtered", |load| load.number_filtered_rows = 1, BadData),
            ("too few", |load| load.number_total_rows = 99, BadData),
            ("too many", |load| load.number_total_rows = 101, BadData),
        ];
        for (case, change, kind) in cases {
            let mut load = good();
            change(&mut load);
            assert_eq!(prepared(&load, "shop", "l", 100, false).unwrap_err().kind, kind, "{case}");
        }
    }

    #[test]
    fn filtered_rows_pass_only_where_allowed() {
        let load = LoadReply { number_filtered_rows: 3, ..good() };
        assert!(prepared(&load, "shop", "l", 100, true).is_ok());
        assert!(prepared(&load, "shop", "l", 97, true).is_err());
    }

    #[test]
    fn handles_of_others_are_not_guessed_at() {
        for bytes in [&b""[..], b"{}", b"18036", br#"{"v":1,"db":"d","label":"l","txn":-1}"#] {
            assert_eq!(Handle::decode(bytes).unwrap_err().kind, ErrorKind::Broken);
        }
        assert_eq!(Handle::decode(br#"{"v":2,"db":"d","label":"l","txn":5}"#).unwrap_err().kind, ErrorKind::Refused);
    }
}
