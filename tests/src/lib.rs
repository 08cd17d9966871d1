//! Tests over the whole: conformance, end to end, golden.
