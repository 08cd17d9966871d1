//! How an emulator is started, and what can be changed while it runs.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How to start an emulator.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder for journal, rows and error logs; created when missing. A second start continues with what is there.
    pub data: PathBuf,
    /// Master FE listeners, at least one. Port 0 takes a free one.
    pub fe: Vec<SocketAddr>,
    /// Follower FE listeners: they redirect loads like a master, and send questions about labels to the master.
    pub follower_fe: Vec<SocketAddr>,
    /// BE listeners, at least one.
    pub be: Vec<SocketAddr>,
    /// The listener of the control API.
    pub control: SocketAddr,
    /// The user every client must name; may load into every table.
    pub user: String,
    /// That user's password.
    pub password: String,
    /// Keep counts and hashes only, no rows, and check no values: for benchmarks.
    pub discard: bool,
    /// Limits, periods and dialect to start with.
    pub settings: Settings,
}

impl Options {
    /// One FE, one BE and the control port, each on a free port of 127.0.0.1; user `root` without password.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            data: data.into(),
            fe: vec![any],
            follower_fe: Vec::new(),
            be: vec![any],
            control: any,
            user: "root".to_owned(),
            password: String::new(),
            discard: false,
            settings: Settings::default(),
        }
    }
}

/// Whose wording and reply fields are spoken. Limits do not follow it; they are settings of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// Doris 1.x: statuses such as `Analysis error`, no code before a message, no two-phase commit by label.
    #[serde(rename = "1.x")]
    V1,
    /// Doris 2.0: codes, but no `TStatus:` and no two-phase commit by label.
    #[serde(rename = "2.0")]
    V2_0,
    /// Doris 2.1 and 3.0: `TStatus:`, two-phase commit by label.
    #[serde(rename = "2.1")]
    V2_1,
    /// Doris 4: the newest reply fields.
    #[default]
    #[serde(rename = "4.0")]
    V4_0,
    /// Compute-storage decoupled (cloud) mode of Doris 3 and later.
    #[serde(rename = "cloud")]
    Cloud,
}

/// Where an FE sends loads and two-phase operations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RedirectTarget {
    /// To the BEs in turn.
    #[default]
    RoundRobin,
    /// Always to the BE with this number, counted from 0.
    Backend(usize),
    /// To an address where nobody listens.
    Dead,
    /// To this `host:port`.
    Address(String),
}

/// Limits, periods and manners that a test changes at run time. Names and defaults are those of Doris where it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Wording and reply fields.
    pub dialect: Dialect,
    /// Life of a PREPARE transaction whose load has no `timeout` header, seconds.
    pub stream_load_default_timeout_second: u64,
    /// Largest accepted `timeout` header, seconds.
    pub max_stream_load_timeout_second: u64,
    /// Life of a PRECOMMITTED transaction, seconds; read when a transaction begins, and again at an FE restart.
    pub stream_load_default_precommit_timeout_second: u64,
    /// How long finished transactions and their labels are remembered, seconds.
    pub streaming_label_keep_max_second: u64,
    /// Finished transactions remembered for each database, whatever their age; -1 for any number.
    pub label_num_threshold: i64,
    /// PREPARE, PRECOMMITTED and COMMITTED transactions allowed at once in a database.
    pub max_running_txn_num_per_db: u64,
    /// How long a load without two-phase commit waits for its rows to become visible, seconds.
    pub publish_version_timeout_second: u64,
    /// Largest JSON document, bytes; for bodies with a Content-Length that are not read by line.
    pub streaming_load_json_max_bytes: u64,
    /// Largest body with a Content-Length, bytes.
    pub streaming_load_max_bytes: u64,
    /// Time between COMMITTED and VISIBLE, milliseconds of the emulated clock.
    pub publish_delay_ms: u64,
    /// The FE closes the connection without an answer when body bytes arrive before its redirect (Jetty 12).
    pub fe_early_close: bool,
    /// How long such an FE looks for body bytes before it answers, milliseconds of real time.
    pub fe_early_window_ms: u64,
    /// Where redirects point.
    pub redirect: RedirectTarget,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            stream_load_default_timeout_second: 259_200,
            max_stream_load_timeout_second: 259_200,
            stream_load_default_precommit_timeout_second: 3_600,
            streaming_label_keep_max_second: 43_200,
            label_num_threshold: 2_000,
            max_running_txn_num_per_db: 10_000,
            publish_version_timeout_second: 30,
            streaming_load_json_max_bytes: 100 << 20,
            streaming_load_max_bytes: 102_400 << 20,
            publish_delay_ms: 0,
            fe_early_close: false,
            fe_early_window_ms: 50,
            redirect: RedirectTarget::default(),
        }
    }
}

/// A user besides the one the emulator was started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Name, without `@cluster`.
    pub name: String,
    /// Password; empty for none.
    #[serde(default)]
    pub password: String,
    /// Whether the user has the LOAD privilege on every table.
    pub may_load: bool,
}
