//! What must not compile: a commit or an abort without the right to it, or with one right twice. `TRYBUILD=overwrite` writes the compiler's
//! words anew.

#![allow(missing_docs, reason = "a test")]

#[test]
fn a_right_cannot_be_forged_copied_or_used_twice() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
