//! The nouns of effects: what a worker does outside, recorded around the act, so that a crash
//! between the act and the ack is seen and not repeated.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::clock::Time;

/// Characters of a key, at the most.
pub const LONGEST_KEY: usize = 1024;

/// The worker's idempotency key: names one act of one consumer, and is what the outside is asked by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

/// The text is no [`Key`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAKey {
    /// Empty, or longer than [`LONGEST_KEY`].
    #[error("must have 1 to {LONGEST_KEY} characters")]
    Length,
    /// It holds a NUL, which PostgreSQL has no text with.
    #[error("must hold no NUL character")]
    Nul,
}

impl Key {
    /// The key as the worker wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the store finds it by: a key may be longer than an index entry.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}

impl TryFrom<String> for Key {
    type Error = NotAKey;
    fn try_from(text: String) -> Result<Key, NotAKey> {
        if !(1..=LONGEST_KEY).contains(&text.chars().count()) {
            return Err(NotAKey::Length);
        }
        if text.contains('\0') {
            return Err(NotAKey::Nul);
        }
        Ok(Key(text))
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.0
    }
}

/// Lets its holder record how an effect ended, until a newer one is given. Opaque to the worker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub [u8; 16]);

impl Token {
    /// One that was never given before.
    pub fn fresh() -> Token {
        Token(rand::random())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is nothing that this program ever gave.
#[derive(Debug, thiserror::Error)]
#[error("not given by this program")]
pub struct NotGiven;

impl FromStr for Token {
    type Err = NotGiven;
    fn from_str(text: &str) -> Result<Token, NotGiven> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotGiven)?;
        bytes.try_into().map(Token).map_err(|_| NotGiven)
    }
}

/// What whoever wants to act is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nobody began it, or it is known not to have happened: act, then finish.
    Begun(Token),
    /// This very receipt began it: the answer may have been lost. The same token again.
    Again(Token),
    /// Whoever began it still holds its lease: come back later.
    Running,
    /// Whoever began it is gone and recorded nothing, so it may have happened or not: find out,
    /// then finish or abandon.
    InDoubt {
        /// When it was begun first.
        begun_at: Time,
        /// Fresh; all older ones are no longer good.
        token: Token,
    },
    /// It has happened, with this result: JSON text as it was recorded.
    Finished(Option<Vec<u8>>),
    /// The receipt is not good, so the work is not the asker's to act on.
    Stale,
}

/// How far an effect has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Begun, and whoever began it no longer holds its lease.
    InDoubt,
    /// Begun by somebody who still holds its lease.
    Running,
    /// Its result is recorded.
    Finished,
}

/// One effect, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The worker's key.
    pub key: Key,
    /// The event whose delivery began it.
    pub event_id: Option<Uuid>,
    /// When it was begun first.
    pub begun_at: Time,
    /// How far it has come.
    pub state: State,
    /// When its result was recorded.
    pub finished_at: Option<Time>,
}

/// The place of an effect in the order of pages: by when it was begun, then by its key's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When it was begun first.
    pub begun_at: Time,
    /// [`Key::hash`].
    pub hash: [u8; 32],
}

impl Effect {
    /// Where it stands.
    pub fn place(&self) -> Place {
        Place { begun_at: self.begun_at, hash: self.key.hash() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begun_at = self.begun_at.micros().to_be_bytes();
        f.write_str(&URL_SAFE_NO_PAD.encode([&begun_at[..], &self.hash].concat()))
    }
}

impl FromStr for Place {
    type Err = NotGiven;
    fn from_str(text: &str) -> Result<Place, NotGiven> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotGiven)?;
        let (begun_at, hash) = bytes.split_first_chunk::<8>().ok_or(NotGiven)?;
        let hash = hash.try_into().map_err(|_| NotGiven)?;
        Ok(Place { begun_at: Time::from_micros(i64::from_be_bytes(*begun_at)), hash })
    }
}

/// Which effects of a consumer to read, oldest begun first.
#[derive(Clone, Debug)]
pub struct EffectQuery {
    /// Only those; all if none.
    pub state: Option<State>,
    /// Only those behind it.
    pub after: Option<Place>,
    /// At most so many.
    pub limit: usize,
}

/// Effects, and whether there are more behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectPage {
    /// In order.
    pub effects: Vec<Effect>,
    /// Whether there are more.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Result<Key, NotAKey> {
        Key::try_from(text.to_owned())
    }

    #[test]
    fn a_key_has_a_length_and_no_nul() {
        assert_eq!(key(""), Err(NotAKey::Length));
        assert_eq!(key(&"é".repeat(LONGEST_KEY)).unwrap().as_str().len(), 2 * LONGEST_KEY);
        assert_eq!(key(&"é".repeat(LONGEST_KEY + 1)), Err(NotAKey::Length));
        assert_eq!(key("a\0b"), Err(NotAKey::Nul));
        assert_eq!(key("\n"), Ok(Key("\n".to_owned())));
    }

    #[test]
    fn tokens_and_places_survive_being_written_and_read() {
        let token = Token::fresh();
        assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        let place = Place { begun_at: Time::from_micros(-5), hash: [255; 32] };
        assert_eq!(place.to_string().parse::<Place>().unwrap(), place);
        for text in ["", "AAAA", "not base64!", &"A".repeat(23), &"A".repeat(60)] {
            assert!(text.parse::<Token>().is_err() && text.parse::<Place>().is_err(), "{text}");
        }
    }
}
