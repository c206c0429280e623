//! `inboxd gaps`: possible losses, to be looked into and then acknowledged.

use clap::{Args, Subcommand};

use super::context::{Context, Usage};
use super::output::print;
use super::table::{Column, Table};
use super::time::short;
use crate::operate::gap;
use crate::source::Gap;

#[derive(Debug, Subcommand)]
pub(super) enum Gaps {
    /// List possible losses, newest first.
    #[command(after_help = "Example: inboxd gaps list --source support")]
    List {
        /// Only of the bot of this configured name.
        #[arg(long, value_name = "NAME")]
        source: Option<String>,
        /// Also those that were acknowledged.
        #[arg(long)]
        all: bool,
        /// At most so many.
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Print them as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Take note of possible losses: they stay listed with --all and are no longer counted.
    #[command(after_help = "Example: inboxd gaps acknowledge 3 4")]
    Acknowledge(Which),
}

#[derive(Debug, Args)]
pub(super) struct Which {
    /// Their numbers, from the first column of `gaps list`.
    ids: Vec<i64>,
    /// All of them.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

/// Runs one of these commands.
pub(super) async fn gaps(command: Gaps, context: &Context) -> anyhow::Result<()> {
    let config = context.config()?;
    context
        .with_store(&config, async |store| match command {
            Gaps::List { source, all, limit, json } => {
                // Those that are open may stand far behind those that are not.
                let gaps = store.gaps(source.as_deref(), usize::MAX).await?;
                let shown = |gap: &&Gap| all || gap.acknowledged_at.is_none();
                let gaps: Vec<&Gap> = gaps.iter().filter(shown).take(limit).collect();
                if json {
                    let gaps: Vec<_> = gaps.into_iter().map(gap).collect();
                    return print(format!("{}\n", serde_json::json!({ "gaps": gaps }))).await;
                }
                print(table(&gaps)).await
            }
            Gaps::Acknowledge(Which { ids, all }) => {
                if ids.is_empty() && !all {
                    let usage = "name the gaps by their numbers, or say --all";
                    return Err(Usage(usage.to_owned()).into());
                }
                let noted = store.acknowledge_gaps((!all).then_some(ids)).await?;
                print(format!("{noted} acknowledged\n")).await
            }
        })
        .await
}

fn table(gaps: &[&Gap]) -> String {
    if gaps.is_empty() {
        return "no possible loss is open\n".to_owned();
    }
    let mut table = Table::new([
        Column::number("GAP"),
        Column::text("NOTICED (UTC)", 19),
        Column::text("SOURCE", 16),
        Column::text("REASON", 8),
        Column::text("WHAT", usize::MAX),
    ]);
    let row = |gap: &&Gap| {
        let noticed = &gap.noticed;
        let what = match noticed.ids {
            Some((from, to)) if from == to => format!("update {from}"),
            Some((from, to)) => format!("updates {from} to {to}"),
            None => noticed.detail.clone(),
        };
        let reason = noticed.reason.name().to_owned();
        [gap.id.to_string(), short(noticed.to), gap.source.clone(), reason, what]
    };
    table.rows(&gaps.iter().map(row).collect::<Vec<_>>())
}
