//! What a trap means, in words.

use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::code::Code;
use crate::error::Call;
use crate::limits::{MAX_MESSAGE_BYTES, MAX_TRANSFER_BYTES};
use crate::store::GrowthRefused;
use crate::text::clean_line;

/// How many functions of a crash are named, innermost first.
const FRAMES: usize = 4;
/// wasmtime has no public type for this error, so its text is what tells it. A test fails if it changes.
const TRANSFER_TEXT: &str = "fuel allocated for hostcalls has been exhausted";

/// The kind of a failure that is not the plugin's own answer, and a message.
pub(crate) fn explain(error: &wasmtime::Error, call: Call) -> (Code, String) {
    if let Some(refused) = error.downcast_ref::<GrowthRefused>() {
        let code = match refused {
            GrowthRefused::Memory { .. } => Code::PluginMemory,
            GrowthRefused::Table { .. } => Code::PluginTable,
        };
        return (code, refused.to_string());
    }
    // Frames are there if it happened while the plugin ran, and not if its result could not be taken.
    let backtrace = error.downcast_ref::<WasmBacktrace>().filter(|backtrace| !backtrace.frames().is_empty());
    let cause = clean_line(&error.root_cause().to_string(), MAX_MESSAGE_BYTES / 2);
    if cause.contains(TRANSFER_TEXT) {
        let limit_mib = MAX_TRANSFER_BYTES >> 20;
        return match (call, backtrace) {
            (Call::Precommit, None) => {
                let limit_kib = weir_protocol::MAX_HANDLE_BYTES >> 10;
                (Code::PluginHandleSize, format!("the handle is larger than {limit_mib} MiB; a handle has at most {limit_kib} KiB"))
            }
            _ => (Code::PluginTransfer, format!("it handed over more than {limit_mib} MiB in one call")),
        };
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return (Code::PluginTrap, format!("it ended itself with exit code {}{}", exit.0, at(backtrace)));
    }
    let code = match (call, backtrace) {
        (Call::Start, None) => Code::PluginStart,
        (_, None) if !error.is::<Trap>() => Code::PluginAnswer,
        _ => Code::PluginTrap,
    };
    match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => {
            (code, format!("it crashed: it gave up (a panic or an uncaught exception; see its log){}", at(backtrace)))
        }
        Some(Trap::StackOverflow) => (code, format!("it crashed: its stack overflowed{}", at(backtrace))),
        Some(Trap::MemoryOutOfBounds) => {
            (code, format!("it crashed: it reached outside its memory (a stack that overflowed, or a pointer gone wrong){}", at(backtrace)))
        }
        _ if code == Code::PluginAnswer => (code, format!("its answer is not a value of the contract: {cause}")),
        _ => (code, format!("it crashed: {cause}{}", at(backtrace))),
    }
}

/// The innermost functions by name, where the component still has names.
fn at(backtrace: Option<&WasmBacktrace>) -> String {
    let frames = backtrace.map(WasmBacktrace::frames).unwrap_or_default();
    let names: Vec<String> = frames.iter().filter_map(|frame| frame.func_name()).take(FRAMES).map(|name| clean_line(name, 120)).collect();
    if names.is_empty() { String::new() } else { format!(", in {}", names.join(" < ")) }
}
