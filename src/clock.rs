//! The only place that asks for the time.
//!
//! Everything else is handed a [`Clock`], because tests move the time instead of waiting for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A point in time: microseconds since 1970-01-01T00:00:00Z. Shown as RFC 3339 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Time {
        Time(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since the Unix epoch; zero before it.
    pub fn millis(self) -> u64 {
        u64::try_from(self.0 / 1000).unwrap_or(0)
    }

    /// Reads RFC 3339 with any offset and up to nanoseconds; what is finer than a microsecond is
    /// cut off. A year with a sign is none of RFC 3339, and whoever reads it from us would refuse it.
    pub fn parse(text: &str) -> Option<Time> {
        let is_plain = text.starts_with(|first: char| first.is_ascii_digit());
        let time = text.parse::<jiff::Timestamp>().ok().filter(|_| is_plain);
        time.map(|time| Time(time.as_microsecond()))
    }

    /// How long ago `earlier` was, zero if it is still to come.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(micros(duration)))
    }
}

impl std::ops::Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(micros(duration)))
    }
}

/// A duration in whole microseconds, the unit of the store; at most `i64::MAX`.
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The duration of so many microseconds, zero if negative.
pub fn from_micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Time {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Time::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("not an RFC 3339 time such as 2026-11-30T09:00:00Z")
        })
    }
}

/// Tells the time: the machine's wall clock, or one that a test moves.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    Wall,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's wall clock, which may jump either way.
    pub fn wall() -> Clock {
        Clock(Source::Wall)
    }

    /// A clock that stands still until it is moved.
    pub fn manual(start: Time) -> Clock {
        Clock(Source::Manual(Arc::new(AtomicI64::new(start.0))))
    }

    /// The time now.
    pub fn now(&self) -> Time {
        match &self.0 {
            Source::Wall => wall_now(),
            Source::Manual(micros) => Time(micros.load(Ordering::SeqCst)),
        }
    }

    /// Sets a manual clock, forwards or back; the wall clock does not listen.
    pub fn set(&self, time: Time) {
        if let Source::Manual(micros) = &self.0 {
            micros.store(time.0, Ordering::SeqCst);
        }
    }

    /// Moves a manual clock forwards; the wall clock does not listen.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the one place that asks")]
fn wall_now() -> Time {
    Time(jiff::Timestamp::now().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_rfc_3339() {
        for (text, shown) in [
            ("2026-06-08T12:34:56Z", "2026-06-08T12:34:56Z"),
            ("2026-06-08T15:34:56.5+03:00", "2026-06-08T12:34:56.5Z"),
            ("2026-06-08T12:34:56.123456789Z", "2026-06-08T12:34:56.123456Z"),
        ] {
            assert_eq!(Time::parse(text).unwrap().to_string(), shown);
        }
        for text in ["yesterday", "", "-000001-06-08T12:34:56Z", "+002026-06-08T12:34:56Z"] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        let end = Time::from_micros(i64::MAX);
        assert_eq!(end + Duration::MAX, end);
        assert_eq!(Time::from_micros(5).since(Time::from_micros(9)), Duration::ZERO);
    }
}
