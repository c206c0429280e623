//! Reads tables of TOML, and the environment over them, so that every fault is kept with its
//! place and reading goes on after it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::env::Env;
use super::fault::{Fault, Faults, Place};
use super::names::{nearest, quote};
use super::node::{Node, Value};

/// What all tables share: where they come from, and what was found on the way.
pub(super) struct Reader<'a> {
    file: Option<(&'a Path, &'a str)>,
    env: &'a Env,
    /// What a credential that is not there comes to.
    pub(super) credentials: Credentials,
    faults: RefCell<Vec<Fault>>,
    /// The variables that the file names. They are the file's own, so they are neither overrides
    /// nor a quick start.
    named: RefCell<BTreeSet<String>>,
    /// The prefixes of the overridable tables, with the keys of each.
    overridable: RefCell<Vec<(&'static str, Vec<&'static str>)>>,
}

/// What a token or signing secret that is not there comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A fault.
    Needed,
    /// A text that stands in for it.
    StoodIn,
}

impl<'a> Reader<'a> {
    /// `file` is the path and the text of the config file.
    pub(super) fn new(
        file: Option<(&'a Path, &'a str)>,
        env: &'a Env,
        credentials: Credentials,
    ) -> Reader<'a> {
        Reader {
            file,
            env,
            credentials,
            faults: RefCell::default(),
            named: RefCell::default(),
            overridable: RefCell::default(),
        }
    }

    /// The topmost table.
    pub(super) fn root(&'a self, table: Option<&'a DeTable<'a>>) -> Table<'a> {
        let place = self.place("", None);
        Table { reader: self, table, path: String::new(), place, prefix: None, known: Vec::new() }
    }

    pub(super) fn fault(&self, place: Place, message: impl Into<String>) {
        self.faults.borrow_mut().push(Fault { place, message: message.into() });
    }

    /// All faults, in order, once everything has been read.
    pub(super) fn finish(self) -> Result<(), Faults> {
        // Only now, because a variable may turn out to be named by a later table.
        for (prefix, known) in self.overridable.take() {
            self.refuse_unknown_overrides(prefix, &known);
        }
        Faults::check(self.faults.into_inner())
    }

    /// The folder of the config file, from which the paths in it are taken.
    pub(super) fn folder(&self) -> &'a Path {
        self.file.and_then(|(path, _)| path.parent()).unwrap_or(Path::new(""))
    }

    /// The value of a variable that the file names.
    pub(super) fn variable(&self, name: &str) -> Option<&'a OsStr> {
        self.named.borrow_mut().insert(name.to_owned());
        self.env.get(name)
    }

    /// Whether the variable is set, and not one that the file names for a purpose of its own.
    pub(super) fn stands_alone(&self, name: &str) -> bool {
        self.env.get(name).is_some() && !self.named.borrow().contains(name)
    }

    /// A fault for each variable that begins with `prefix` and overrides none of the `known` keys.
    fn refuse_unknown_overrides(&self, prefix: &str, known: &[&str]) {
        for name in self.env.names() {
            let Some(key) = name.strip_prefix(prefix).map(str::to_ascii_lowercase) else {
                continue;
            };
            let is_override = known.contains(&key.as_str()) && variable(prefix, &key) == name;
            if is_override || !self.stands_alone(name) {
                continue;
            }
            let remedy = match nearest(&key, known) {
                Some(meant) => format!("did you mean {}?", variable(prefix, meant)),
                None => {
                    let known: Vec<String> =
                        known.iter().map(|key| variable(prefix, key)).collect();
                    format!("unset it, or use one of {}", known.join(", "))
                }
            };
            self.fault(
                Place::Environment(name.to_owned()),
                format!("this variable overrides no key; {remedy}"),
            );
        }
    }

    pub(super) fn place(&self, key: &str, offset: Option<usize>) -> Place {
        match self.file {
            None => Place::Default(key.to_owned()),
            Some((path, text)) => Place::File {
                file: path.to_owned(),
                line: offset.map(|offset| line_of(text, offset)),
                key: key.to_owned(),
            },
        }
    }
}

/// The variable that overrides `key`.
fn variable(prefix: &str, key: &str) -> String {
    format!("{prefix}{}", key.to_ascii_uppercase())
}

/// The line of the byte at `offset`, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// A table that is being read key by key, and then [finished](Table::finish).
pub(super) struct Table<'a> {
    pub(super) reader: &'a Reader<'a>,
    /// Where the table begins.
    pub(super) place: Place,
    /// The path of the table, empty for the topmost.
    pub(super) path: String,
    table: Option<&'a DeTable<'a>>,
    prefix: Option<&'static str>,
    known: Vec<&'static str>,
}

