//! Secrets: they stand in an environment variable or a file of their own, never in the config.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use toml::de::{DeTable, DeValue};

use super::names::quote;
use super::node::{Node, Value};
use super::read::{Credentials, Reader};

/// Largest secret file read, because a wrong path may lead to a file of any size.
const LARGEST_FILE: u64 = 64 * 1024;

/// A secret text. It has no `Display` and no `Serialize`, `Debug` shows nothing of it, and its
/// memory is overwritten when it is dropped.
///
/// One that [`Config::load`](super::Config::load) made is not blank.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Holds `text` from here on.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(SecretString::from(text.into()))
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    /// Takes the same time for all secrets of one length.
    fn eq(&self, other: &Secret) -> bool {
        self.expose().as_bytes().ct_eq(other.expose().as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The path of the table among `earlier` that has the same secret.
pub(super) fn holder<'a>(earlier: &'a [(String, Secret)], secret: &Secret) -> Option<&'a str> {
    earlier.iter().find(|(_, other)| other == secret).map(|(path, _)| path.as_str())
}

/// Reads `{ env = "NAME" }` or `{ file = "path" }`. No message holds the value of anything that
/// might be the secret itself.
pub(super) fn read(node: &Node<'_>) -> Result<Secret, String> {
    match node.value {
        Value::Toml(DeValue::Table(table)) => from_table(node.reader, table),
        _ => Err("a secret is never written in the file; put it in an environment variable and \
                  write { env = \"NAME\" }, or in a file and write { file = \"path\" }"
            .to_owned()),
    }
}

/// Reads the same where it is a credential, which [`Credentials::StoodIn`] may do without.
pub(super) fn read_credential(node: &Node<'_>) -> Result<Secret, String> {
    match read(node) {
        Err(_) if node.reader.credentials == Credentials::StoodIn && names_one(node) => {
            Ok(stand_in())
        }
        read => read,
    }
}

/// Whether the node is a table such as `{ env = "NAME" }`, whatever is behind it.
fn names_one(node: &Node<'_>) -> bool {
    let Value::Toml(DeValue::Table(table)) = node.value else { return false };
    let mut entries = table.iter();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else { return false };
    matches!(key.get_ref().as_ref(), "env" | "file")
        && matches!(value.get_ref(), DeValue::String(_))
}

/// A text of the form of any credential, another each time, that nobody else can have.
fn stand_in() -> Secret {
    let random: [u8; 32] = rand::random();
    Secret::new(format!("0:{}", hex::encode(random)))
}

fn from_table(reader: &Reader<'_>, table: &DeTable<'_>) -> Result<Secret, String> {
    const REMEDY: &str = "write { env = \"NAME\" } or { file = \"path\" }";
    let mut entries = table.iter();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else {
        return Err(format!("a secret has exactly one of the keys env and file; {REMEDY}"));
    };
    let DeValue::String(text) = value.get_ref() else {
        return Err(format!("a secret is named by a string; {REMEDY}"));
    };
    match key.get_ref().as_ref() {
        "env" => from_variable(reader, text),
        "file" => from_file(&reader.folder().join(text.as_ref())),
        other => Err(format!("unknown key {} in a secret; {REMEDY}", quote(other))),
    }
}

/// The value of the environment variable `name`, which the file or a quick start names.
pub(super) fn from_variable(reader: &Reader<'_>, name: &str) -> Result<Secret, String> {
    let mut letters = name.bytes();
    let good = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == b'_');
    if !good {
        // The text is not repeated, because whoever put the secret itself here must not find it
        // in a log.
        return Err("what stands after env is not the name of an environment variable; write the \
                    name, like { env = \"MY_SECRET\" }, and put the secret in that variable"
            .to_owned());
    }
    let Some(value) = reader.variable(name) else {
        return Err(format!("the environment variable {name} is not set; set it"));
    };
    match value.to_str() {
        Some(text) if text.trim().is_empty() => {
            Err(format!("the environment variable {name} is empty; put the secret in it"))
        }
        Some(text) => Ok(Secret::new(text)),
        None => Err(format!(
            "the environment variable {name} holds bytes that are not UTF-8; a secret is text"
        )),
    }
}

/// The text of the file `path`, without one trailing line break, since an editor puts it there.
fn from_file(path: &Path) -> Result<Secret, String> {
    let name = quote(&path.to_string_lossy());
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(format!(
            "the file {name} cannot be read ({error}); create it, correct its path, or permit \
             inboxd to read it"
        ));
    }
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(format!(
            "the file {name} is over 64KiB; name a file that holds the secret alone"
        ));
    }
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => {
            return Err(format!(
                "the file {name} holds bytes that are not UTF-8; a secret is text"
            ));
        }
    };
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.trim().is_empty() {
        return Err(format!("the file {name} is empty; put the secret in it"));
    }
    Ok(Secret::new(text))
}
