//! The command line: one file a command group.

mod check;
mod completions;
mod consumer;
mod consumers;
mod context;
mod dead;
mod demo;
mod events;
mod gaps;
mod man;
mod migrate;
mod openapi;
mod output;
mod replay;
mod requeue;
mod serve;
mod sources;
mod table;
mod telegram;
mod text;
mod time;
mod unifyport;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::context::{Context, Usage};
use crate::config::{Config, Env};
use crate::telemetry::{self, LogFormat};

/// One durable inbox for Telegram updates and UnifyPort deliveries.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    arg_required_else_help = true,
    after_help = "Example: inboxd demo\n\nEach command has its own --help."
)]
struct Arguments {
    /// The config file; else $INBOXD_CONFIG, else ./inboxd.toml if it is there.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// How to write the log; human on a terminal, JSON otherwise.
    #[arg(long, global = true, value_name = "FORMAT")]
    log: Option<Format>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Human,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the receivers, the inbox and the worker API.
    ///
    /// SIGTERM or SIGINT drains and exits; a second one stops at once. SIGHUP reads the
    /// configuration again.
    #[command(after_help = "Example: inboxd --config inboxd.toml serve")]
    Serve,
    /// Show the whole thing in one process, with everything outside of it simulated.
    ///
    /// Needs no account, no network and no configuration. The exit code is 0 if every count came
    /// out as it has to, 1 if not.
    #[command(after_help = "Example: inboxd demo --keep")]
    Demo(demo::Demo),
    /// Validate the configuration and look at the store, changing nothing.
    ///
    /// The exit code is 0 if all is well, 1 if a fault was found.
    #[command(after_help = "Example: inboxd --config inboxd.toml check")]
    Check(check::Check),
    /// Bring the store's schema up to date; `serve` does so too.
    #[command(after_help = "Example: INBOXD_STORE_URL=sqlite:inboxd.db inboxd migrate")]
    Migrate,
    /// Read the inbox.
    #[command(subcommand, after_help = "Example: inboxd events list --since 2h")]
    Events(events::Events),
    /// Make finished work due again: that of the events for which all that is given holds.
    ///
    /// Done and dead work becomes as new, behind all that waits. Unfinished work is left as it is.
    #[command(after_help = "Example: inboxd replay --since 2h --channel whatsapp")]
    Replay(replay::Replay),
    /// See work that no attempt finished, or make it due again.
    #[command(subcommand, after_help = "Example: inboxd dead list")]
    Dead(dead::Dead),
    /// See the receivers that the store knows, or forget one.
    #[command(subcommand, after_help = "Example: inboxd sources list")]
    Sources(sources::Sources),
    /// See the consumers and what waits for each; add, pause or remove one.
    #[command(subcommand, after_help = "Example: inboxd consumers list")]
    Consumers(consumers::Consumers),
    /// See possible losses, or take note of them.
    #[command(subcommand, after_help = "Example: inboxd gaps list")]
    Gaps(gaps::Gaps),
    /// See how the bots are, or remove a webhook.
    #[command(subcommand, after_help = "Example: inboxd telegram status")]
    Telegram(telegram::Telegram),
    /// Make, check or post a signed delivery.
    #[command(
        subcommand,
        after_help = "Example: echo '{\"type\":\"message.received\"}' | inboxd unifyport send"
    )]
    Unifyport(unifyport::Unifyport),
    /// Print the OpenAPI document of the private API.
    ///
    /// A running gateway serves the same at /v1/openapi.json.
    #[command(after_help = "Example: inboxd openapi > openapi.json")]
    Openapi,
    /// Print the script by which a shell completes commands and options.
    #[command(
        after_help = "Example: inboxd completions bash > ~/.local/share/bash-completion/completions/inboxd"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of inboxd or of one command.
    #[command(after_help = "Example: inboxd man events list | man -l -")]
    Man {
        /// The command, such as `events list`; inboxd itself if left out.
        command: Vec<String>,
    },
}

impl Command {
    /// What is logged if nobody says otherwise: a command that answers a person speaks for itself.
    fn usual_filter(&self) -> Option<&'static str> {
        if matches!(self, Command::Serve) { None } else { Some("warn") }
    }
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let format = match arguments.log {
        Some(Format::Human) => LogFormat::Human,
        Some(Format::Json) => LogFormat::Json,
        None => LogFormat::of_stderr(),
    };
    let env = Env::process();
    let filter = env.get(telemetry::FILTER_VARIABLE).and_then(|filter| filter.to_str());
    let filter = filter.or(arguments.command.usual_filter());
    let outcome = telemetry::init(format, filter).and_then(|()| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime?;
        let outcome = runtime.block_on(run(arguments, env));
        // Whatever still runs, a blocking call included, is not waited for.
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody reads it, the exit code has to do.
            let _ = writeln!(std::io::stderr(), "{error:#}");
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

async fn run(arguments: Arguments, env: Env) -> anyhow::Result<()> {
    let file = Config::find(arguments.config.as_deref(), &env);
    let context = Context { file, env };
    match arguments.command {
        Command::Serve => serve::serve(context.config()?, context.file, context.env).await,
        Command::Demo(arguments) => demo::demo(arguments).await,
        Command::Check(command) => check::check(command, &context.config()?).await,
        Command::Migrate => migrate::migrate(&context.config_to_look()?).await,
        Command::Events(command) => events::events(command, &context).await,
        Command::Replay(command) => replay::replay(command, &context).await,
        Command::Dead(command) => dead::dead(command, &context).await,
        Command::Sources(command) => sources::sources(command, &context).await,
        Command::Consumers(command) => consumers::consumers(command, &context).await,
        Command::Gaps(command) => gaps::gaps(command, &context).await,
        Command::Telegram(command) => telegram::telegram(command, &context).await,
        Command::Unifyport(command) => unifyport::unifyport(command, &context).await,
        Command::Openapi => openapi::openapi().await,
        Command::Completions { shell } => completions::completions(shell).await,
        Command::Man { command } => man::man(&command).await,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Arguments;

    /// The help of every command, by its whole name.
    fn helps(command: &clap::Command, above: &str, all: &mut Vec<(String, String)>) {
        let name = format!("{above}{}", command.get_name());
        let help = command.get_after_help().map(ToString::to_string);
        for inner in command.get_subcommands() {
            helps(inner, &format!("{name} "), all);
        }
        all.push((name, help.unwrap_or_default()));
    }

    #[test]
    fn every_command_has_an_example_that_can_be_typed() {
        let mut all = Vec::new();
        helps(&Arguments::command(), "", &mut all);
        assert!(all.len() > 15, "{all:?}");
        for (name, help) in all {
            let example = help.lines().next().and_then(|line| line.strip_prefix("Example:"));
            let example = example.unwrap_or_else(|| panic!("{name} has no example: {help:?}"));
            let typed = &example[example.find(" inboxd ").expect(example) + 1..];
            // What a shell makes of it is not ours.
            let end = [" | ", " > "].iter().filter_map(|end| typed.find(end)).min();
            let words = typed[..end.unwrap_or(typed.len())].split(' ');
            let matches = Arguments::command().try_get_matches_from(words);
            let matches = matches.unwrap_or_else(|error| panic!("{example}: {error}"));
            let mut inner = matches.subcommand();
            let mut command = "inboxd".to_owned();
            while let Some((name, matches)) = inner {
                command = format!("{command} {name}");
                inner = matches.subcommand();
            }
            assert!(command.starts_with(&name), "{name}: {example}");
        }
    }
}
