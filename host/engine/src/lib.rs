//! The sandbox: load, check, limit, instantiate and call sink plugins.
