//! How long to wait before the next try. Computed here, waited elsewhere.

use std::time::Duration;

/// Waits that double from `first` to `max`, each drawn between half of it and all of it, so that
/// those who failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait at its longest.
    pub first: Duration,
    /// No wait is longer.
    pub max: Duration,
}

impl Backoff {
    /// The wait after so many failures in a row, at least one; `random` is within 0 and 1.
    pub fn wait(self, failures: u32, random: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let longest = self.first.saturating_mul(1 << doublings).min(self.max);
        longest.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }

    /// The wait after the failed attempt of this number, 1 for the first: drawn evenly between `first`
    /// and what `first` has doubled to, so that work that failed together comes back one by one;
    /// `random` is within 0 and 1.
    pub fn jittered(self, attempt: u32, random: f64) -> Duration {
        let longest = self.first.saturating_mul(1 << attempt.min(31)).min(self.max);
        between(self.first, longest, random)
    }
}

/// A wait drawn evenly between two; `random` is within 0 and 1.
pub fn between(least: Duration, most: Duration, random: f64) -> Duration {
    least + most.saturating_sub(least).mul_f64(random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_the_longest_and_are_spread() {
        let backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };
        let longest: Vec<u64> = (1..8).map(|n| backoff.wait(n, 1.0).as_secs()).collect();
        assert_eq!(longest, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(backoff.wait(3, 0.0), Duration::from_secs(2));
        assert_eq!(backoff.wait(u32::MAX, 1.0), Duration::from_secs(30));
    }

    #[test]
    fn jitter_goes_from_the_first_wait_to_one_that_doubles() {
        let backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };
        let longest: Vec<u64> = (1..7).map(|n| backoff.jittered(n, 1.0).as_secs()).collect();
        assert_eq!(longest, [2, 4, 8, 16, 30, 30]);
        for attempt in [1, 5, 31, 32, u32::MAX] {
            assert_eq!(backoff.jittered(attempt, 0.0), Duration::from_secs(1));
            let wait = backoff.jittered(attempt, 0.5);
            assert!(wait > backoff.first && wait < backoff.max, "{attempt}: {wait:?}");
        }
        let long = Backoff { first: Duration::MAX, max: Duration::MAX };
        assert_eq!(long.jittered(u32::MAX, 1.0), Duration::MAX);
    }
}
