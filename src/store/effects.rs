//! What workers did outside, recorded around the act.
//!
//! A row is begun or finished. Whether a begun one is running or in doubt is not written down but
//! read from the work of the event that began it, because nobody writes when a worker dies. Once
//! somebody was told that it is in doubt, its receipt is emptied: whoever began it has lost it, even
//! if it extends its lease later.

use async_trait::async_trait;

use super::Result;
use crate::clock::Time;
use crate::effect::{Begun, Effect, EffectPage, EffectQuery, Key, Token};
use crate::event::Sequence;
use crate::work::Receipt;

/// What workers did outside, recorded around the act. Keys are per consumer.
#[async_trait]
pub trait Effects {
    /// Records that whoever holds `receipt` is about to act, unless the key says otherwise; of any
    /// number who ask at once, one is told [`Begun::Begun`]. A receipt is good as for an ack: also
    /// after its lease ran out, while nobody else has the work.
    async fn begin_effect(&self, consumer: &str, key: Key, receipt: Receipt) -> Result<Begun>;

    /// Records that it has happened, with `result`, if `token` is the newest given; no lease is
    /// needed. The same again is true again, because the answer may have been lost; another result
    /// is not.
    async fn finish_effect(
        &self,
        consumer: &str,
        key: Key,
        token: Token,
        result: Option<Vec<u8>>,
    ) -> Result<bool>;

    /// Removes what was begun and is known not to have happened, if `token` is the newest given.
    async fn abandon_effect(&self, consumer: &str, key: Key, token: Token) -> Result<bool>;

    /// A page of a consumer's effects, oldest begun first.
    async fn effects(&self, consumer: &str, query: EffectQuery) -> Result<EffectPage>;
}

/// Begins what nobody has begun.
pub(super) const BEGIN: &str = "INSERT INTO effects (consumer_id, key_hash, key, event_seq,
        receipt, token, state, begun_at) VALUES ($1, $2, $3, $4, $5, $6, 'begun', $7)
    ON CONFLICT (consumer_id, key_hash) DO NOTHING";

/// Whether whoever began it holds its lease.
pub(super) const HOLDS: &str = "SELECT count(*) FROM work
    WHERE consumer_id = $1 AND event_seq = $2 AND receipt = $3 AND state = 1 AND due_at > $4";

/// Gives a new token to the one who is to find out.
pub(super) const DOUBT: &str = "UPDATE effects SET token = $3, receipt = $4
    WHERE consumer_id = $1 AND key_hash = $2";

// Of one key it is asked whether there is a time and not which state, because PostgreSQL would take
// the index of that state for it while the table is small, and read all of it ever after.

pub(super) const FINISH: &str = "UPDATE effects
    SET state = 'finished', finished_at = $5, result = $4
    WHERE consumer_id = $1 AND key_hash = $2 AND token = $3 AND finished_at IS NULL";

/// What was recorded under this token.
pub(super) const RESULT: &str = "SELECT result FROM effects
    WHERE consumer_id = $1 AND key_hash = $2 AND token = $3 AND finished_at IS NOT NULL";

pub(super) const ABANDON: &str = "DELETE FROM effects
    WHERE consumer_id = $1 AND key_hash = $2 AND token = $3 AND finished_at IS NULL";

/// Those without a result, behind a place; `$5` is now, `$6` whether their beginners hold them.
pub(super) const UNFINISHED: &str = "SELECT f.key, e.id, f.begun_at, f.finished_at, f.held FROM (
        SELECT *, (SELECT count(*) FROM work AS w
                   WHERE w.consumer_id = b.consumer_id AND w.event_seq = b.event_seq
                     AND w.receipt = b.receipt AND w.state = 1 AND w.due_at > $5) AS held
        FROM effects AS b
        WHERE b.consumer_id = $1 AND b.state = 'begun' AND (b.begun_at, b.key_hash) > ($2, $3)
    ) AS f LEFT JOIN events AS e ON e.seq = f.event_seq
    WHERE CAST($6 AS BIGINT) IS NULL OR f.held = $6
    ORDER BY f.begun_at, f.key_hash LIMIT $4";

/// Those with a result, behind a place.
pub(super) const FINISHED: &str = "SELECT f.key, e.id, f.begun_at, f.finished_at
    FROM effects AS f LEFT JOIN events AS e ON e.seq = f.event_seq
    WHERE f.consumer_id = $1 AND f.state = 'finished' AND (f.begun_at, f.key_hash) > ($2, $3)
    ORDER BY f.begun_at, f.key_hash LIMIT $4";

/// A row whose key was asked for.
pub(super) struct Row {
    /// The event whose delivery began it.
    pub(super) event: Sequence,
    /// Of the claim that began it; empty once it was told to be in doubt.
    pub(super) receipt: Vec<u8>,
    pub(super) token: Vec<u8>,
    pub(super) finished: bool,
    pub(super) begun_at: i64,
    pub(super) result: Option<Vec<u8>>,
}

/// Reads event, receipt, token, state, time and result.
macro_rules! effect_row {
    ($row:expr) => {
        $crate::store::effects::Row {
            event: $row.get(0),
            receipt: $row.get(1),
            token: $row.get(2),
            finished: $row.get::<String, _>(3) == "finished",
            begun_at: $row.get(4),
            result: $row.get(5),
        }
    };
}
pub(super) use effect_row;

impl Row {
    /// What the holder of `asker` is told, given whether the beginner `holds` its lease. If that is
    /// in doubt, the token in it is to be written down.
    pub(super) fn tell(self, asker: Receipt, holds: bool) -> Begun {
        if self.finished {
            return Begun::Finished(self.result);
        }
        if self.event == asker.sequence && self.receipt == asker.token {
            return Begun::Again(Token(self.token.try_into().unwrap_or_default()));
        }
        if holds {
            return Begun::Running;
        }
        Begun::InDoubt { begun_at: Time::from_micros(self.begun_at), token: Token::fresh() }
    }
}

/// Reads the columns that [`UNFINISHED`] and [`FINISHED`] begin with; none for a key that this
/// program never wrote.
macro_rules! effect {
    ($row:expr, $state:expr) => {
        $crate::effect::Key::try_from($row.get::<String, _>(0)).ok().map(|key| {
            $crate::effect::Effect {
                key,
                event_id: $row.get(1),
                begun_at: $crate::clock::Time::from_micros($row.get(2)),
                state: $state,
                finished_at: $row.get::<Option<i64>, _>(3).map($crate::clock::Time::from_micros),
            }
        })
    };
}
pub(super) use effect;

/// What a page's statements are given: the time and the hash that they begin behind, and how many
/// rows tell whether there are more.
pub(super) fn bounds(query: &EffectQuery) -> (i64, Vec<u8>, i64) {
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    match query.after {
        Some(after) => (after.begun_at.micros(), after.hash.to_vec(), limit),
        None => (i64::MIN, Vec::new(), limit),
    }
}

/// The page of what the statements gave, each in order and up to one beyond the limit.
pub(super) fn page(mut effects: Vec<Effect>, query: &EffectQuery) -> EffectPage {
    effects.sort_by_cached_key(Effect::place);
    let more = effects.len() > query.limit;
    effects.truncate(query.limit);
    EffectPage { effects, more }
}
