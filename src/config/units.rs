//! Durations and sizes as text: `"30s"`, `"1h30m"`, `"16MiB"`.

use std::time::Duration;

use super::names::quote;

/// Why a text is not a duration or not a size, as one clause with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

/// The units of a duration in milliseconds, from large to small.
const DURATIONS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Longest duration, 100 years of 365 days, because now plus or minus any duration must remain a
/// time that every part can hold.
const LONGEST_MS: u64 = 36_500 * 86_400_000;

/// The units of a size in bytes, the binary ones from large to small first.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// Reads a duration: whole numbers with the units `d`, `h`, `m`, `s` and `ms`, each at most once
/// and the larger first, such as `"30d"`, `"1h30m"` or `"250ms"`; at most 36500 days.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let parts = split(text).ok_or_else(|| {
        UnitError(format!("{} is not a duration; write it like \"5m\" or \"300s\"", quote(text)))
    })?;
    let mut total = Some(0_u64);
    let mut smallest = u64::MAX;
    for (number, unit) in parts {
        if unit.is_empty() {
            return Err(UnitError(format!(
                "{} has no unit; write \"{number}s\" for seconds, or use d, h, m or ms",
                quote(text)
            )));
        }
        let Some((_, milliseconds)) = DURATIONS.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError(format!(
                "{} has the unit {}; the units of a duration are d, h, m, s and ms",
                quote(text),
                quote(unit)
            )));
        };
        if *milliseconds >= smallest {
            return Err(UnitError(format!(
                "{} has its units out of order; write the larger first and each once, \
                 like \"1h30m\"",
                quote(text)
            )));
        }
        smallest = *milliseconds;
        let part = number.parse().ok().and_then(|n: u64| n.checked_mul(*milliseconds));
        total = total.zip(part).and_then(|(total, part)| total.checked_add(part));
    }
    match total {
        Some(total) if total <= LONGEST_MS => Ok(Duration::from_millis(total)),
        _ => Err(UnitError(format!("{} is too long; write at most \"36500d\"", quote(text)))),
    }
}

/// Reads a duration of `shortest` to `longest`.
pub fn parse_duration_within(
    text: &str,
    shortest: Duration,
    longest: Duration,
) -> Result<Duration, UnitError> {
    let duration = parse_duration(text)?;
    if (shortest..=longest).contains(&duration) {
        return Ok(duration);
    }
    Err(UnitError(format!(
        "{:?} is out of range; write from {:?} to {:?}",
        format_duration(duration),
        format_duration(shortest),
        format_duration(longest)
    )))
}

/// Reads a duration longer than none at all.
pub fn parse_duration_over_zero(text: &str) -> Result<Duration, UnitError> {
    match parse_duration(text)? {
        Duration::ZERO => {
            Err(UnitError("this cannot be zero; write a time like \"30s\"".to_owned()))
        }
        duration => Ok(duration),
    }
}

/// Reads a size in bytes: one whole number with one of the units `B`, `KB`, `MB`, `GB`, `TB`
/// (powers of 1000) and `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024).
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let parts = split(text).unwrap_or_default();
    let [(number, unit)] = parts.as_slice() else {
        return Err(UnitError(format!(
            "{} is not a size; write it like \"16MiB\" or \"1000B\"",
            quote(text)
        )));
    };
    if unit.is_empty() {
        return Err(UnitError(format!(
            "{} has no unit; write \"{number}B\" for bytes, or use KiB, MiB or GiB",
            quote(text)
        )));
    }
    let Some((_, bytes)) = SIZES.iter().find(|(name, _)| name == unit) else {
        return Err(UnitError(format!(
            "{} has the unit {}; the units of a size are B, KB, MB, GB, TB, KiB, MiB, GiB and TiB",
            quote(text),
            quote(unit)
        )));
    };
    number.parse().ok().and_then(|n: u64| n.checked_mul(*bytes)).ok_or_else(|| {
        UnitError(format!("{} is too large; write at most \"16777215TiB\"", quote(text)))
    })
}

/// The shortest text that [`parse_duration`] reads back as `duration`, cut to milliseconds.
pub fn format_duration(duration: Duration) -> String {
    let mut rest = duration.as_millis();
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, milliseconds) in DURATIONS {
        let number = rest / u128::from(milliseconds);
        rest %= u128::from(milliseconds);
        if number > 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    }
    text
}

