//! Slow and simple readings of JSON, to hold the fast ones against, and JSON to read.

use proptest::prelude::*;
use serde_json::Value;

/// A reader of JSON text that allows any bytes from 0x80 on inside strings. It recurses, so it is
/// for shallow texts only.
pub(crate) struct Slow<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) at: usize,
}

/// A value with the bytes its strings stand for.
#[derive(Debug, PartialEq)]
pub(crate) enum Tree {
    /// A number, `true`, `false` or `null`, as it is written.
    Scalar(Vec<u8>),
    /// A string, decoded.
    Text(Vec<u8>),
    /// Elements, with where each stands.
    Array(Vec<(usize, usize, Tree)>),
    /// Members in their order.
    Object(Vec<(Vec<u8>, Tree)>),
}

/// Reads a whole text.
pub(crate) fn tree(text: &[u8]) -> Option<Tree> {
    let mut slow = Slow { text, at: 0 };
    slow.space();
    let tree = slow.value()?;
    slow.space();
    (slow.at == text.len()).then_some(tree)
}

impl Slow<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn is_next(&self, byte: u8) -> bool {
        self.text.get(self.at) == Some(&byte)
    }

    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(|b| b" \t\r\n".contains(b)) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<Tree> {
        match self.text.get(self.at)? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string().map(Tree::Text),
            _ => {
                // serde_json judges numbers and words; what is out of range is still a number.
                let rest = &self.text[self.at..];
                let length =
                    rest.iter().take_while(|b| b"+-.eE".contains(b) || b.is_ascii_alphanumeric());
                let word = &rest[..length.count()];
                serde_json::from_slice::<serde::de::IgnoredAny>(word).ok()?;
                self.at += word.len();
                Some(Tree::Scalar(word.to_vec()))
            }
        }
    }

    fn array(&mut self) -> Option<Tree> {
        self.at += 1;
        let mut elements = Vec::new();
        self.space();
        if self.is_next(b']') {
            self.at += 1;
            return Some(Tree::Array(elements));
        }
        loop {
            self.space();
            let start = self.at;
            let element = self.value()?;
            elements.push((start, self.at, element));
            self.space();
            match self.byte()? {
                b',' => {}
                b']' => return Some(Tree::Array(elements)),
                _ => return None,
            }
        }
    }

    fn object(&mut self) -> Option<Tree> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        if self.is_next(b'}') {
            self.at += 1;
            return Some(Tree::Object(members));
        }
        loop {
            self.space();
            let key = self.is_next(b'"').then(|| self.string())??;
            self.space();
            (self.byte()? == b':').then_some(())?;
            self.space();
            members.push((key, self.value()?));
            self.space();
            match self.byte()? {
                b',' => {}
                b'}' => return Some(Tree::Object(members)),
                _ => return None,
            }
        }
    }

    /// Collects UTF-16 units of escapes and raw bytes, then joins them.
    fn string(&mut self) -> Option<Vec<u8>> {
        self.at += 1;
        let mut decoded = Vec::new();
        let mut pending: Option<u32> = None;
        loop {
            let byte = self.byte()?;
            let unit = match byte {
                b'\\' => match self.byte()? {
                    b'u' => {
                        let digits = self.text.get(self.at..self.at + 4)?;
                        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                        self.at += 4;
                        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
                    }
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => 10,
                    b'r' => 13,
                    b't' => 9,
                    same @ (b'"' | b'\\' | b'/') => u32::from(same),
                    _ => return None,
                },
                0..0x20 => return None,
                _ => {
                    decoded.extend(pending.take().map(encode).unwrap_or_default());
                    if byte == b'"' {
                        return Some(decoded);
                    }
                    decoded.push(byte);
                    continue;
                }
            };
            match (pending.take(), unit) {
                (Some(high), 0xdc00..0xe000) => {
                    decoded.extend(encode(0x10000 + (high - 0xd800) * 0x400 + (unit - 0xdc00)));
                }
                (before, unit) => {
                    decoded.extend(before.map(encode).unwrap_or_default());
                    if (0xd800..0xdc00).contains(&unit) {
                        pending = Some(unit);
                    } else {
                        decoded.extend(encode(unit));
                    }
                }
            }
        }
    }
}

/// UTF-8 by its definition, surrogates included.
fn encode(c: u32) -> Vec<u8> {
    let byte = |value: u32| value.to_be_bytes()[3];
    match c {
        0..0x80 => vec![byte(c)],
        0x80..0x800 => vec![byte(0xc0 | c >> 6), byte(0x80 | c & 0x3f)],
        0x800..0x10000 => {
            vec![byte(0xe0 | c >> 12), byte(0x80 | c >> 6 & 0x3f), byte(0x80 | c & 0x3f)]
        }
        _ => vec![
            byte(0xf0 | c >> 18),
            byte(0x80 | c >> 12 & 0x3f),
            byte(0x80 | c >> 6 & 0x3f),
            byte(0x80 | c & 0x3f),
        ],
    }
}

/// How deeply a document is nested.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Documents whose objects use few different keys, so that lookups find something.
pub(crate) fn documents(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..2_000_000_100_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z]{1,8}".prop_map(Value::from),
        Just(Value::from("2026-06-08T12:34:56Z")),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            objects(inner, keys),
        ]
    })
}

/// Objects of the given values under the given keys, and now and then another.
pub(crate) fn objects(
    values: impl Strategy<Value = Value>,
    keys: &'static [&'static str],
) -> impl Strategy<Value = Value> {
    let key =
        prop_oneof![8 => prop::sample::select(keys).prop_map(str::to_owned), 1 => any::<String>()];
    proptest::collection::vec((key, values), 0..7)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Texts that are nearly JSON: pieces of it in any order, odd ones among them.
pub(crate) fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b" ",
        b"\n",
        b"\"a\"",
        b"\"id\"",
        b"\"\\u0069d\"",
        b"\"\"",
        b"\"\xff\"",
        b"\"\\ud83d\"",
        b"\"\\ud83d\\ude00\"",
        b"\"\\ude00\\ud83d\"",
        b"\"",
        b"\\",
        b"0",
        b"-1",
        b"1e5",
        b"1e999",
        b"01",
        b"1.",
        b"true",
        b"null",
        b"\"result\"",
        b"\"\\n\\\"\"",
        b"\"\\x\"",
        b"\x00",
        b"\xef\xbb\xbf",
        b"\"\xed\xa0\x80\"",
        b"\"\x01\"",
        b"{\"id\":\"x\"}",
        b"{\"result\":[1, {} ]}",
    ];
    proptest::collection::vec(prop::sample::select(PIECES), 0..12)
        .prop_map(|pieces| pieces.concat())
}

/// A text with some of its bytes replaced, removed or doubled.
pub(crate) fn mutated(texts: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    (texts, proptest::collection::vec(change, 0..3)).prop_map(|(mut text, changes)| {
        for (at, byte, change) in changes {
            if text.is_empty() {
                break;
            }
            let at = at.index(text.len());
            match change {
                0 => text[at] = byte,
                1 => drop(text.remove(at)),
                _ => text.insert(at, text[at]),
            }
        }
        text
    })
}
