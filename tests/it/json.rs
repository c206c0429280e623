//! The JSON scanner against slower readers, and on texts no reader likes.

use crate::json_reference::{Tree, depth, documents, mutated, nearly_json, objects, tree};
use inboxd::json::{array_element_spans, integer, lossy, portable, top_level_string};
use proptest::prelude::*;
use serde_json::Value;

const KEYS: &[&str] = &["id", "result", "data", "a"];

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn what_some_reader_would_refuse_is_not_portable() {
    for text in [
        &b""[..],
        b" ",
        b"nonsense",
        b"\xef\xbb\xbf{}",
        b"\"\xff\"",
        b"\"\xed\xa0\x80\"",
        br#""\ud83d""#,
        br#""\ude00""#,
        br#""\ud83d\ud83d\ude00""#,
        br#""\ud83dx\ude00""#,
        br#"{"\ud800":1}"#,
        b"1e309",
        b"-1e309",
        b"[1e999]",
        b"{} {}",
        b"[1,]",
        b"{\"a\":1,}",
        b"{,}",
        b"[,1]",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"1e",
        b"-",
        b"NaN",
        b"nul",
        b"truex",
        b"'a'",
        b"\"a\nb\"",
        b"\"\\x\"",
        b"\"\\u12g4\"",
        b"\"\\u12",
        b"\"a",
        b"{\"a\" 1}",
        b"{1:1}",
        b"[1 2]",
        b"[}",
        b"]",
        b"\x0b1",
    ] {
        assert!(!portable(text), "{}", text.escape_ascii());
    }
    assert!(!portable(nested(101).as_bytes()));
    assert!(!portable(format!("[{}1]", "9".repeat(310)).as_bytes()));
}

#[test]
fn what_every_reader_takes_is_portable() {
    for text in [
        "{}",
        " [ ] ",
        "\r\n\t0\n",
        "null",
        "-0.0e-0",
        "1e308",
        "1e-999",
        "\"\\u0000\\/\\b\"",
        "\"\\uD83D\\uDE00 🌊 \u{2028}\"",
        "{\"a\":1,\"a\":2,\"\":[true,false,null]}",
        "123456789012345678901234567890",
    ] {
        assert!(portable(text.as_bytes()), "{text}");
    }
    assert!(portable(nested(100).as_bytes()));
}

