//! The three JSON dialects of Doris: the load reply, the two-phase reply and the FE's own.
//!
//! Shapes: Apache Doris at commit 82bd980a6a, `stream_load_context.cpp` (`to_json`), `stream_load_2pc.cpp`,
//! `RestBaseResult.java`, `ResponseEntityBuilder.java`.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Serializer, Value, json};

use crate::options::Dialect;
use crate::types::TransactionState;

/// `Status` of a load reply; there are exactly these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadStatus {
    Success,
    PublishTimeout,
    LabelAlreadyExists(TransactionState),
    Fail,
}

/// The reply to a load.
#[derive(Debug, Clone)]
pub(crate) struct LoadReply {
    /// -1 when nothing was begun.
    pub(crate) transaction: i64,
    pub(crate) label: String,
    pub(crate) comment: String,
    pub(crate) two_phase: bool,
    pub(crate) status: LoadStatus,
    pub(crate) message: String,
    pub(crate) total_rows: u64,
    pub(crate) loaded_rows: u64,
    pub(crate) filtered_rows: u64,
    pub(crate) load_bytes: u64,
    pub(crate) times: LoadTimes,
    pub(crate) error_url: Option<String>,
    pub(crate) first_error: Option<String>,
}

/// Durations in a load reply, milliseconds of real time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoadTimes {
    pub(crate) load: u64,
    pub(crate) begin: u64,
    pub(crate) receive: u64,
    pub(crate) commit: u64,
}

impl LoadReply {
    /// The reply as text: four blanks of indentation and a line feed at the end.
    pub(crate) fn text(&self, dialect: Dialect) -> String {
        let newest = matches!(dialect, Dialect::V4_0 | Dialect::Cloud);
        let mut reply = Map::new();
        let mut put = |name: &str, value: Value| {
            reply.insert(name.to_owned(), value);
        };
        put("TxnId", self.transaction.into());
        put("Label", self.label.as_str().into());
        if dialect != Dialect::V1 {
            put("Comment", self.comment.as_str().into());
        }
        put("TwoPhaseCommit", if self.two_phase { "true" } else { "false" }.into());
        put("Status", self.status.name().into());
        if let LoadStatus::LabelAlreadyExists(state) = self.status {
            put("ExistingJobStatus", existing_job_status(state).into());
        }
        put("Message", self.message.as_str().into());
        put("NumberTotalRows", self.total_rows.into());
        put("NumberLoadedRows", self.loaded_rows.into());
        put("NumberFilteredRows", self.filtered_rows.into());
        put("NumberUnselectedRows", 0.into());
        put("LoadBytes", self.load_bytes.into());
        put("LoadTimeMs", self.times.load.into());
        put("BeginTxnTimeMs", self.times.begin.into());
        put("StreamLoadPutTimeMs", 0.into());
        put("ReadDataTimeMs", self.times.receive.into());
        put("WriteDataTimeMs", self.times.receive.into());
        if newest {
            put("ReceiveDataTimeMs", self.times.receive.into());
        }
        put("CommitAndPublishTimeMs", self.times.commit.into());
        if let Some(url) = &self.error_url {
            put("ErrorURL", url.as_str().into());
        }
        if let Some(error) = self.first_error.as_ref().filter(|_| newest) {
            put("FirstErrorMsg", error.as_str().into());
        }
        pretty(&Value::Object(reply)) + "\n"
    }
}

impl LoadStatus {
    fn name(&self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::PublishTimeout => "Publish Timeout",
            Self::LabelAlreadyExists(_) => "Label Already Exists",
            Self::Fail => "Fail",
        }
    }
}

fn existing_job_status(state: TransactionState) -> &'static str {
    match state {
        TransactionState::Prepare | TransactionState::Aborted => "RUNNING",
        TransactionState::Precommitted => "PRECOMMITTED",
        TransactionState::Committed | TransactionState::Visible => "FINISHED",
    }
}

/// The reply to a two-phase operation: lower-case keys, no line feed at the end. `code` is a status code name; the first
/// versions had words of their own for it.
pub(crate) fn two_phase(code: &str, message: &str, dialect: Dialect) -> String {
    let status = match (code, dialect) {
        ("ANALYSIS_ERROR", Dialect::V1) => "Analysis error",
        ("INTERNAL_ERROR", Dialect::V1) => "Internal error",
        (code, Dialect::V1) if code != "Success" => "Fail",
        (code, _) => code,
    };
    pretty(&json!({ "status": status, "msg": message }))
}

/// The FE's reply to a load that it does not redirect.
pub(crate) fn rest_failure(message: &str) -> String {
    json!({ "status": "FAILED", "msg": message }).to_string()
}

/// The FE's reply to everything else; `code` 0 is success, 1 a common error, 401 a refused user.
pub(crate) fn entity(message: &str, code: u32, data: Value) -> String {
    json!({ "msg": message, "code": code, "data": data, "count": 0 }).to_string()
}

fn pretty(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b"    "));
    // Writing a value to memory cannot fail.
    value.serialize(&mut serializer).ok();
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Dialect, LoadReply, LoadStatus, LoadTimes, two_phase};
    use crate::types::TransactionState;

    #[test]
    fn a_load_reply_has_the_fields_of_its_dialect_in_order() {
        let reply = LoadReply {
            transaction: -1,
            label: "L".to_owned(),
            comment: String::new(),
            two_phase: true,
            status: LoadStatus::LabelAlreadyExists(TransactionState::Precommitted),
            message: "M".to_owned(),
            total_rows: 0,
            loaded_rows: 0,
            filtered_rows: 0,
            load_bytes: 0,
            times: LoadTimes::default(),
            error_url: None,
            first_error: None,
        };
        let start = "{\n    \"TxnId\": -1,\n    \"Label\": \"L\",\n";
        let comment = "    \"Comment\": \"\",\n";
        let middle = "    \"TwoPhaseCommit\": \"true\",\n    \"Status\": \"Label Already Exists\",\n    \
                      \"ExistingJobStatus\": \"PRECOMMITTED\",\n    \"Message\": \"M\",\n    \"NumberTotalRows\": 0,\n    \
                      \"NumberLoadedRows\": 0,\n    \"NumberFilteredRows\": 0,\n    \"NumberUnselectedRows\": 0,\n    \
                      \"LoadBytes\": 0,\n    \"LoadTimeMs\": 0,\n    \"BeginTxnTimeMs\": 0,\n    \
                      \"StreamLoadPutTimeMs\": 0,\n    \"ReadDataTimeMs\": 0,\n    \"WriteDataTimeMs\": 0,\n";
        let receive = "    \"ReceiveDataTimeMs\": 0,\n";
        let end = "    \"CommitAndPublishTimeMs\": 0\n}\n";
        assert_eq!(reply.text(Dialect::V4_0), format!("{start}{comment}{middle}{receive}{end}"));
        assert_eq!(reply.text(Dialect::V2_1), format!("{start}{comment}{middle}{end}"));
        assert_eq!(reply.text(Dialect::V1), format!("{start}{middle}{end}"));
    }

    #[test]
    fn a_two_phase_reply_has_no_line_feed_at_its_end() {
        let text = two_phase("Success", "transaction [18036] commit successfully.", Dialect::V4_0);
        assert_eq!(text, "{\n    \"status\": \"Success\",\n    \"msg\": \"transaction [18036] commit successfully.\"\n}");
        assert!(two_phase("ANALYSIS_ERROR", "m", Dialect::V1).contains("\"Analysis error\""));
    }
}
