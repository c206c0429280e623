//! Points in time as people write them on a command line and read them in a table.

use std::str::FromStr;
use std::time::Duration;

use crate::clock::{Clock, Time};
use crate::config::units::parse_duration;

/// A time that was named by itself or by its distance from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    At(Time),
    Ago(Duration),
}

impl When {
    /// The time that is meant.
    pub(super) fn time(self, clock: &Clock) -> Time {
        match self {
            When::At(time) => time,
            When::Ago(duration) => clock.now() - duration,
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<When, String> {
        let at = Time::parse(text).map(When::At);
        let ago = || parse_duration(text).ok().map(When::Ago);
        at.or_else(ago).ok_or_else(|| {
            "write a time such as 2026-11-30T09:00:00Z, or how long ago, such as 2h".to_owned()
        })
    }
}

/// A time of the last months for a table: `11-30 09:00:01`, in UTC.
pub(super) fn short(time: Time) -> String {
    match jiff::Timestamp::from_microsecond(time.micros()) {
        Ok(time) => time.strftime("%m-%d %H:%M:%S").to_string(),
        Err(_) => time.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_a_duration_back() {
        let noon = Time::parse("2026-11-30T12:00:00Z").unwrap();
        let clock = Clock::manual(noon);
        let of = |text: &str| text.parse::<When>().map(|when| when.time(&clock));
        assert_eq!(of("2026-11-30T13:00:00+01:00"), Ok(noon));
        assert_eq!(of("2h"), Ok(noon - Duration::from_secs(7200)));
        for text in ["", "yesterday", "2", "-2h", "2026-11-30"] {
            assert!(of(text).is_err(), "{text}");
        }
        assert_eq!(short(noon), "11-30 12:00:00");
    }
}
