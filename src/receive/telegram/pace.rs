//! Every wait of a poller, in one place, so that tests can run them faster.

use std::time::Duration;

use super::answer::Trouble;
use super::bot_api::Deadlines;
use crate::retry::{Backoff, between};

/// How long a poller waits for what.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// What a second of the rules below is; the server's own times are not scaled by it.
    scale: f64,
    /// Time for an answer, beyond that for which the server was asked to hold it.
    answer: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::scaled(1.0)
    }
}

/// How long each kind of update lives at Telegram, and what it is called.
const LIFETIMES: [(u64, &str); 4] = [
    (30, "inline queries"),
    (150, "callback, shipping and pre-checkout queries"),
    (600, "chosen inline results"),
    (86_400, "messages and all others"),
];

impl Pace {
    /// All waits times `scale`, for tests against a server whose clock runs as fast.
    #[must_use]
    pub fn scaled(scale: f64) -> Pace {
        Pace { scale, answer: Duration::from_secs(15).mul_f64(scale) }
    }

    /// The same with so much time for an answer, whatever the scale: for tests on a busy machine.
    #[must_use]
    pub fn answered_within(self, answer: Duration) -> Pace {
        Pace { answer, ..self }
    }

    fn seconds(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * self.scale)
    }

    /// How long a poll really is that asks to be held for so many seconds.
    pub(super) fn held(&self, seconds: u64) -> Duration {
        Duration::from_secs(seconds).mul_f64(self.scale)
    }

    /// Deadlines of one call.
    #[must_use]
    pub fn deadlines(&self) -> Deadlines {
        Deadlines {
            connect: self.answer.mul_f64(2.0 / 3.0),
            answer: self.answer,
            scale: self.scale,
        }
    }

    /// For how long a lease is taken.
    pub(super) fn lease(&self) -> Duration {
        self.seconds(10.0)
    }

    /// Between two renewals of the lease.
    pub(super) fn renewal(&self) -> Duration {
        self.seconds(3.0)
    }

    /// Between two looks whether the lease is free.
    pub(super) fn standby(&self) -> Duration {
        self.seconds(0.5)
    }

    /// Between two looks at the server's own state.
    pub(super) fn probe(&self) -> Duration {
        self.seconds(300.0)
    }

    /// After a failure of the store; less than 0.5 s would make the server send single updates.
    pub(super) fn store(&self, failures: u32) -> Duration {
        self.errors().wait(failures, rand::random()).max(self.seconds(1.0))
    }

    /// After a batch that brought nothing new.
    pub(super) fn no_progress(&self, failures: u32) -> Duration {
        self.errors().wait(failures, rand::random())
    }

    /// After a poll that was to be held but came back empty at once.
    pub(super) fn empty(&self, times: u32) -> Duration {
        let backoff = Backoff { first: self.seconds(1.0), max: self.seconds(5.0) };
        backoff.wait(times, rand::random())
    }

    /// After so many answers in a row that brought nothing but trouble.
    pub(super) fn trouble(&self, trouble: &Trouble, failures: u32) -> Duration {
        let random = rand::random();
        let patient = Backoff { first: self.seconds(1.0), max: self.seconds(300.0) };
        match trouble {
            Trouble::OtherPoller => between(self.seconds(5.0), self.seconds(30.0), random),
            Trouble::Webhook => between(self.seconds(30.0), self.seconds(60.0), random),
            Trouble::Unauthorized
            | Trouble::Forbidden
            | Trouble::NotFound
            | Trouble::Misdirected
            | Trouble::LoggedOut => patient.wait(failures, random),
            // What was asked for, and a little more, so that not all come back at once; and more
            // if that does not help.
            Trouble::TooMany(Some(wait)) => {
                let asked = wait.mul_f64(self.scale * (1.0 + random / 5.0));
                asked.max(self.errors().wait(failures, random))
            }
            _ => self.errors().wait(failures, random),
        }
    }

    fn errors(&self) -> Backoff {
        Backoff { first: self.seconds(1.0), max: self.seconds(30.0) }
    }

    /// The kinds of update that do not live as long as this silence.
    pub(super) fn expired(&self, silence: Duration) -> Vec<&'static str> {
        let shorter = LIFETIMES.iter().filter(|(life, _)| silence > self.held(*life));
        shorter.map(|(_, kinds)| *kinds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lasting_trouble_makes_more_than_30_requests_a_minute() {
        let troubles = [
            Trouble::Network("cannot connect"),
            Trouble::Foreign(502),
            Trouble::Odd("x"),
            Trouble::Server(500),
            Trouble::TooMany(None),
            Trouble::TooMany(Some(Duration::from_secs(1))),
            Trouble::TooMany(Some(Duration::from_secs(5))),
            Trouble::OtherPoller,
            Trouble::Webhook,
            Trouble::Unauthorized,
            Trouble::Refused(400),
        ];
        for trouble in troubles {
            let (mut elapsed, mut requests) = (Duration::ZERO, 0);
            while elapsed < Duration::from_secs(60) {
                requests += 1;
                elapsed += Pace::default().trouble(&trouble, requests);
            }
            assert!(requests <= 30, "{trouble:?}: {requests}");
        }
    }

    #[test]
    fn a_silence_names_what_it_can_have_cost() {
        let pace = Pace::default();
        assert_eq!(pace.expired(Duration::from_secs(30)).len(), 0);
        assert_eq!(pace.expired(Duration::from_secs(31)), ["inline queries"]);
        assert_eq!(pace.expired(Duration::from_secs(90_000)).len(), 4);
    }
}