impl<'a> Table<'a> {
    /// Lets variables of this prefix, followed by a key in capitals, override single keys.
    pub(super) fn overridden_by(mut self, prefix: &'static str) -> Table<'a> {
        self.prefix = Some(prefix);
        self
    }

    /// The value at `key`, if there is one: of the environment, else of the file.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Node<'a>> {
        let written = self.written(key);
        let Some((name, value)) = self.overriding(key) else { return written };
        let value = Value::Text(value.to_str());
        let place = Place::Environment(name);
        Some(Node { reader: self.reader, value, place, path: self.path_of(key) })
    }

    /// The variable that overrides `key`, if it is set.
    pub(super) fn overriding(&self, key: &str) -> Option<(String, &'a OsStr)> {
        let name = variable(self.prefix?, key);
        let value = self.reader.env.get(&name)?;
        Some((name, value))
    }

    /// The value that the file has at `key`.
    pub(super) fn written(&mut self, key: &'static str) -> Option<Node<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let (_, value) = self.table?.get_key_value(key)?;
        Some(Node {
            reader: self.reader,
            value: Value::Toml(value.get_ref()),
            place: self.reader.place(&self.path_of(key), Some(value.span().start)),
            path: self.path_of(key),
        })
    }

    /// The value at `key` as `parse` reads it; `default` where there is none, or a fault.
    pub(super) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        parse: impl FnOnce(&Node<'a>) -> Result<T, String>,
    ) -> T {
        let Some(node) = self.get(key) else { return default };
        match parse(&node) {
            Ok(value) => value,
            Err(message) => {
                self.reader.fault(node.place, message);
                default
            }
        }
    }

    /// The value at `key` as `parse` reads it. Its absence is a fault, for which `remedy` says
    /// what to write; there is a fault whenever there is no value.
    pub(super) fn must<T>(
        &mut self,
        key: &'static str,
        remedy: &str,
        parse: impl FnOnce(&Node<'a>) -> Result<T, String>,
    ) -> Option<T> {
        let Some(node) = self.get(key) else {
            self.reader.fault(self.place.clone(), format!("the key {key} is missing; {remedy}"));
            return None;
        };
        parse(&node).map_err(|message| self.reader.fault(node.place, message)).ok()
    }

    /// The table at `key`, an empty one where there is none, or a fault.
    pub(super) fn table(&mut self, key: &'static str) -> Table<'a> {
        let node = self.get(key);
        let place = node.as_ref().map_or_else(|| self.place_of(key), |node| node.place.clone());
        let path = self.path_of(key);
        let mut table = None;
        match node.map(|node| node.value) {
            None => {}
            Some(Value::Toml(DeValue::Table(found))) => table = Some(found),
            Some(_) => {
                let message = format!("this is not a table; write it like {key} = {{ ... }}");
                self.reader.fault(place.clone(), message);
            }
        }
        Table { reader: self.reader, table, path, place, prefix: None, known: Vec::new() }
    }

    /// The tables of the array at `key`.
    pub(super) fn tables(&mut self, key: &'static str) -> Vec<Table<'a>> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let message = format!("this is not a list of tables; write [[{key}]], with two brackets");
        let Ok(items) = node.items("") else {
            self.reader.fault(node.place, message);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for Node { reader, value, place, path } in items {
            match value {
                Value::Toml(DeValue::Table(table)) => tables.push(Table {
                    reader,
                    table: Some(table),
                    path,
                    place,
                    prefix: None,
                    known: Vec::new(),
                }),
                _ => reader.fault(place, message.clone()),
            }
        }
        tables
    }

    /// Where the value of `key` stands, or would.
    pub(super) fn place_of(&mut self, key: &'static str) -> Place {
        if let Some(node) = self.get(key) {
            return node.place;
        }
        match &self.place {
            Place::File { file, line, .. } => {
                Place::File { file: file.clone(), line: *line, key: self.path_of(key) }
            }
            _ => Place::Default(self.path_of(key)),
        }
    }

    /// A fault for every key that nothing asked for.
    pub(super) fn finish(self) {
        for key in self.table.into_iter().flat_map(DeTable::keys) {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            let remedy = match nearest(name, &self.known) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("take it out; the keys here are {}", self.known.join(", ")),
            };
            let place = self.reader.place(&self.path_of(name), Some(key.span().start));
            self.reader.fault(place, format!("unknown key {}; {remedy}", quote(name)));
        }
        if let Some(prefix) = self.prefix {
            self.reader.overridable.borrow_mut().push((prefix, self.known));
        }
    }

    fn path_of(&self, key: &str) -> String {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key =
            if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quote(key) };
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }
}
