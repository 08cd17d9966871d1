//! A component that traps in describe.

contract::export_describe!(super::describe);

fn describe() -> contract::types::Description {
    panic!("describe was asked to trap")
}
