//! `inboxd man`.

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use super::Arguments;
use super::context::Usage;
use super::output::print;

/// Prints the manual page of the command that `path` names, or of `inboxd` itself.
pub(super) async fn man(path: &[String]) -> anyhow::Result<()> {
    print(page(path)?).await
}

fn page(path: &[String]) -> anyhow::Result<Vec<u8>> {
    let mut root = Arguments::command();
    // Gives every command its whole name and the arguments that all commands take.
    root.build();
    let source = format!("inboxd {}", root.get_version().unwrap_or_default());
    let mut command: &Command = &root;
    for name in path {
        let inner = command.find_subcommand(name);
        command = inner.ok_or_else(|| {
            Usage(format!(
                "there is no command \"inboxd {}\"; `inboxd --help` lists those there are",
                path.join(" ")
            ))
        })?;
    }
    let mut page = Vec::new();
    Man::new(command.clone()).source(source).manual("inboxd manual").render(&mut page)?;
    Ok(page)
}
