//! Strangers' texts made fit for a terminal: harmless, of one line, of a known width.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// More characters on one place of the screen than any emoji or script needs; they would cover
/// the lines around them.
const MOST_IN_CLUSTER: usize = 16;

/// The text on one line: blanks of every kind become one space, and what could steer a terminal or
/// turn the order of what is read becomes U+FFFD.
pub(super) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// As [`line`], with the text's own line breaks, each followed by `indent` spaces.
pub(super) fn lines(text: &str, indent: usize) -> String {
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join(&format!("\n{:indent$}", ""))
}

/// At most `width` columns of a text made by [`line`], `…` at its end if there was more; and the
/// columns that it takes.
pub(super) fn cut(text: &str, width: usize) -> (String, usize) {
    let mut cut = String::new();
    let mut used = 0;
    // What still leaves a column for the ellipsis.
    let mut short = (0, 0);
    for cluster in text.graphemes(true) {
        let crowded = cluster.chars().nth(MOST_IN_CLUSTER).is_some();
        let cluster = if crowded { "\u{fffd}" } else { cluster };
        used += cluster.width();
        if used > width {
            let (bytes, used) = short;
            cut.truncate(bytes);
            return if width == 0 { (cut, 0) } else { (cut + "…", used + 1) };
        }
        cut.push_str(cluster);
        if used < width {
            short = (cut.len(), used);
        }
    }
    (cut, used)
}

/// A JSON text on one line that steers no terminal and means the same: outside of strings there
/// are no such characters but line breaks, inside of them an escape stands for each.
pub(super) fn json_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if steers(c) => line.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => line.push(c),
        }
    }
    line
}

/// Controls of C0 and C1, among them what begins an escape sequence, and those of Unicode's
/// bidirectional algorithm. None is beyond U+FFFF.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        assert_eq!(
            line("a\u{1b}[31mb\u{9b}2J\u{7}\u{7f}"),
            "a\u{fffd}[31mb\u{fffd}2J\u{fffd}\u{fffd}"
        );
        assert_eq!(line("  a\r\n\tb\u{2028}c "), "a b c");
        assert_eq!(line("pay \u{202e}001\u{202c}"), "pay \u{fffd}001\u{fffd}");
        assert_eq!(lines("a\nb\u{1b}\r\n\nc", 2), "a\n  b\u{fffd}\n  \n  c");
    }

    #[test]
    fn texts_are_cut_at_what_is_seen() {
        for (text, width, shown) in [
            ("hello", 5, ("hello", 5)),
            ("hello", 4, ("hel…", 4)),
            ("你好世界", 8, ("你好世界", 8)),
            ("你好世界", 7, ("你好世…", 7)),
            ("你好世界", 6, ("你好…", 5)),
            ("👩🏽‍🚀👩🏽‍🚀", 3, ("👩🏽‍🚀…", 3)),
            ("e\u{301}e\u{301}", 1, ("…", 1)),
            ("e\u{301}e\u{301}", 2, ("e\u{301}e\u{301}", 2)),
            ("x", 0, ("", 0)),
            ("", 0, ("", 0)),
        ] {
            assert_eq!(cut(text, width), (shown.0.to_owned(), shown.1), "{text} in {width}");
        }
        let crowd = format!("a{}b", "\u{301}".repeat(1000));
        assert_eq!(cut(&crowd, 10), ("\u{fffd}b".to_owned(), 2));
    }

    #[test]
    fn a_json_line_means_the_same() {
        let json = "{\n\t\"a\": \"\u{9b}\u{202e}\u{7f}é\",\r\n \"n\": 1.10 }";
        let line = json_line(json);
        assert_eq!(line, "{  \"a\": \"\\u009b\\u202e\\u007fé\",   \"n\": 1.10 }");
        let [one, other] = [json, &line].map(serde_json::from_str::<serde_json::Value>);
        assert_eq!(one.unwrap(), other.unwrap());
    }

    proptest! {
        #[test]
        fn no_text_is_wider_than_its_width(text: String, width in 0..40_usize) {
            let (cut, used) = cut(&line(&text), width);
            prop_assert!(used <= width);
            prop_assert!(!cut.chars().any(steers));
        }
    }
}
