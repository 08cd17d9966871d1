//! The runtime: config, sources, driver, supervisor, command line.
fn main() {}
