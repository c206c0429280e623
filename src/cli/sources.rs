//! `inboxd sources`: the receivers that the store knows.

use anyhow::Context as _;
use clap::Subcommand;

use super::context::Context;
use super::output::print;
use super::table::{Column, Table};
use super::text::line;
use super::time::short;
use crate::config::Config;
use crate::operate::shown;
use crate::source::{Source, SourceKind};

#[derive(Debug, Subcommand)]
pub(super) enum Sources {
    /// List the bots and endpoints that the store knows, and how each is.
    #[command(after_help = "Example: inboxd sources list")]
    List {
        /// Print them as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Let go of a bot or endpoint that the configuration no longer names.
    ///
    /// Its events stay in the inbox. Deliveries to a forgotten endpoint are answered 404, which
    /// drops them for good, in place of 503; a forgotten bot loses its place in its updates.
    #[command(after_help = "Example: inboxd sources forget unifyport/main")]
    Forget {
        /// Its name; telegram/NAME or unifyport/NAME where a bot and an endpoint share it.
        name: String,
    },
}

/// Runs one of these commands.
pub(super) async fn sources(command: Sources, context: &Context) -> anyhow::Result<()> {
    let config = context.config()?;
    context
        .with_store(&config, async |store| {
            let sources = store.sources().await?;
            match command {
                Sources::List { json: true } => {
                    let sources: Vec<_> = sources.into_iter().map(shown).collect();
                    let json = serde_json::json!({ "sources": sources });
                    print(format!("{json}\n")).await
                }
                Sources::List { json: false } => print(table(&sources)).await,
                Sources::Forget { name } => {
                    let source = named(&sources, &name)?;
                    refuse_configured(&config, source)?;
                    store.forget_source(source.id).await.with_context(|| {
                        format!("{} is not forgotten, since the store failed", path(source))
                    })?;
                    print(forgotten(source)).await
                }
            }
        })
        .await
}

/// A name that no other source has.
fn path(source: &Source) -> String {
    format!("{}/{}", source.kind.name(), source.name)
}

fn table(sources: &[Source]) -> String {
    let mut table = Table::new([
        Column::text("SOURCE", 28),
        Column::text("STATE", 12),
        Column::number("STORED"),
        Column::number("DUPLICATES"),
        Column::text("LAST RECEIVED (UTC)", usize::MAX),
    ]);
    let dash = || "-".to_owned();
    let row = |source: &Source| {
        let state = Some(source.state.name.clone()).filter(|state| !state.is_empty());
        [
            path(source),
            state.unwrap_or_else(dash),
            source.stored.to_string(),
            source.duplicates.to_string(),
            source.last_received_at.map_or_else(dash, short),
        ]
    };
    let mut text = table.rows(&sources.iter().map(row).collect::<Vec<_>>());
    let told = sources.iter().filter(|source| !source.state.detail.is_empty());
    for (n, source) in told.enumerate() {
        let gap = if n == 0 { "\n" } else { "" };
        text.push_str(&format!("{gap}{}: {}\n", path(source), line(&source.state.detail)));
    }
    text
}

fn named<'a>(sources: &'a [Source], name: &str) -> anyhow::Result<&'a Source> {
    let named: Vec<&Source> =
        sources.iter().filter(|source| source.name == name || path(source) == name).collect();
    match named.as_slice() {
        [source] => Ok(source),
        [] => anyhow::bail!(
            "the store knows no source {name:?}; `inboxd sources list` shows those it knows"
        ),
        [..] => {
            let paths: Vec<String> = named.iter().map(|source| path(source)).collect();
            anyhow::bail!("{name:?} is the name of several sources; write {}", paths.join(" or "))
        }
    }
}

/// The next start or SIGHUP of `serve` would bring it back.
fn refuse_configured(config: &Config, source: &Source) -> anyhow::Result<()> {
    let (configured, table, variable) = match source.kind {
        SourceKind::Telegram => (
            config.telegram.iter().any(|bot| bot.name == source.name),
            "[[telegram]]",
            "INBOXD_TELEGRAM_TOKEN",
        ),
        SourceKind::UnifyPort => (
            config.unifyport.iter().any(|endpoint| endpoint.name == source.name),
            "[[unifyport]]",
            "INBOXD_UNIFYPORT_SECRET",
        ),
    };
    anyhow::ensure!(
        !configured,
        "the configuration still names {}: take its {table} table out (or unset {variable}, if that \
         made it), let a running `serve` know by SIGHUP or a restart, then forget it",
        path(source)
    );
    Ok(())
}

fn forgotten(source: &Source) -> String {
    let (path, stored) = (path(source), source.stored);
    let then = match source.kind {
        SourceKind::Telegram => {
            "its bot id and its place in the updates are gone, and a bot that is given this name \
             begins with whatever Telegram still holds"
                .to_owned()
        }
        SourceKind::UnifyPort => format!(
            "deliveries to /webhooks/unifyport/{} are now answered 404, after which UnifyPort does \
             not try again",
            source.name
        ),
    };
    format!("{path} is forgotten: its events ({stored}) stay in the inbox; {then}\n")
}
