//! The `inboxd` command.
fn main() {}