/// The text that [`parse_size`] reads back as `bytes`, in the largest binary unit that leaves no
/// rest.
pub fn format_size(bytes: u64) -> String {
    SIZES[..4]
        .iter()
        .find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size))
        .map_or_else(|| format!("{bytes}B"), |(unit, size)| format!("{}{unit}", bytes / size))
}

/// Cuts `text` into pairs of digits and the letters after them. None unless it is made of those,
/// digits first.
fn split(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        if number.is_empty() {
            return None;
        }
        parts.push((number, unit));
        rest = after;
    }
    (!parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        for (text, milliseconds) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("15m", 900_000),
            ("12h", 43_200_000),
            ("30d", 2_592_000_000),
            ("1h30m", 5_400_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("0s", 0),
            ("007s", 7_000),
            ("90s", 90_000),
            ("36500d", LONGEST_MS),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_says_why() {
        let plain =
            |text: &str| format!("{text:?} is not a duration; write it like \"5m\" or \"300s\"");
        for text in ["", "5 minutes", "-5s", "1.5s", "s", "5s ", " 5s", "+5s", "5µs", "٣s"] {
            assert_eq!(parse_duration(text).unwrap_err().to_string(), plain(text));
        }
        for (text, message) in [
            ("30", "\"30\" has no unit; write \"30s\" for seconds, or use d, h, m or ms"),
            ("1h30", "\"1h30\" has no unit; write \"30s\" for seconds, or use d, h, m or ms"),
            ("3w", "\"3w\" has the unit \"w\"; the units of a duration are d, h, m, s and ms"),
            ("5M", "\"5M\" has the unit \"M\"; the units of a duration are d, h, m, s and ms"),
            (
                "30m1h",
                "\"30m1h\" has its units out of order; write the larger first and each once, \
                 like \"1h30m\"",
            ),
            (
                "1s1s",
                "\"1s1s\" has its units out of order; write the larger first and each once, \
                 like \"1h30m\"",
            ),
            ("36501d", "\"36501d\" is too long; write at most \"36500d\""),
            (
                "99999999999999999999s",
                "\"99999999999999999999s\" is too long; write at most \"36500d\"",
            ),
        ] {
            assert_eq!(parse_duration(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("1000B", 1_000),
            ("64KiB", 65_536),
            ("16MiB", 16 << 20),
            ("1GiB", 1 << 30),
            ("2TiB", 2 << 40),
            ("1KB", 1_000),
            ("3MB", 3_000_000),
            ("4GB", 4_000_000_000),
            ("5TB", 5_000_000_000_000),
            ("0B", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_size_says_why() {
        for text in ["", "16 MiB", "-1B", "1.5GiB", "MiB", "1MiB1B"] {
            assert_eq!(
                parse_size(text).unwrap_err().to_string(),
                format!("{text:?} is not a size; write it like \"16MiB\" or \"1000B\"")
            );
        }
        for (text, message) in [
            ("16", "\"16\" has no unit; write \"16B\" for bytes, or use KiB, MiB or GiB"),
            (
                "16M",
                "\"16M\" has the unit \"M\"; the units of a size are B, KB, MB, GB, TB, KiB, MiB, \
                 GiB and TiB",
            ),
            (
                "16mib",
                "\"16mib\" has the unit \"mib\"; the units of a size are B, KB, MB, GB, TB, KiB, \
                 MiB, GiB and TiB",
            ),
            ("16777216TiB", "\"16777216TiB\" is too large; write at most \"16777215TiB\""),
        ] {
            assert_eq!(parse_size(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn texts_are_short() {
        for text in ["0s", "250ms", "5m", "1m30s", "12h", "30d", "1d1ms"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        for text in ["0B", "1000B", "64KiB", "16MiB", "1025B", "1GiB", "3TiB"] {
            assert_eq!(format_size(parse_size(text).unwrap()), text);
        }
    }

    proptest! {
        #[test]
        fn a_duration_is_read_back(milliseconds in 0..=LONGEST_MS) {
            let duration = Duration::from_millis(milliseconds);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn a_size_is_read_back(bytes: u64) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse_duration(&text);
            let _ = parse_size(&text);
        }
    }
}
