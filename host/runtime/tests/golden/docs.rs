//! Documentation that is made from the code.

use weir::config::reference;

#[test]
fn the_reference_of_the_configuration_is_made_from_its_types() {
    super::compare(&super::root().join("docs/configuration.md"), &reference::markdown());
}

#[test]
fn the_reference_of_the_command_line_shows_the_help_of_every_command() {
    super::compare(&super::root().join("docs/cli.md"), &weir::cli::markdown());
}
