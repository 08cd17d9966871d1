//! Every limit of this crate: what an operator may change as fields of [`Limits`], what nobody needs to as constants.

use std::time::Duration;

/// Largest plugin file, in bytes. A Python component is 18 MB.
pub const MAX_COMPONENT_BYTES: u64 = 256 * 1024 * 1024;
/// Longest `describe` and the instantiation before it.
pub const DESCRIBE_LIMIT: Duration = Duration::from_secs(20);
/// How often the thread that interrupts running plugins ticks: a plugin in a loop gives its thread back this often.
pub const EPOCH_TICK: Duration = Duration::from_millis(10);

/// Longest plugin name and version in a description, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// Longest summary in a description, in bytes.
pub const MAX_SUMMARY_BYTES: usize = 512;
/// Longest documentation in a description, in bytes.
pub const MAX_DOCUMENTATION_BYTES: usize = 256 * 1024;
/// Longest config schema in a description, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// Most handle formats, and most needs, in a description.
pub const MAX_DESCRIPTION_ITEMS: usize = 64;
/// Longest name of a handle format, in bytes.
pub const MAX_FORMAT_BYTES: usize = 64;
/// Longest target in a profile, in bytes. It is kept in the ledger.
pub const MAX_TARGET_BYTES: usize = 1024;
/// Longest message of an error, in bytes; the rest is cut.
pub const MAX_MESSAGE_BYTES: usize = 4096;
/// Longest target code of an error, in bytes; the rest is cut.
pub const MAX_TARGET_CODE_BYTES: usize = 128;
/// Longest reason of a rejection, in bytes; the rest is cut. Reasons are kept in the ledger.
pub const MAX_REASON_BYTES: usize = 1024;
/// Longest wait that a plugin can ask for before a retry.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);

/// Table elements of one instance, all tables together. StarlingMonkey, the largest seen, has some ten thousand.
pub const MAX_TABLE_ELEMENTS: usize = 1_000_000;
/// Core instances, memories and tables of one component instance, each. componentize-py makes some thirty.
pub const MAX_CORE_ITEMS: usize = 1_000;
/// Host objects (streams, requests, pollables) that an instance may hold at one time.
pub const MAX_RESOURCES: usize = 10_000;
/// What one call may carry from the plugin to the host, in bytes: results, and arguments of what it imports. The largest legitimate one is a
/// write of 1 MiB to a request body.
pub const MAX_TRANSFER_BYTES: usize = 8 * 1024 * 1024;
/// Random bytes in one call.
pub const MAX_RANDOM_BYTES: u64 = 64 * 1024;
/// Threads that one instance's file operations may use at one time.
pub const MAX_BLOCKING_THREADS: usize = 4;
/// How long closing an instance waits for work that it has under way on this machine.
pub const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// Longest log line, in bytes; the rest is cut.
pub const MAX_LOG_LINE_BYTES: usize = 8 * 1024;
/// How many of the last log lines an error carries.
pub const LOG_TAIL_LINES: usize = 20;
/// Log lines a second that an instance may write, and as many at once.
pub const LOG_LINES_PER_SECOND: u64 = 200;
/// Log bytes a second that an instance may write, and as many at once.
pub const LOG_BYTES_PER_SECOND: u64 = 256 * 1024;

/// Largest single write to a request body, in bytes, as wasi:http announces it to the plugin.
pub const HTTP_WRITE_BYTES: usize = 1024 * 1024;
/// Writes to a request body that wait for the connection at one time.
pub const HTTP_BUFFERED_WRITES: usize = 8;
/// Requests of one instance under way at one time.
pub const MAX_HTTP_REQUESTS: usize = 64;
/// How long connecting may take, TLS included, where the plugin does not say.
pub const HTTP_CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a target may take from the end of a request to the head of its response, where the plugin does not say.
pub const HTTP_FIRST_BYTE_LIMIT: Duration = Duration::from_secs(600);
/// How long a target may pause within a response, where the plugin does not say.
pub const HTTP_BETWEEN_BYTES_LIMIT: Duration = Duration::from_secs(60);
/// How long a connection may idle before it is no longer reused. Shorter than the usual keep-alive of servers, so that a request seldom meets
/// a connection that is just being closed.
pub const HTTP_IDLE_LIMIT: Duration = Duration::from_secs(4);
/// How long a request waits for an idle connection to say that it is ready, before another one is made.
pub const HTTP_REUSE_LIMIT: Duration = Duration::from_millis(50);

/// What an operator may limit, for each sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of one instance, in bytes, all its memories together. YAML: `limits.memory`. Default 256 MiB.
    pub memory_bytes: usize,
    /// Longest call. YAML: `limits.call`. Default 60 s. Also what the plugin is told in `setup.call-limit-ms`.
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 256 * 1024 * 1024, call: Duration::from_secs(60) }
    }
}
