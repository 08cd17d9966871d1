//! A component whose description says nothing that a host could use.

contract::export_describe!(super::describe);

fn describe() -> contract::types::Description {
    let mut description = contract::description("");
    description.version = "\u{1b}[31mnot a version\n".to_owned();
    description.config_schema = "{ this is not JSON".to_owned();
    description.needs = vec![contract::types::Need { name: "everything".to_owned(), why: String::new() }];
    description
}
