//! A component whose description is far larger than any host should take.

contract::export_describe!(super::describe);

fn describe() -> contract::types::Description {
    let mut description = contract::description("describe-huge");
    description.documentation = "x".repeat(50_000_000);
    description
}
