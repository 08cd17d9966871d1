//! Doris's replies. Nearly all come with HTTP status 200, so the body alone says what happened, in one of three dialects:
//!
//! * a load: `{"TxnId": 1, "Status": "Success", …}` (BE, `stream_load_context.cpp`, `to_json`)
//! * two-phase commit, and a front end's refusal: `{"status": "…", "msg": "…"}` (BE, `stream_load_2pc.cpp`; FE, `RestBaseResult`)
//! * other calls of a front end, and its refusal of credentials: `{"code": 0, "msg": "…", "data": …}` (FE, `ResponseEntityBuilder`)
//!
//! Only one literal in the place where the asked question has its answer is success; everything else is not.

use serde::Deserialize;
use serde_json::Value;

use crate::error::words;
use crate::transport::Response;

/// What a reply is, before anybody asks whether it is good.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    /// A load's result.
    Load(Box<LoadReply>),
    /// `status` and `msg`.
    Short { status: String, msg: String },
    /// `code`, `msg` and `data`.
    Entity { code: i64, msg: String, data: Value },
    /// Not one of Doris's JSON replies: a proxy's page, a route that the server does not have, an HTTP error.
    Other { http_status: u16, text: String },
}

/// Result of a load. Fields that a version leaves out are empty or zero, which never reads as success.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct LoadReply {
    /// -1 when the transaction did not begin.
    pub(crate) txn_id: i64,
    pub(crate) label: String,
    /// The string "true" under two-phase commit.
    pub(crate) two_phase_commit: String,
    /// `Success`, `Publish Timeout`, `Label Already Exists` or `Fail`.
    pub(crate) status: String,
    /// Only with `Label Already Exists`.
    pub(crate) existing_job_status: String,
    pub(crate) message: String,
    pub(crate) number_total_rows: u64,
    pub(crate) number_filtered_rows: u64,
    pub(crate) begin_txn_time_ms: u64,
    pub(crate) stream_load_put_time_ms: u64,
    /// Where the rows that do not fit are listed.
    #[serde(rename = "ErrorURL")]
    pub(crate) error_url: String,
    /// Since Doris 4.0.
    pub(crate) first_error_msg: String,
}

impl Reply {
    /// Reads a response. Never fails: what cannot be read is [`Reply::Other`].
    pub(crate) fn of(response: &Response) -> Self {
        let text = String::from_utf8_lossy(&response.body);
        let other = || Self::Other { http_status: response.status, text: words(&text) };
        if response.status != 200 {
            return other();
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(fields)) if fields.contains_key("Status") => {
                serde_json::from_value(Value::Object(fields)).map_or_else(|_| other(), |load| Self::Load(Box::new(load)))
            }
            Ok(Value::Object(fields)) => match (fields.get("status"), fields.get("code").and_then(Value::as_i64)) {
                (Some(Value::String(status)), _) => Self::Short { status: status.clone(), msg: text_of(fields.get("msg")) },
                (_, Some(code)) => {
                    Self::Entity { code, msg: text_of(fields.get("msg")), data: fields.get("data").cloned().unwrap_or(Value::Null) }
                }
                _ => other(),
            },
            _ => other(),
        }
    }

    /// The reply in words, for a message.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Load(load) => words(&format!("{} {}", load.status, load.message)),
            Self::Short { status, msg } => words(&format!("{status} {msg}")),
            Self::Entity { code, msg, data } => words(&format!("{code} {msg} {}", text_of(Some(data)))),
            Self::Other { http_status, text } => words(&format!("HTTP {http_status} {text}")),
        }
    }
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// State of a label's latest transaction, as `GET /api/{db}/get_load_state` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LabelState {
    Prepare,
    Precommitted,
    /// Certain to become visible.
    Committed,
    Visible,
    Aborted,
    /// No transaction of that label is remembered.
    Unknown,
}

impl LabelState {
    /// `None` for a word that Doris's source does not have.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "PREPARE" => Self::Prepare,
            "PRECOMMITTED" => Self::Precommitted,
            "COMMITTED" => Self::Committed,
            "VISIBLE" => Self::Visible,
            "ABORTED" => Self::Aborted,
            "UNKNOWN" => Self::Unknown,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a panic is a failed test")]
    use super::*;

