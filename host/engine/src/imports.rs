//! What the host puts behind the imports of a plugin, where wasmtime's own is not what is wanted.

pub(crate) mod http;
pub(crate) mod log;
