//! The runtime: config, sources, driver, supervisor, command line.
