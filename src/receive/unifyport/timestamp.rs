//! The time a delivery was signed: reading the header and comparing it with now. No clock here.
//!
//! UnifyPort documents RFC 3339 in UTC; some of its pages show epoch numbers, so those are read
//! too. The signature covers the header's text, so reading it in more than one way weakens nothing.

use jiff::{Timestamp, civil::Date, tz::Offset};

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// Neither RFC 3339 nor a Unix time in seconds or milliseconds.
    #[error("the timestamp is neither RFC 3339 nor Unix seconds or milliseconds")]
    Malformed,
    /// A date or time of day that does not exist, or one outside the years 0 to 9999 in UTC.
    #[error("the timestamp names a time that does not exist")]
    OutOfRange,
}

/// Reads a timestamp as microseconds since the Unix epoch.
///
/// - RFC 3339, strictly: `2026-06-08T12:34:56Z`, with an offset such as `+03:00` for the `Z`, with
///   a fraction of any number of digits (those after the sixth are cut off); `t` and `z` may be
///   lower case. A second numbered 60 is one only at 23:59 UTC and counts as the next second.
/// - 1 to 11 digits: Unix seconds (to the year 5138).
/// - 12 to 14 digits: Unix milliseconds (from 1973 to the year 5138).
/// - More digits, for instance microseconds, are not a time; nor are signs, spaces or decimals.
///
/// # Errors
/// [`TimestampError`] tells a text of the wrong form from a time that does not exist.
pub fn parse(header: &[u8]) -> Result<i64, TimestampError> {
    if !header.is_empty() && header.iter().all(u8::is_ascii_digit) {
        return parse_unix(header);
    }
    let parts = split(header).ok_or(TimestampError::Malformed)?;
    instant(&parts).ok_or(TimestampError::OutOfRange)
}

/// Whether a time is at most `tolerance_us` away from now, before or after. All in microseconds;
/// a negative tolerance allows nothing.
#[must_use]
pub fn within(timestamp_us: i64, now_us: i64, tolerance_us: i64) -> bool {
    u64::try_from(tolerance_us).is_ok_and(|tolerance| timestamp_us.abs_diff(now_us) <= tolerance)
}

fn parse_unix(digits: &[u8]) -> Result<i64, TimestampError> {
    let unit_us = match digits.len() {
        1..=11 => 1_000_000,
        12..=14 => 1_000,
        _ => return Err(TimestampError::Malformed),
    };
    number(digits).checked_mul(unit_us).ok_or(TimestampError::OutOfRange)
}

/// The numbers of an RFC 3339 text, none of them checked for its range yet.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Sign of the offset, its hours, its minutes.
    offset: (i64, i64, i64),
}

/// Takes a text apart; `None` if it does not have the form of RFC 3339.
fn split(text: &[u8]) -> Option<Parts> {
    let (fixed, rest) = text.split_at_checked("YYYY-MM-DDTHH:MM:SS".len())?;
    for (&byte, form) in fixed.iter().zip(b"dddd-dd-ddTdd:dd:dd") {
        let fits = match form {
            b'd' => byte.is_ascii_digit(),
            form => byte.eq_ignore_ascii_case(form),
        };
        if !fits {
            return None;
        }
    }
    let (micros, offset) = match rest.strip_prefix(b".") {
        Some(rest) => {
            let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (fraction, offset) = rest.split_at_checked(length)?;
            if fraction.is_empty() {
                return None;
            }
            (micros(fraction), offset)
        }
        None => (0, rest),
    };
    Some(Parts {
        year: number(&fixed[0..4]),
        month: number(&fixed[5..7]),
        day: number(&fixed[8..10]),
        hour: number(&fixed[11..13]),
        minute: number(&fixed[14..16]),
        second: number(&fixed[17..19]),
        micros,
        offset: split_offset(offset)?,
    })
}

fn split_offset(text: &[u8]) -> Option<(i64, i64, i64)> {
    match text {
        b"Z" | b"z" => Some((1, 0, 0)),
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m2]
            if hours.len() == 2 && hours.iter().chain([m1, m2]).all(u8::is_ascii_digit) =>
        {
            let sign = if *sign == b'-' { -1 } else { 1 };
            Some((sign, number(hours), number(&[*m1, *m2])))
        }
        _ => None,
    }
}

