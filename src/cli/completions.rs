//! `inboxd completions`.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use super::Arguments;
use super::output::print;

/// Prints the script by which `shell` completes what is typed.
pub(super) async fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "inboxd", &mut script);
    print(script).await
}
