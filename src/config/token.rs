//! `[[token]]`: who may use the private API, and for what.

use super::consumer::Consumer;
use super::names::{Taken, nearest, quote};
use super::node::Node;
use super::read::Table;
use super::secret::{self, Secret};

/// `[[token]]`: one bearer token of the private API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The name, unique among tokens; for logs.
    pub name: String,
    /// What a client sends after `Bearer`: visible ASCII, another for each token.
    pub value: Secret,
    /// What it permits.
    pub role: Role,
}

/// What a token permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The calls of consumers, effects, one event and its raw bytes.
    Worker {
        /// The only consumers it may call, at least one; none stands for all.
        consumers: Option<Vec<String>>,
    },
    /// Everything.
    Operator,
}

impl Role {
    /// Whether calls of the consumer `name` are permitted.
    pub fn permits_consumer(&self, name: &str) -> bool {
        match self {
            Role::Worker { consumers: Some(consumers) } => consumers.iter().any(|c| c == name),
            Role::Worker { consumers: None } | Role::Operator => true,
        }
    }
}

/// A role without what belongs to it.
#[derive(Clone, Copy, PartialEq)]
enum Word {
    Worker,
    Operator,
}

pub(super) fn read(tables: Vec<Table<'_>>, known: &[Consumer]) -> Vec<Token> {
    let mut names = Taken::default();
    let mut values: Vec<(String, Secret)> = Vec::new();
    let mut tokens = Vec::new();
    for mut table in tables {
        let name = names.read(&mut table);
        let value = table.must("value", "write value = { env = \"NAME\" }", |node| {
            let value = check_value(secret::read_credential(node)?)?;
            match secret::holder(&values, &value) {
                Some(holder) => {
                    Err(format!("the same value as {holder}; give every token a value of its own"))
                }
                None => Ok(value),
            }
        });
        let word = table.must("role", "write role = \"worker\" or \"operator\"", |node| {
            node.choice(&[("worker", Word::Worker), ("operator", Word::Operator)])
        });
        let consumers = table.or("consumers", None, |node| {
            if word == Some(Word::Operator) {
                return Err("an operator may call every consumer; take this out, or write role = \
                            \"worker\""
                    .to_owned());
            }
            consumers(node, known).map(Some)
        });
        if let Some(value) = &value {
            values.push((table.path.clone(), value.clone()));
        }
        if let (Some(name), Some(value), Some(word)) = (name, value, word) {
            let role = match word {
                Word::Worker => Role::Worker { consumers },
                Word::Operator => Role::Operator,
            };
            tokens.push(Token { name, value, role });
        }
        table.finish();
    }
    tokens
}

/// Passes what can stand in an `Authorization` header.
pub(super) fn check_value(value: Secret) -> Result<Secret, String> {
    if value.expose().bytes().all(|c| c.is_ascii_graphic()) {
        return Ok(value);
    }
    Err("a token is sent in a header, and this one has white space or other characters that \
         cannot stand there; make one of letters and digits"
        .to_owned())
}

fn consumers(node: &Node<'_>, known: &[Consumer]) -> Result<Vec<String>, String> {
    let known: Vec<&str> = known.iter().map(|consumer| consumer.name.as_str()).collect();
    let names = node.texts("[\"default\"]")?;
    if names.is_empty() {
        return Err("the list is empty; name a consumer, or leave the key out for all".to_owned());
    }
    for name in &names {
        if !known.contains(&name.as_str()) {
            let remedy = match nearest(name, &known) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None if known.is_empty() => "add a [[consumer]] of that name".to_owned(),
                None => format!("add a [[consumer]] of that name, or use {}", known.join(", ")),
            };
            return Err(format!("there is no consumer {}; {remedy}", quote(name)));
        }
    }
    Ok(names)
}
