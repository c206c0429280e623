//! The `inboxd` command: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    inboxd::cli::main()
}
