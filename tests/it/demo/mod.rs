//! `inboxd demo`: the real binary, as a newcomer runs it.

mod keep;
mod run;

use std::process::Command;
use std::time::Duration;

use super::support::test_dir::TestDir;

/// For what takes a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);

/// `inboxd demo` with nothing of the tests' own configuration, and its temporary files in `folder`.
fn demo(folder: &TestDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_inboxd"));
    command.arg("demo").args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("INBOXD_") {
            command.env_remove(name);
        }
    }
    command.env("TMPDIR", folder.path()).current_dir(folder.path());
    command
}

/// Whether the demo has left nothing behind.
fn is_empty(folder: &TestDir) -> bool {
    std::fs::read_dir(folder.path()).unwrap().next().is_none()
}
