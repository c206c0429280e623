//! `inboxd check`.

use clap::Args;
use serde::Serialize;

use super::output::print;
use super::telegram::ask;
use crate::config::Config;
use crate::source::Source;
use crate::store::StoreError;

#[derive(Debug, Args)]
pub(super) struct Check {
    /// Print what is found as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Something found out, for a person.
#[derive(Debug, Serialize)]
struct Finding {
    /// `configuration`, `store`, `consumers` or `telegram`.
    about: &'static str,
    /// How it is.
    kind: Kind,
    /// In a sentence.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Ok,
    /// Worth knowing, and no fault.
    Note,
    Fault,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Ok => "ok",
            Kind::Note => "note",
            Kind::Fault => "fault",
        }
    }
}

/// Looks at what the configuration names. That the configuration itself has no fault is known by
/// its having been loaded.
pub(super) async fn check(check: Check, config: &Config) -> anyhow::Result<()> {
    let mut findings = configuration(config);
    let sources = store(config, &mut findings).await;
    for bot in &config.telegram {
        let status = ask(bot, &sources).await?;
        let (kind, text) = match status.fault() {
            Some(fault) => (Kind::Fault, format!("{}: {fault}", bot.name)),
            None => (Kind::Ok, status.well()),
        };
        findings.push(Finding { about: "telegram", kind, text });
    }
    let faults = findings.iter().filter(|finding| finding.kind == Kind::Fault).count();
    if check.json {
        let json = serde_json::json!({ "ok": faults == 0, "findings": findings });
        print(format!("{json}\n")).await?;
    } else {
        for Finding { about, kind, text } in &findings {
            print(format!("{about:<14} {}: {text}\n", kind.name())).await?;
        }
    }
    match faults {
        0 => Ok(()),
        1 => anyhow::bail!("a fault was found"),
        _ => anyhow::bail!("{faults} faults were found"),
    }
}

fn configuration(config: &Config) -> Vec<Finding> {
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    };
    let bots = count(config.telegram.len(), "bot");
    let endpoints = count(config.unifyport.len(), "UnifyPort endpoint");
    let text = format!("{bots}, {endpoints}");
    let mut findings = vec![Finding { about: "configuration", kind: Kind::Ok, text }];
    if config.telegram.is_empty() && config.unifyport.is_empty() {
        let text = "there is nothing to receive, so `serve` will refuse to start".to_owned();
        findings.push(Finding { about: "configuration", kind: Kind::Note, text });
    }
    findings
}

/// What a look at the store shows, and the sources it knows.
async fn store(config: &Config, findings: &mut Vec<Finding>) -> Vec<Source> {
    let url = config.store.url.display();
    let mut found = |kind, text| findings.push(Finding { about: "store", kind, text });
    let store = match crate::open(config, false).await {
        Ok(store) => store,
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Unprepared(_))) => {
            found(Kind::Note, error.root_cause().to_string());
            return Vec::new();
        }
        Err(error) => {
            found(Kind::Fault, format!("{error:#}"));
            return Vec::new();
        }
    };
    let looked = async {
        let (notes, faults) = (store.notes().await?, store.audit().await?);
        let consumers = store.consumer_states(None).await?;
        Ok::<_, StoreError>((notes, faults, consumers, store.sources().await?))
    };
    let looked = looked.await;
    store.close().await;
    match looked {
        Ok((notes, faults, consumers, sources)) => {
            notes.into_iter().for_each(|note| found(Kind::Note, note));
            match faults.is_empty() {
                true => found(Kind::Ok, url),
                false => faults.into_iter().for_each(|fault| found(Kind::Fault, fault)),
            }
            let warnings = consumers.iter().filter_map(|consumer| consumer.warning());
            findings.extend(warnings.map(|text| Finding {
                about: "consumers",
                kind: Kind::Note,
                text,
            }));
            sources
        }
        Err(error) => {
            found(Kind::Fault, format!("{url} cannot be read: {error}"));
            Vec::new()
        }
    }
}
