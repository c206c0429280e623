//! The command line: one file a command group.

mod check;
mod context;
mod demo;
mod events;
mod migrate;
mod output;
mod serve;
mod sources;
mod table;
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
#[command(version, about, arg_required_else_help = true)]
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
    Check,
    /// Bring the store's schema up to date; `serve` does so too.
    #[command(after_help = "Example: INBOXD_STORE_URL=sqlite:inboxd.db inboxd migrate")]
    Migrate,
    /// Read the inbox.
    #[command(subcommand)]
    Events(events::Events),
    /// See the receivers that the store knows, or forget one.
    #[command(subcommand)]
    Sources(sources::Sources),
    /// Make, check or post a signed delivery.
    #[command(subcommand)]
    Unifyport(unifyport::Unifyport),
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
        Command::Check => check::check(&context.config()?).await,
        Command::Migrate => migrate::migrate(&context.config()?).await,
        Command::Events(command) => events::events(command, &context).await,
        Command::Sources(command) => sources::sources(command, &context).await,
        Command::Unifyport(command) => unifyport::unifyport(command, &context).await,
    }
}
