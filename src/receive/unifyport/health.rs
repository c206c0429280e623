//! What an endpoint says of itself: whether its deliveries are accepted, and if not, why.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::endpoint::Endpoint;
use crate::clock::{Clock, Time, from_micros};
use crate::config::units::format_duration;
use crate::source::SourceState;
use crate::telemetry::Lasting;

/// While an endpoint accepts deliveries, single forgeries do not make it look ill: it must have
/// accepted none for so long.
const QUIET: Duration = Duration::from_secs(60);

/// So many deliveries in a row must be more than half the tolerance away from our clock before it is
/// the clock that is suspected: a single one may be a retry that comes late.
const SKEWED: u32 = 3;

/// The health of one endpoint, across changes of its configuration.
#[derive(Debug, Default)]
pub(super) struct Health {
    inner: Mutex<Inner>,
    refusing: Lasting,
    skewed: Lasting,
}

#[derive(Debug, Default)]
struct Inner {
    /// Accepted deliveries in a row whose time was far from ours.
    skewed: u32,
    accepted_at: Option<Time>,
    told: SourceState,
}

impl Health {
    /// A delivery was accepted, `skew` microseconds behind our clock. The state to tell, if it is
    /// another.
    pub(super) fn accepted(&self, endpoint: &Endpoint, skew: i64, at: Time) -> Option<SourceState> {
        self.refusing.end(format_args!("endpoint {} accepts deliveries again", endpoint.name));
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.accepted_at = Some(at);
        let far = from_micros(skew.saturating_abs()) > endpoint.tolerance / 2;
        inner.skewed = if far { inner.skewed.saturating_add(1) } else { 0 };
        if inner.skewed < SKEWED {
            self.skewed.end(format_args!("endpoint {}: the clocks agree again", endpoint.name));
            return inner.change("ok", "deliveries are accepted".to_owned(), at);
        }
        let distance = if skew < 0 { "ahead of" } else { "behind" };
        let detail = format!(
            "deliveries to {} are accepted, and their time is {} {distance} this machine's clock: \
             check the clock, because beyond the tolerance of {} authentic ones count as stale",
            endpoint.name,
            seconds(skew),
            format_duration(endpoint.tolerance)
        );
        self.skewed.begin(&detail);
        inner.change("skew", detail, at)
    }

    /// An authentic delivery was refused for its time, `skew` microseconds behind our clock.
    pub(super) fn stale(
        &self,
        endpoint: &Endpoint,
        skew: Option<i64>,
        at: Time,
    ) -> Option<SourceState> {
        let distance = match skew {
            Some(skew) if skew < 0 => format!("{} ahead of", seconds(skew)),
            Some(skew) => format!("{} behind", seconds(skew)),
            None => "not readable against".to_owned(),
        };
        let detail = format!(
            "authentic deliveries to {} are refused because their time is {distance} this \
             machine's clock: check the clock, or set stale = \"accept\"",
            endpoint.name
        );
        self.refusing.begin(&detail);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.change("stale", detail, at)
    }

    /// A delivery was refused as not authentic.
    pub(super) fn unverified(&self, endpoint: &Endpoint, at: Time) -> Option<SourceState> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.accepted_at.is_some_and(|accepted| at.since(accepted) < QUIET) {
            return None;
        }
        let detail = format!(
            "deliveries to {} are refused and none is accepted: check that the signing_secret of \
             the UnifyPort endpoint is one of the configured secrets",
            endpoint.name
        );
        self.refusing.begin(&detail);
        inner.change("unverified", detail, at)
    }
}

impl Inner {
    fn change(&mut self, name: &str, detail: String, at: Time) -> Option<SourceState> {
        if self.told.name == name {
            return None;
        }
        self.told = SourceState { name: name.to_owned(), detail, since: Some(at) };
        Some(self.told.clone())
    }
}

fn seconds(skew: i64) -> String {
    format_duration(Duration::from_secs(from_micros(skew.saturating_abs()).as_secs()))
}

/// The state of an endpoint that has had no delivery since the start.
pub(super) fn waiting(clock: &Clock) -> SourceState {
    SourceState {
        name: "waiting".to_owned(),
        detail: "no delivery has arrived since the start".to_owned(),
        since: Some(clock.now()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SourceId;

    #[test]
    fn a_clock_that_is_off_is_told_before_anything_is_refused() {
        let endpoint = Endpoint {
            name: "main".to_owned(),
            source: SourceId(1),
            secrets: Vec::new(),
            tolerance: Duration::from_secs(300),
            accept_stale: None,
        };
        let (health, at) = (Health::default(), Time::from_micros(0));
        let told = |seconds: i64| {
            let state = health.accepted(&endpoint, seconds * 1_000_000, at);
            state.map(|state| (state.name, state.detail))
        };
        assert_eq!(told(200).unwrap().0, "ok");
        assert_eq!((told(-200), told(20), told(200), told(200)), (None, None, None, None));
        let (name, detail) = told(-200).unwrap();
        assert_eq!(name, "skew");
        assert!(detail.contains("3m20s ahead of this machine's clock"), "{detail}");
        assert_eq!(told(1).unwrap().0, "ok");
    }
}