/// The instant that the parts name, in microseconds; `None` if there is none.
fn instant(parts: &Parts) -> Option<i64> {
    let (sign, offset_hours, offset_minutes) = parts.offset;
    if offset_hours > 23 || offset_minutes > 59 {
        return None;
    }
    let offset_minutes = sign * (offset_hours * 60 + offset_minutes);
    // RFC 3339 writes a leap second as 60. It can only be the last second of a day in UTC.
    let leap = parts.second == 60;
    let utc_minute = (parts.hour * 60 + parts.minute - offset_minutes).rem_euclid(24 * 60);
    if leap && utc_minute != 23 * 60 + 59 {
        return None;
    }
    let (hour, minute) = (i8::try_from(parts.hour).ok()?, i8::try_from(parts.minute).ok()?);
    let second = if leap { 59 } else { i8::try_from(parts.second).ok()? };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let date = Date::new(
        i16::try_from(parts.year).ok()?,
        i8::try_from(parts.month).ok()?,
        i8::try_from(parts.day).ok()?,
    )
    .ok()?;
    let local = Offset::UTC.to_timestamp(date.at(hour, minute, second, 0)).ok()?;
    let micros = local
        .as_microsecond()
        .checked_add(if leap { 1_000_000 } else { 0 })?
        .checked_add(parts.micros)?
        .checked_sub(offset_minutes.checked_mul(60_000_000)?)?;
    // Only what can be written as RFC 3339 again is a time that the rest can work with.
    let year_0 = Offset::UTC.to_timestamp(Date::new(0, 1, 1).ok()?.at(0, 0, 0, 0)).ok()?;
    (Timestamp::from_microsecond(micros).ok()? >= year_0).then_some(micros)
}

/// The first six digits of a fraction of a second, as microseconds.
fn micros(fraction: &[u8]) -> i64 {
    (0..6).fold(0, |sum, at| sum * 10 + fraction.get(at).map_or(0, |d| i64::from(d - b'0')))
}

/// The value of at most 14 ASCII digits, which cannot overflow.
fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    /// 2026-06-08T12:34:56Z
    const T: i64 = 1_780_922_096 * SECOND;

    #[test]
    fn one_instant_has_many_spellings() {
        for text in [
            "2026-06-08T12:34:56Z",
            "2026-06-08t12:34:56z",
            "2026-06-08T12:34:56.000Z",
            "2026-06-08T15:34:56+03:00",
            "2026-06-08T07:04:56-05:30",
            "2026-06-08T12:34:56-00:00",
            "1780922096",
            "1780922096000",
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(T), "{text}");
        }
    }

    #[test]
    fn fractions_are_cut_after_microseconds() {
        assert_eq!(parse(b"2026-06-08T12:34:56.1Z"), Ok(T + 100_000));
        assert_eq!(parse(b"2026-06-08T12:34:56.123456789Z"), Ok(T + 123_456));
        assert_eq!(parse(b"1969-12-31T23:59:59.75Z"), Ok(-250_000));
        assert_eq!(parse(b"1780922096123"), Ok(T + 123_000));
    }

    #[test]
    fn a_leap_second_is_the_next_second() {
        assert_eq!(parse(b"2016-12-31T23:59:60Z"), parse(b"2017-01-01T00:00:00Z"));
        assert_eq!(parse(b"2016-12-31T15:59:60-08:00"), parse(b"2017-01-01T00:00:00Z"));
        assert_eq!(parse(b"2016-12-31T23:58:60Z"), Err(TimestampError::OutOfRange));
    }

    #[test]
    fn other_forms_are_malformed() {
        for text in [
            "",
            " ",
            "now",
            "NaN",
            "-1",
            "+1780922096",
            "1780922096.5",
            "1.7e9",
            "1780922096 ",
            "178092209600000",
            "1780922096000000",
            "2026-06-08",
            "2026-06-08 12:34:56Z",
            "2026-06-08T12:34:56",
            "2026-06-08T12:34Z",
            "2026-06-08T12:34:56.Z",
            "2026-06-08T12:34:56,5Z",
            "2026-06-08T12:34:56+0300",
            "2026-06-08T12:34:56+03",
            "2026-06-08T12:34:56Z.",
            "2026-06-08T12:34:56ZZ",
            "26-06-08T12:34:56Z",
            "2026-6-8T12:34:56Z",
            "２０２６-06-08T12:34:56Z",
            "2026-06-08T12:34:56\u{2212}03:00",
            "Mon, 08 Jun 2026 12:34:56 GMT",
            "2026-06-08T12:34:56Z[UTC]",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(TimestampError::Malformed), "{text}");
        }
    }

    #[test]
    fn times_that_do_not_exist_are_out_of_range() {
        for text in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-06-31T00:00:00Z",
            "2026-06-08T24:00:00Z",
            "2026-06-08T12:60:00Z",
            "2026-06-08T12:34:61Z",
            "2026-06-08T12:34:56+24:00",
            "2026-06-08T12:34:56+00:60",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-23:59",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(TimestampError::OutOfRange), "{text}");
        }
    }

    #[test]
    fn the_tolerance_is_two_sided_and_inclusive() {
        assert!(within(T - 5, T, 5) && within(T + 5, T, 5));
        assert!(!within(T - 6, T, 5) && !within(T + 6, T, 5));
        assert!(within(T, T, 0) && !within(T, T, -1));
        assert!(!within(i64::MIN, i64::MAX, i64::MAX) && !within(i64::MAX, i64::MIN, i64::MAX));
    }
}