#[test]
fn the_last_of_equal_keys_counts_however_it_is_spelt() {
    let id = |text: &str| top_level_string(text.as_bytes(), "id").map(|id| id.into_owned());
    assert_eq!(id(r#"{"id":"a","id":"b"}"#), Some(b"b".into()));
    assert_eq!(id(r#"{"id":"a","\u0069\u0064":"b"}"#), Some(b"b".into()));
    assert_eq!(id(r#"{"id":"a","id":7}"#), None, "only a string counts");
    assert_eq!(id(r#"{"data":{"id":"a"}}"#), None, "only the top level counts");
    assert_eq!(id(r#"[{"id":"a"}]"#), None);
    assert_eq!(id(r#"{"id":"a""#), None, "the whole text must scan");
    assert_eq!(id(r#"{"id":"a"}]"#), None);
    assert_eq!(id(r#" {"id" : "\ta\ud83c\udf0a\"" } "#), Some("\ta🌊\"".into()));
    assert_eq!(id(r#"{"id":""}"#), Some(b"".into()));
}

#[test]
fn ids_that_differ_stay_different() {
    let id = |text: &[u8]| top_level_string(text, "id").map(|id| id.into_owned());
    assert_eq!(id(br#"{"id":"\ud800"}"#), Some(b"\xed\xa0\x80".into()));
    assert_eq!(id(br#"{"id":"\udfff!"}"#), Some(b"\xed\xbf\xbf!".into()));
    assert_eq!(id(b"{\"id\":\"\xff\"}"), Some(b"\xff".into()));
    assert_eq!(id(b"{\"x\":\"\xfe\",\"id\":\"a\"}"), Some(b"a".into()));
}

#[test]
fn any_depth_is_scanned() {
    let deep = nested(1_000_000);
    let text = format!(r#"{{"a":{deep},"id":"x","result":[{deep}, 1]}}"#);
    assert_eq!(top_level_string(text.as_bytes(), "id").as_deref(), Some(&b"x"[..]));
    let spans = array_element_spans(text.as_bytes(), "result").unwrap();
    assert_eq!(spans.len(), 2);
    assert_eq!(text[spans[0].clone()], deep);
    assert!(!portable(text.as_bytes()));
    for unclosed in ["[", "{\"a\":", "[[],"] {
        assert!(!portable(unclosed.repeat(200_000).as_bytes()));
        assert_eq!(lossy(unclosed.repeat(200_000).as_bytes()), None);
    }
}

#[test]
fn elements_are_cut_exactly() {
    let text = b"{\"ok\":true,\"result\":[{\"update_id\":1,\n\"x\":\"\xff]\"} , 2,\"\\\"\" ]}";
    let spans = array_element_spans(text, "result").unwrap();
    let cut: Vec<&[u8]> = spans.into_iter().map(|span| &text[span]).collect();
    assert_eq!(cut, [&b"{\"update_id\":1,\n\"x\":\"\xff]\"}"[..], b"2", b"\"\\\"\""]);
    assert_eq!(array_element_spans(b"{\"result\":[ ]}", "result"), Some(vec![]));
    assert_eq!(array_element_spans(b"{\"result\":{}}", "result"), None);
    assert_eq!(array_element_spans(b"{\"ok\":true}", "result"), None);
    assert_eq!(array_element_spans(b"{\"result\":[1]", "result"), None);
    assert_eq!(array_element_spans(b"<html>", "result"), None);
}

#[test]
fn integers_are_plain_digits() {
    assert_eq!(integer(b"-1001234567890"), Some(-1_001_234_567_890));
    for text in [&b"1.0"[..], b"1e3", b"\"1\"", b"null", b"9223372036854775808", b"", b"\xff"] {
        assert_eq!(integer(text), None);
    }
}

/// What `serde_json` says, and the depth counted on its document.
fn slowly_portable(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok_and(|value| depth(&value) <= 100)
}

fn slow_string(text: &[u8]) -> Option<Vec<u8>> {
    let Tree::Object(members) = tree(text)? else { return None };
    match members.into_iter().rfind(|(key, _)| key == b"id")? {
        (_, Tree::Text(id)) => Some(id),
        _ => None,
    }
}

fn slow_spans(text: &[u8]) -> Option<Vec<std::ops::Range<usize>>> {
    let Tree::Object(members) = tree(text)? else { return None };
    match members.into_iter().rfind(|(key, _)| key == b"result")? {
        (_, Tree::Array(elements)) => {
            Some(elements.into_iter().map(|(start, end, _)| start..end).collect())
        }
        _ => None,
    }
}

fn agree(text: &[u8]) -> Result<(), TestCaseError> {
    prop_assert_eq!(portable(text), slowly_portable(text));
    prop_assert_eq!(top_level_string(text, "id").map(|id| id.into_owned()), slow_string(text));
    prop_assert_eq!(array_element_spans(text, "result"), slow_spans(text));
    prop_assert!(lossy(text).is_some() || !portable(text));
    Ok(())
}

proptest! {
    #[test]
    fn agrees_on_arbitrary_bytes(text: Vec<u8>) {
        agree(&text)?;
    }

    #[test]
    fn agrees_on_nearly_json(text in nearly_json()) {
        agree(&text)?;
    }

    #[test]
    fn agrees_on_documents(document in objects(documents(KEYS), KEYS), pretty: bool) {
        let text = if pretty {
            serde_json::to_vec_pretty(&document).unwrap()
        } else {
            serde_json::to_vec(&document).unwrap()
        };
        prop_assert!(portable(&text));
        let id = top_level_string(&text, "id");
        prop_assert_eq!(id.as_deref(), document["id"].as_str().map(str::as_bytes));
        let elements = array_element_spans(&text, "result").map(|spans| {
            spans.into_iter().map(|span| serde_json::from_slice(&text[span]).unwrap()).collect()
        });
        // Read once more, because `serde_json` rounds some numbers in the last digit.
        let document: Value = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(elements.as_ref(), document["result"].as_array());
        prop_assert_eq!(lossy(&text), Some(document));
        agree(&text)?;
    }

    #[test]
    fn agrees_on_mutated_documents(
        text in mutated(documents(KEYS).prop_map(|document| document.to_string().into_bytes())),
    ) {
        agree(&text)?;
    }

    #[test]
    fn escapes_are_decoded_to_any_characters(id: String) {
        let escaped: String = id.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let text = format!("{{\"id\":\"{escaped}\"}}");
        let read = top_level_string(text.as_bytes(), "id").unwrap();
        prop_assert_eq!(&*read, id.as_bytes());
    }
}
