//! Properties of the delivery timestamp: it agrees with another parser, and nothing is a panic.

use inboxd::receive::unifyport::timestamp::{parse, within};
use proptest::prelude::*;

/// The years that four digits and every offset can write.
const WRITABLE_SECONDS: std::ops::Range<i64> = -62_135_596_800..253_370_764_800;

proptest! {
    #[test]
    fn any_instant_is_read_back_from_rfc_3339(
        seconds in WRITABLE_SECONDS,
        micros in 0..1_000_000_i64,
        offset_minutes in -1439..1440_i32,
        lower: bool,
    ) {
        let us = seconds * 1_000_000 + micros;
        let instant = jiff::Timestamp::from_microsecond(us).unwrap();
        let mut utc = instant.to_string();
        let offset = jiff::tz::Offset::from_seconds(offset_minutes * 60).unwrap();
        let mut local = instant.display_with_offset(offset).to_string();
        if lower {
            utc.make_ascii_lowercase();
            local.make_ascii_lowercase();
        }
        prop_assert_eq!(parse(utc.as_bytes()), Ok(us), "{}", utc);
        // An offset may carry the local date out of the years that four digits can write.
        if local.len() > "0000".len() && local.as_bytes()[4] == b'-' {
            prop_assert_eq!(parse(local.as_bytes()), Ok(us), "{}", local);
        }
    }

    #[test]
    fn unix_times_are_told_apart_by_their_digits(seconds in 0..100_000_000_000_i64) {
        prop_assert_eq!(parse(seconds.to_string().as_bytes()), Ok(seconds * 1_000_000));
        let millis = format!("{seconds}000");
        let read = parse(millis.as_bytes());
        if millis.len() >= 12 {
            prop_assert_eq!(read, Ok(seconds * 1_000_000));
        } else {
            prop_assert_eq!(read, Ok(seconds * 1_000_000_000));
        }
        let micros = format!("{seconds:010}000000");
        prop_assert!(parse(micros.as_bytes()).is_err());
    }

    #[test]
    fn nothing_is_a_panic(bytes: Vec<u8>, text in "[0-9TtZz:.+ -]{0,40}") {
        let _ = parse(&bytes);
        let _ = parse(text.as_bytes());
    }

    #[test]
    fn one_changed_byte_is_never_a_panic_and_what_passes_is_rfc_3339(
        at in 0..25_usize,
        byte: u8,
    ) {
        let mut text = b"2026-06-08T12:34:56+03:00".to_vec();
        text[at] = byte;
        if parse(&text).is_ok() {
            let text = std::str::from_utf8(&text).unwrap();
            prop_assert!(text.to_uppercase().parse::<jiff::Timestamp>().is_ok(), "{}", text);
        }
    }

    #[test]
    fn the_tolerance_is_the_distance(time: i64, now: i64, tolerance: i64) {
        let distance = (i128::from(time) - i128::from(now)).abs();
        prop_assert_eq!(within(time, now, tolerance), distance <= i128::from(tolerance));
        prop_assert_eq!(within(time, now, tolerance), within(now, time, tolerance));
    }
}
