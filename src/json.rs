//! Reading JSON text that may be odd: of any depth, with bytes that are not UTF-8, with lone
//! surrogates. Nothing here recurses, panics, or changes a byte.
//!
//! What comes from outside is stored whatever it holds, and the little we need of it must be found
//! even where a JSON parser would give up. So these functions walk the text instead of building a
//! document. All of them take a text only if the whole of it has the form of JSON, with one
//! exception: a string may hold any bytes from 0x80 on. Of duplicate keys the last one counts, as
//! with `serde_json` and most readers.

mod escapes;
mod scan;

use std::{borrow::Cow, ops::Range};

use scan::{Cursor, Found};

/// The deepest nesting that [`portable`] allows. Some readers stop at 128, counted in their own
/// way, and what we send wraps the document a few levels deeper.
const PORTABLE_DEPTH: usize = 100;

/// Whether every common JSON reader takes this text: it is UTF-8 without a byte order mark, it is
/// JSON, every escaped surrogate has its other half, nesting is at most 100 deep, and every number
/// is within the range of a double. Duplicate keys are fine.
#[must_use]
pub fn portable(text: &[u8]) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.space();
    let value = cursor.value(&mut |found| match found {
        Found::Depth(depth) => depth <= PORTABLE_DEPTH,
        Found::Text(span) => escapes::lone_surrogates(&text[span]).next().is_none(),
        Found::Number(span) => as_str(&text[span])
            .and_then(|number| number.parse::<f64>().ok())
            .is_some_and(f64::is_finite),
    });
    value.and_then(|_| cursor.end()).is_some() && as_str(text).is_some()
}

/// The string that a top-level member holds, with its escapes decoded.
///
/// `None` if the text is not one whole JSON object, has no such member, or the member is not a
/// string. Bytes that are not UTF-8 are returned as they are, and a lone surrogate as the three
/// bytes UTF-8 would give it (WTF-8), so two ids that differ in the text differ here.
#[must_use]
pub fn top_level_string<'a>(text: &'a [u8], key: &str) -> Option<Cow<'a, [u8]>> {
    let [value] = members(text, [key])?;
    string(value?)
}

/// The spans of the elements of an array that is a top-level member, each without the space around
/// it, as positions in `text`.
///
/// `None` if the text is not one whole JSON object, or the member is missing or not an array.
#[must_use]
pub fn array_element_spans(text: &[u8], key: &str) -> Option<Vec<Range<usize>>> {
    let mut array = None;
    each_member(text, |found, value| {
        if *found == *key.as_bytes() {
            array = Some(value);
        }
    })?;
    let array = array?;
    let mut cursor = Cursor::new(text.get(array.clone())?);
    cursor.eat(b'[').then_some(())?;
    cursor.space();
    let mut spans = Vec::new();
    while !cursor.eat(b']') {
        let span = cursor.value(&mut |_| true)?;
        spans.push(array.start + span.start..array.start + span.end);
        cursor.space();
        // The array has been walked once already, so this is a comma or the closing bracket.
        if cursor.eat(b',') {
            cursor.space();
        }
    }
    Some(spans)
}

/// The values of the named members of an object, as they stand in the text; `None` inside for one
/// that is missing, `None` outside if the text is not one whole JSON object.
#[must_use]
pub fn members<'a, const N: usize>(
    text: &'a [u8],
    keys: [&str; N],
) -> Option<[Option<&'a [u8]>; N]> {
    let mut values = [None; N];
    each_member(text, |found, value| {
        for (key, slot) in keys.iter().zip(&mut values) {
            if *found == *key.as_bytes() {
                *slot = text.get(value.clone());
            }
        }
    })?;
    Some(values)
}

/// Calls `visit` with the key, decoded, and the span of the value of every member of an object, in
/// their order. `None` if the text is not one whole JSON object; some members may have been visited
/// by then.
pub fn each_member<'a>(
    text: &'a [u8],
    mut visit: impl FnMut(Cow<'a, [u8]>, Range<usize>),
) -> Option<()> {
    let mut cursor = Cursor::new(text);
    cursor.space();
    cursor.eat(b'{').then_some(())?;
    cursor.space();
    if !cursor.eat(b'}') {
        loop {
            let key = cursor.key()?;
            let value = cursor.value(&mut |_| true)?;
            visit(escapes::decode(&text[key]), value);
            cursor.space();
            if cursor.eat(b'}') {
                break;
            }
            cursor.eat(b',').then_some(())?;
            cursor.space();
        }
    }
    cursor.end()
}

/// What stands at the end of a path of keys inside an object.
#[must_use]
pub fn at_path<'a>(text: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    path.iter().try_fold(text, |value, key| {
        let [member] = members(value, [*key])?;
        member
    })
}

/// The string that a value is, with its escapes decoded as in [`top_level_string`].
#[must_use]
pub fn string(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let raw = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(escapes::decode(raw))
}

/// The integer that a value is; `None` for one that is written with a fraction or an exponent, or
/// that 64 bits do not hold.
#[must_use]
pub fn integer(value: &[u8]) -> Option<i64> {
    as_str(value)?.parse().ok()
}

/// Reads a document for display, at the cost of exactness: what is not UTF-8 and every lone
/// surrogate becomes U+FFFD. `None` if it is not JSON even so, or nested 128 deep.
#[must_use]
pub fn lossy(text: &[u8]) -> Option<serde_json::Value> {
    let text = String::from_utf8_lossy(text);
    if let Ok(value) = serde_json::from_str(&text) {
        return Some(value);
    }
    let mut repaired = text.as_bytes().to_vec();
    for at in escapes::lone_surrogates(text.as_bytes()) {
        repaired.get_mut(at..at + 4)?.copy_from_slice(b"fffd");
    }
    serde_json::from_slice(&repaired).ok()
}

fn as_str(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok()
}
