//! The contract's types and exports, generated once for all test components.

/// What the contract in `wit/` looks like in Rust.
#[allow(missing_docs, unsafe_code, unreachable_pub, clippy::all, reason = "generated code has its own ways")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/since-v0.1.0",
        world: "plugin",
        pub_export_macro: true,
        default_bindings_module: "contract::bindings",
    });
}

pub use bindings::exports::weir::sink::sink::Guest;
pub use bindings::weir::sink::types;

/// A description that is in order, to be spoilt where a test wants it.
pub fn description(name: &str) -> types::Description {
    types::Description {
        name: name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        summary: "A test component.".to_owned(),
        documentation: String::new(),
        config_schema: r#"{"type":"object"}"#.to_owned(),
        guarantee: types::Guarantee::ExactlyOnce,
        handle_formats: vec!["test/1".to_owned()],
        needs: Vec::new(),
    }
}

/// Exports a component whose `describe` is the given function. It gets no further: every other call is the error `refused`.
#[macro_export]
macro_rules! export_describe {
    ($describe:path) => {
        mod component {
            #![allow(unsafe_code, missing_docs, reason = "generated code has its own ways")]
            use $crate::types::{Description, Error, ErrorKind, Prepared, Profile, RecordBatch, Rejection, Setup, Transaction, Verdict};

            struct Component;
            $crate::bindings::export!(Component with_types_in $crate::bindings);

            fn refused<T>() -> Result<T, Error> {
                let message = "only describe is of interest here".to_owned();
                Err(Error { kind: ErrorKind::Refused, message, code: String::new(), retry_after_ms: 0 })
            }

            impl $crate::Guest for Component {
                fn describe() -> Description {
                    $describe()
                }
                fn open(_: Setup) -> Result<Profile, Error> {
                    refused()
                }
                fn begin(_: Transaction) -> Result<(), Error> {
                    refused()
                }
                fn invoke(_: String, _: RecordBatch) -> Result<Vec<Rejection>, Error> {
                    refused()
                }
                fn precommit(_: String) -> Result<Prepared, Error> {
                    refused()
                }
                fn commit(_: Transaction, _: Vec<u8>) -> Result<Verdict, Error> {
                    refused()
                }
                fn abort(_: Transaction) -> Result<(), Error> {
                    refused()
                }
            }
        }
    };
}
