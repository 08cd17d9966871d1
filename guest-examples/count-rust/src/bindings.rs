//! What the contract in `wit/` looks like in Rust, generated at compile time.
#![allow(missing_docs, unsafe_code, unreachable_pub, clippy::all, reason = "generated code has its own ways")]

use super::Component;

wit_bindgen::generate!({ path: "../../wit/since-v0.1.0", world: "plugin" });
export!(Component);
