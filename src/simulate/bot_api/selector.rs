//! Which requests a fault strikes.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::args::Args;
use super::fault::Action;

/// Which requests a fault strikes: of one method, in a pattern, so many times.
#[derive(Clone, Debug)]
pub struct Selector {
    method: Option<String>,
    when: When,
    times: u64,
}

#[derive(Clone)]
enum When {
    Always,
    Nth(u64),
    Pattern { struck: u64, of: u64 },
    Args(Arc<dyn Fn(&Args) -> bool + Send + Sync>),
    Chance(f64),
}

impl std::fmt::Debug for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Nth(n) => write!(f, "number {n}"),
            Self::Pattern { struck, of } => write!(f, "{struck} of {of}"),
            Self::Args(_) => f.write_str("by arguments"),
            Self::Chance(p) => write!(f, "probability {p}"),
        }
    }
}

impl Selector {
    /// Every request of any method.
    pub fn any() -> Self {
        Self { method: None, when: When::Always, times: u64::MAX }
    }

    /// Every request of `method`.
    pub fn method(method: &str) -> Self {
        Self { method: Some(method.to_ascii_lowercase()), ..Self::any() }
    }

    /// Every `getUpdates`.
    pub fn polls() -> Self {
        Self::method("getUpdates")
    }

    /// Only the `n`th from now on, the first being 1.
    pub fn nth(self, n: u64) -> Self {
        Self { when: When::Nth(n), ..self }
    }

    /// Every `k`th.
    pub fn every(self, k: u64) -> Self {
        self.pattern(1, k)
    }

    /// The first `struck` of each `of`.
    pub fn pattern(self, struck: u64, of: u64) -> Self {
        Self { when: When::Pattern { struck, of: of.max(1) }, ..self }
    }

    /// Those whose arguments satisfy `predicate`.
    pub fn with(self, predicate: impl Fn(&Args) -> bool + Send + Sync + 'static) -> Self {
        Self { when: When::Args(Arc::new(predicate)), ..self }
    }

    /// Each with this probability, drawn from the fake's seed.
    pub fn chance(self, probability: f64) -> Self {
        Self { when: When::Chance(probability), ..self }
    }

    /// At most so many.
    pub fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }

    /// At most one.
    pub fn once(self) -> Self {
        self.times(1)
    }
}

/// The faults that are armed.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Armed>);

#[derive(Debug)]
struct Armed {
    selector: Selector,
    action: Action,
    seen: u64,
    done: u64,
}

impl Faults {
    pub(super) fn arm(&mut self, selector: Selector, action: Action) {
        self.0.push(Armed { selector, action, seen: 0, done: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// What strikes this request.
    pub(super) fn strike(&mut self, method: &str, args: &Args, rng: &mut impl Rng) -> Vec<Action> {
        let struck =
            self.0.iter_mut().filter_map(|armed| armed.strike(method, args, rng)).collect();
        self.0.retain(|armed| armed.done < armed.selector.times);
        struck
    }
}

impl Armed {
    fn strike(&mut self, method: &str, args: &Args, rng: &mut impl Rng) -> Option<Action> {
        if self.selector.method.as_ref().is_some_and(|wanted| wanted != method) {
            return None;
        }
        self.seen += 1;
        let struck = match &self.selector.when {
            When::Always => true,
            When::Nth(n) => self.seen == *n,
            When::Pattern { struck, of } => (self.seen - 1) % of < *struck,
            When::Args(predicate) => predicate(args),
            When::Chance(probability) => rng.random_bool(probability.clamp(0.0, 1.0)),
        };
        if struck {
            self.done += 1;
        }
        struck.then(|| self.action.clone())
    }
}
