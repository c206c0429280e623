//! The arguments of a call, read as leniently as the server reads them.
//!
//! Source: `HttpReader.cpp`, `misc.h` (`to_integer`) of `tdlib/td`; `Query.h`, `Client.cpp` of
//! `tdlib/telegram-bot-api`.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Name and value of each argument, the query string's before the body's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args(Vec<(String, String)>);

impl Args {
    /// Reads the query string, then the body. A body that cannot be read gives the arguments
    /// before the fault, often none; the reason is returned beside them, since the server only
    /// logs it.
    pub fn read(query: &str, content_type: &str, body: &[u8]) -> (Self, Option<&'static str>) {
        let mut args = Vec::new();
        read_form(query.as_bytes(), &mut args);
        if body.is_empty() {
            return (Self(args), None);
        }
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let fault = match media_type.to_ascii_lowercase().as_str() {
            "application/x-www-form-urlencoded" => {
                read_form(body, &mut args);
                None
            }
            "application/json" => {
                read_json(body, &mut args).err().map(|_| "the body is not a JSON object")
            }
            "multipart/form-data" => read_multipart(content_type, body, &mut args)
                .is_none()
                .then_some("the multipart body is malformed"),
            _ => Some("the body has a Content-Type that the server does not read"),
        };
        (Self(args), fault)
    }

    /// The first value given for `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Every argument in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// An integer argument: missing or empty is `default`, anything else is read by
    /// [`lenient_integer`] and then clamped.
    pub fn integer(&self, name: &str, default: i32, range: std::ops::RangeInclusive<i32>) -> i32 {
        let value = match self.get(name) {
            None | Some("") => default,
            Some(text) => lenient_integer(text),
        };
        value.clamp(*range.start(), *range.end())
    }

    /// A yes-or-no argument.
    pub fn flag(&self, name: &str) -> bool {
        let value = self.get(name).unwrap_or_default().to_ascii_lowercase();
        matches!(value.as_str(), "true" | "yes" | "1")
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Args {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// An optional `-`, then digits up to the first byte that is none, modulo 2^32: `12abc` is 12,
/// ` 5` is 0, `4294967295` is −1.
pub fn lenient_integer(text: &str) -> i32 {
    let digits = text.strip_prefix('-');
    let magnitude = digits
        .unwrap_or(text)
        .bytes()
        .map_while(|byte| byte.is_ascii_digit().then(|| u32::from(byte - b'0')))
        .fold(0u32, |value, digit| value.wrapping_mul(10).wrapping_add(digit));
    let value = magnitude.cast_signed();
    if digits.is_some() { value.wrapping_neg() } else { value }
}

fn read_form(form: &[u8], args: &mut Vec<(String, String)>) {
    for pair in form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = url_decoded(halves.next().unwrap_or_default());
        args.push((name, url_decoded(halves.next().unwrap_or_default())));
    }
}

fn url_decoded(text: &[u8]) -> String {
    let spaced: Vec<u8> =
        text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_encoding::percent_decode(&spaced).decode_utf8_lossy().into_owned()
}

/// Adds each member to `args` as it is met, so that those before a fault stay.
fn read_json(body: &[u8], args: &mut Vec<(String, String)>) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_slice(body);
    Members(args).deserialize(&mut json)?;
    json.end()
}

struct Members<'a>(&'a mut Vec<(String, String)>);

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let raw = map.next_value::<&RawValue>()?.get();
            // A string is unescaped; any other value is passed on as its text.
            let value = if raw.starts_with('"') {
                serde_json::from_str(raw).map_err(serde::de::Error::custom)?
            } else {
                raw.to_owned()
            };
            self.0.push((name, value));
        }
        Ok(())
    }
}

/// Fields of a multipart form; files are skipped, because no method here takes one.
fn read_multipart(content_type: &str, body: &[u8], args: &mut Vec<(String, String)>) -> Option<()> {
    let boundary = content_type.split("boundary=").nth(1)?.split(';').next()?.trim_matches('"');
    let delimiter = format!("--{boundary}");
    let body = String::from_utf8_lossy(body);
    let mut parts = body.split(delimiter.as_str()).skip(1);
    loop {
        let part = parts.next()?;
        if part.starts_with("--") {
            return Some(());
        }
        let (head, value) = part.strip_prefix("\r\n")?.split_once("\r\n\r\n")?;
        if head.contains("filename=") {
            continue;
        }
        let name = head.split("name=\"").nth(1)?.split('"').next()?;
        args.push((name.to_owned(), value.strip_suffix("\r\n")?.to_owned()));
    }
}
