//! One value of the configuration with its place, and the ways to read it.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::fault::Place;
use super::names::quote;
use super::read::Reader;
use super::units;

/// What a message calls a variable's value that cannot be shown.
const NOT_TEXT: &str = "a value that is not UTF-8";

/// A value as it was written.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Toml(&'a DeValue<'a>),
    /// The text of an environment variable; none if it is not UTF-8.
    Text(Option<&'a str>),
}

/// A value with its place.
pub(super) struct Node<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) value: Value<'a>,
    pub(super) place: Place,
    /// The path of its key.
    pub(super) path: String,
}

impl<'a> Node<'a> {
    /// A string. `like` is an example of it, quotes included.
    pub(super) fn text(&self, like: &str) -> Result<&'a str, String> {
        match self.value {
            Value::Text(Some(text)) => Ok(text),
            Value::Text(None) => Err(format!("{NOT_TEXT}; write it like {like}")),
            Value::Toml(DeValue::String(text)) => Ok(text),
            Value::Toml(other) => {
                Err(format!("{} is not a string; write it like {like}", a(other)))
            }
        }
    }

    pub(super) fn duration(&self) -> Result<Duration, String> {
        units::parse_duration(self.duration_text()?).map_err(|error| error.to_string())
    }

    fn duration_text(&self) -> Result<&'a str, String> {
        self.text("\"5m\" or \"300s\"")
    }

    /// A duration of `shortest` to `longest`.
    pub(super) fn duration_within(
        &self,
        shortest: Duration,
        longest: Duration,
    ) -> Result<Duration, String> {
        let text = self.duration_text()?;
        let duration = units::parse_duration_within(text, shortest, longest);
        duration.map_err(|error| error.to_string())
    }

    /// A duration longer than none at all.
    pub(super) fn duration_over_zero(&self) -> Result<Duration, String> {
        let duration = units::parse_duration_over_zero(self.duration_text()?);
        duration.map_err(|error| error.to_string())
    }

    /// A size of one byte or more.
    pub(super) fn size(&self) -> Result<u64, String> {
        let text = self.text("\"16MiB\"")?;
        match units::parse_size(text).map_err(|error| error.to_string())? {
            0 => Err("this cannot be zero; write a size like \"16MiB\"".to_owned()),
            size => Ok(size),
        }
    }

    /// A whole number of `least` to `most`.
    pub(super) fn number_within(&self, least: u64, most: u64) -> Result<u64, String> {
        let (number, written) = match self.value {
            Value::Text(text) => {
                let text = text.unwrap_or_default();
                (text.parse::<i128>().ok(), quote(text))
            }
            Value::Toml(DeValue::Integer(number)) => {
                (i128::from_str_radix(number.as_str(), number.radix()).ok(), number.to_string())
            }
            Value::Toml(other) => (None, a(other)),
        };
        match number {
            Some(n) => u64::try_from(n)
                .ok()
                .filter(|n| (least..=most).contains(n))
                .ok_or_else(|| format!("{written} is out of range; write from {least} to {most}")),
            None => Err(format!("{written} is not a whole number; write it like 20")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, String> {
        const REMEDY: &str = "is neither true nor false; write one of them";
        match self.value {
            Value::Toml(DeValue::Boolean(value)) => Ok(*value),
            Value::Text(Some("true")) => Ok(true),
            Value::Text(Some("false")) => Ok(false),
            Value::Text(text) => Err(format!("{} {REMEDY}", text.map_or(NOT_TEXT.into(), quote))),
            Value::Toml(other) => Err(format!("{} {REMEDY}", a(other))),
        }
    }

    /// One of a few words, each with what it stands for.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
        let words = words.join(" or ");
        let text = self.text(&words)?;
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, choice)) => Ok(*choice),
            None => Err(format!("{} is not known here; write {words}", quote(text))),
        }
    }

    /// The values of an array; `like` is an example of one.
    pub(super) fn items(&self, like: &str) -> Result<Vec<Node<'a>>, String> {
        match self.value {
            Value::Toml(DeValue::Array(items)) => {
                Ok(items.iter().enumerate().map(|(n, item)| self.item(n, item)).collect())
            }
            Value::Toml(other) => Err(format!("{} is not a list; write it like {like}", a(other))),
            Value::Text(_) => Err(format!("a text is not a list; write it like {like}")),
        }
    }

    /// The strings of an array, each at least one letter long; `like` is an example of the array.
    pub(super) fn texts(&self, like: &str) -> Result<Vec<String>, String> {
        let mut texts = Vec::new();
        for item in self.items(like)? {
            match item.text("\"name\"") {
                Ok("") => self.reader.fault(item.place, "this is empty; take it out or fill it in"),
                Ok(text) => texts.push(text.to_owned()),
                Err(message) => self.reader.fault(item.place, message),
            }
        }
        Ok(texts)
    }

    fn item(&self, n: usize, item: &'a Spanned<DeValue<'a>>) -> Node<'a> {
        let path = format!("{}[{n}]", self.path);
        let place = self.reader.place(&path, Some(item.span().start));
        Node { reader: self.reader, value: Value::Toml(item.get_ref()), place, path }
    }
}

/// The type of a value as a person calls it. The value itself is left out, because it may be a
/// secret at the wrong key.
fn a(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(_) => "an integer".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        other => format!("a {}", other.type_str()),
    }
}
