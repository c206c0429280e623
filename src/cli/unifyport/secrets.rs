//! The secrets that sign and verify: those of an endpoint, or one of a variable.

use std::fmt;

use super::Input;
use crate::cli::context::{Context, Usage};
use crate::config::{Config, Secret, Unifyport};

/// At least one secret, and whose they are.
#[derive(Debug)]
pub(super) struct Secrets {
    /// In the order of the configuration. Private parts of it are never printed.
    pub(super) all: Vec<Secret>,
    from: String,
}

impl Secrets {
    /// The one that signs.
    pub(super) fn first(&self) -> &[u8] {
        self.all.first().map_or(b"", |secret| secret.expose().as_bytes())
    }

    /// What to call the secret at this position.
    pub(super) fn name(&self, position: usize) -> String {
        if self.all.len() == 1 {
            return format!("the secret of {}", self.from);
        }
        format!("secret {} of {}", position + 1, self.from)
    }
}

impl fmt::Display for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.all.len();
        write!(f, "{count} secret{} of {}", if count == 1 { "" } else { "s" }, self.from)
    }
}

/// The secret of `--secret-env`, for which no configuration is needed, else those of the endpoint.
pub(super) fn of(input: &Input, context: &Context) -> anyhow::Result<Secrets> {
    let Some(name) = &input.secret_env else {
        let config = context.config()?;
        let endpoint = endpoint(&config, input)?;
        let from = format!("the endpoint {}", endpoint.name);
        return Ok(Secrets { all: endpoint.secrets.clone(), from });
    };
    let value = context.env.get(name).and_then(|value| value.to_str()).unwrap_or_default();
    if value.trim().is_empty() {
        return Err(Usage(format!(
            "--secret-env names {name:?}, which is no environment variable with a text in it; put \
             the secret there"
        ))
        .into());
    }
    Ok(Secrets { all: vec![Secret::new(value)], from: format!("the environment's {name}") })
}

/// The endpoint that is named, else the first.
pub(super) fn endpoint<'a>(config: &'a Config, input: &Input) -> anyhow::Result<&'a Unifyport> {
    let endpoints = &config.unifyport;
    let names: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
    let fault = match &input.endpoint {
        _ if endpoints.is_empty() => {
            "no endpoint is configured: name the variable that holds the secret with --secret-env, \
             set INBOXD_UNIFYPORT_SECRET, or write a [[unifyport]] table into the config file"
                .to_owned()
        }
        Some(name) => match endpoints.iter().find(|endpoint| endpoint.name == *name) {
            Some(endpoint) => return Ok(endpoint),
            None => format!("no endpoint {name:?} is configured; there is {}", names.join(", ")),
        },
        None => return Ok(&endpoints[0]),
    };
    Err(Usage(fault).into())
}
