//! `[[unifyport]]`: the webhook endpoints.

use std::time::Duration;

use super::names::Taken;
use super::node::Node;
use super::read::Table;
use super::secret::{self, Secret};

/// `[[unifyport]]`: one endpoint, `POST /webhooks/unifyport/<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unifyport {
    /// The source's name and the last part of its path, unique among endpoints.
    pub name: String,
    /// The signing secrets, at least one and none of them blank. A delivery that any of them
    /// verifies is authentic; two allow for a change of secret without a loss. The key of the
    /// signature is a secret's UTF-8 bytes as they stand.
    pub secrets: Vec<Secret>,
    /// Allowed distance of a delivery's timestamp from now, both ways, longer than zero. 5 min.
    pub tolerance: Duration,
    /// What becomes of an authentic delivery outside the tolerance. Rejected.
    pub stale: Stale,
}

/// What becomes of an authentic delivery whose timestamp is outside the tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It is answered 401 and kept in quarantine.
    Reject,
    /// It is stored, if it is no older than the store's `identity_retention`.
    Accept,
}

impl Unifyport {
    /// An endpoint with every default.
    pub fn new(name: impl Into<String>, secrets: Vec<Secret>) -> Unifyport {
        Unifyport { name: name.into(), secrets, tolerance: TOLERANCE, stale: Stale::Reject }
    }
}

const TOLERANCE: Duration = Duration::from_secs(300);

pub(super) fn read(tables: Vec<Table<'_>>) -> Vec<Unifyport> {
    const SECRETS: &str = "write secrets = [{ env = \"NAME\" }], because nothing unsigned is ever \
                           accepted";
    let mut names = Taken::default();
    let mut endpoints = Vec::new();
    for mut table in tables {
        let name = names.read(&mut table);
        let secrets = table.must("secrets", SECRETS, |node| {
            let items = node.items("[{ env = \"NAME\" }]")?;
            if items.is_empty() {
                return Err(format!("there is no secret; {SECRETS}"));
            }
            Ok(secrets(items))
        });
        let tolerance = table.or("tolerance", TOLERANCE, Node::duration_over_zero);
        let stale = table.or("stale", Stale::Reject, |node| {
            node.choice(&[("reject", Stale::Reject), ("accept", Stale::Accept)])
        });
        if let (Some(name), Some(secrets)) = (name, secrets) {
            endpoints.push(Unifyport { name, secrets, tolerance, stale });
        }
        table.finish();
    }
    endpoints
}

/// The secrets that can be had; each of the others is a fault of its own.
fn secrets(items: Vec<Node<'_>>) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for node in items {
        match secret::read_credential(&node) {
            Ok(secret) => secrets.push(secret),
            Err(message) => node.reader.fault(node.place, message),
        }
    }
    secrets
}