    fn of(body: &str) -> Reply {
        Reply::of(&Response { status: 200, location: None, body: body.as_bytes().to_vec() })
    }

    #[test]
    fn a_load_with_the_fields_of_the_documented_sample() {
        let Reply::Load(load) = of(r#"{
            "TxnId": 18036, "Label": "55c8ffc9-1c40-4d51-b75e-f2265b3602ef", "TwoPhaseCommit": "true", "Status": "Success",
            "Message": "OK", "NumberTotalRows": 100, "NumberLoadedRows": 100, "NumberFilteredRows": 0, "NumberUnselectedRows": 0,
            "LoadBytes": 1031, "LoadTimeMs": 77, "BeginTxnTimeMs": 1, "StreamLoadPutTimeMs": 1, "ReadDataTimeMs": 0,
            "WriteDataTimeMs": 58, "CommitAndPublishTimeMs": 0
        }"#) else {
            panic!("not a load")
        };
        assert_eq!((load.txn_id, load.number_total_rows, load.two_phase_commit.as_str()), (18_036, 100, "true"));
        assert_eq!((load.begin_txn_time_ms, load.stream_load_put_time_ms), (1, 1));
    }

    #[test]
    fn a_load_with_an_error_url_and_a_first_error() {
        let Reply::Load(load) = of(r#"{"TxnId": 3, "Status": "Fail", "Message": "[DATA_QUALITY_ERROR]too many filtered rows",
            "ErrorURL": "http://be:8040/api/_load_error_log?file=x", "FirstErrorMsg": "no partition"}"#)
        else {
            panic!("not a load")
        };
        assert_eq!(load.error_url, "http://be:8040/api/_load_error_log?file=x");
        assert_eq!(load.first_error_msg, "no partition");
    }

    #[test]
    fn group_commit_leaves_no_two_phase_commit() {
        let Reply::Load(load) = of(r#"{"TxnId": 3, "Label": "x", "GroupCommit": true, "Status": "Success"}"#) else { panic!("not a load") };
        assert_eq!(load.two_phase_commit, "");
    }

    #[test]
    fn the_other_dialects() {
        assert_eq!(
            of(r#"{"status":"FAILED","msg":"There is no 100-continue header"}"#),
            Reply::Short { status: "FAILED".into(), msg: "There is no 100-continue header".into() }
        );
        assert_eq!(
            of("{\n    \"status\": \"Success\",\n    \"msg\": \"transaction [18036] commit successfully.\"\n}"),
            Reply::Short { status: "Success".into(), msg: "transaction [18036] commit successfully.".into() }
        );
        assert_eq!(
            of(r#"{"msg":"Unauthorized","code":401,"data":"Access denied for user 'u@1.2.3.4'","count":0}"#),
            Reply::Entity { code: 401, msg: "Unauthorized".into(), data: "Access denied for user 'u@1.2.3.4'".into() }
        );
        assert_eq!(
            of(r#"{"msg":"success","code":0,"data":"VISIBLE","count":0}"#),
            Reply::Entity { code: 0, msg: "success".into(), data: "VISIBLE".into() }
        );
    }

    #[test]
    fn what_is_no_reply_of_doris() {
        for body in ["", "Not Found", "<html>", "[]", "null", "{}", r#"{"Status": 3}"#, r#"{"status": 1}"#, r#"{"TxnId": 4}"#] {
            assert!(matches!(of(body), Reply::Other { http_status: 200, .. }), "{body}");
        }
        let response = Response { status: 503, location: None, body: br#"{"Status": "Success"}"#.to_vec() };
        assert!(matches!(Reply::of(&response), Reply::Other { http_status: 503, .. }));
    }

    #[test]
    fn states() {
        assert_eq!(LabelState::parse("PRECOMMITTED"), Some(LabelState::Precommitted));
        assert_eq!(LabelState::parse("visible"), None);
    }
}
