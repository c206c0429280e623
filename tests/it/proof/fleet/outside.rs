//! The world outside, in which acts cannot be taken back, and a worker's acts in it.

use std::collections::HashMap;
use std::sync::Mutex;

use inboxd::clock::Time;
use serde_json::json;

use super::record::Held;
use super::worker::Worker;
use crate::support::delivery::now;

/// How often each key was acted on.
#[derive(Default)]
pub(super) struct Outside(Mutex<HashMap<String, u32>>);

impl Outside {
    /// Acts, if it is not too late.
    fn act(&self, key: &str, end: Time) -> bool {
        let mut acts = self.0.lock().unwrap();
        let in_time = now() < end;
        if in_time {
            *acts.entry(key.to_owned()).or_default() += 1;
        }
        in_time
    }

    /// Whether it was acted on.
    fn knows(&self, key: &str) -> bool {
        self.0.lock().unwrap().contains_key(key)
    }

    /// How often it was acted on.
    pub(super) fn acts_on(&self, key: &str) -> u32 {
        self.0.lock().unwrap().get(key).copied().unwrap_or_default()
    }
}

/// One in so many acts outside is cut short by the worker's death at each of two places.
const DIES: u32 = 12;
/// A receipt may be asked about its effect so often, each time after it was abandoned.
const ROUNDS: u32 = 10;

impl Worker {
    /// Acts outside, around the act as README says: true once it has happened, false if the work is
    /// no longer this worker's; none if the worker dies.
    pub(super) async fn act_outside(&mut self, held: &Held) -> Option<bool> {
        let (fleet, key) = (self.fleet.clone(), &held.event);
        let begin = json!({"key": key, "receipt": held.receipt});
        for _ in 0..ROUNDS {
            let told = self.line.call("effects/begin", &begin).await;
            if told.status == 409 {
                return Some(false);
            }
            let token = told.json["token"].as_str().unwrap_or_default();
            let finish = json!({"key": key, "token": token, "result": {"event": held.sequence}});
            match told.json["state"].as_str() {
                Some("finished") => {
                    let expected = json!({"event": held.sequence});
                    fleet.oracle.expect(told.json["result"] == expected, || {
                        format!("of {held:?} was recorded {}", told.json)
                    });
                    fleet.oracle.expect(fleet.outside.knows(key), || {
                        format!("{held:?} is said to have happened")
                    });
                    return Some(true);
                }
                Some("in_doubt") => {
                    fleet.oracle.in_doubt();
                    if fleet.outside.knows(key) {
                        self.line.call("effects/finish", &finish).await;
                        return Some(true);
                    }
                    let abandon = json!({"key": key, "token": token});
                    self.line.call("effects/abandon", &abandon).await;
                }
                Some("begun") => {
                    self.may_die(DIES)?;
                    if !fleet.outside.act(key, fleet.oracle.lease_end(&held.receipt)) {
                        return Some(false);
                    }
                    self.may_die(DIES)?;
                    self.line.call("effects/finish", &finish).await;
                    return Some(true);
                }
                // Nobody else can hold the lease of the event that the key is of.
                _ => {
                    fleet.oracle.fault(format!("{held:?} was told {} {}", told.status, told.json));
                    return Some(false);
                }
            }
        }
        fleet.oracle.fault(format!("{held:?} is in doubt again and again"));
        Some(false)
    }
}
