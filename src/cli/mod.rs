//! The command line: one file a command group.

mod check;
mod migrate;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Serve,
    /// Validate the configuration and look at the store, changing nothing.
    Check,
    /// Bring the store's schema up to date; `serve` does so too.
    Migrate,
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
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments, env: Env) -> anyhow::Result<()> {
    let file = Config::find(arguments.config.as_deref(), &env);
    let load = || Config::load(file.as_deref(), &env).map_err(anyhow::Error::from);
    match arguments.command {
        Command::Serve => serve::serve(load()?, file.clone(), env).await,
        Command::Check => check::check(&load()?).await,
        Command::Migrate => migrate::migrate(&load()?).await,
    }
}
