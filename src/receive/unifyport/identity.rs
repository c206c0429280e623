//! What makes two deliveries the same event.
//!
//! The signature covers the body's own `id` and not the `X-Device-Event-Id` header. So the signed
//! id is the key where there is one: a captured delivery, replayed under another header, stays one
//! event and cannot take the place of a later one. Without a signed id the header is the key, in a
//! space of its own, and the signed bytes themselves are a second key that no header can change.

use sha2::{Digest, Sha256};

use crate::event::Identity;
use crate::json;

/// Longer ids are keyed by their hash, because they would not fit an index.
const LONGEST: usize = 64;

/// The identity of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What deduplicates it.
    pub identity: Identity,
    /// The same for people: the id, or `sha256:` and the hash that stands for it.
    pub external_id: String,
    /// The header and the signed id differ.
    pub mismatch: bool,
}

/// Names a delivery by what it carries: its `X-Device-Event-Id` header, if any, the verbatim
/// timestamp header and the body, both signed.
#[must_use]
pub fn name(header: Option<&[u8]>, timestamp: &[u8], body: &[u8], body_hash: &[u8; 32]) -> Named {
    let header = header.filter(|header| !blank(header));
    let signed = json::top_level_string(body, "id").filter(|id| !blank(id));
    if let Some(signed) = signed {
        let mismatch = header.is_some_and(|header| header != &*signed);
        let (key, external_id) = key(b'i', &signed);
        return Named { identity: Identity { key, alias: None }, external_id, mismatch };
    }
    let alias = Some(spaced(b's', &signed_hash(timestamp, body)));
    let (key, external_id) = match header {
        Some(header) => key(b'h', header),
        None => (spaced(b'b', body_hash), shown(body_hash)),
    };
    Named { identity: Identity { key, alias }, external_id, mismatch: false }
}

/// The hash of what the signature covers.
fn signed_hash(timestamp: &[u8], body: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(timestamp).chain_update(b".").chain_update(body).finalize().into()
}

/// The key of an id in the space that `space` names, upper case for hashed ones.
fn key(space: u8, id: &[u8]) -> (Vec<u8>, String) {
    let plain = std::str::from_utf8(id).ok();
    let plain = plain.filter(|id| id.len() <= LONGEST && !id.contains(char::is_control));
    match plain {
        Some(plain) => (spaced(space, id), plain.to_owned()),
        None => {
            let hash = Sha256::digest(id);
            (spaced(space.to_ascii_uppercase(), &hash), shown(&hash))
        }
    }
}

fn spaced(space: u8, key: &[u8]) -> Vec<u8> {
    [&[space], key].concat()
}

fn shown(hash: &[u8]) -> String {
    format!("sha256:{}", hex::encode(hash))
}

/// An id of nothing but blanks would make one event of many.
fn blank(id: &[u8]) -> bool {
    id.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(header: Option<&str>, timestamp: &str, body: &str) -> Named {
        let hash = Sha256::digest(body).into();
        name(header.map(str::as_bytes), timestamp.as_bytes(), body.as_bytes(), &hash)
    }

    #[test]
    fn the_signed_id_wins_and_a_mismatch_is_told() {
        let one = named(Some("evt_1"), "t", r#"{"id":"evt_1"}"#);
        let replayed = named(Some("evt_2"), "t", r#"{"id":"evt_1"}"#);
        assert_eq!(one.identity, replayed.identity);
        assert_eq!((one.mismatch, replayed.mismatch), (false, true));
        assert_eq!(one.external_id, "evt_1");
        assert!(!named(None, "t", r#"{"id":"evt_1"}"#).mismatch);
    }

    #[test]
    fn without_a_signed_id_the_header_is_the_key_in_its_own_space() {
        let header = named(Some("evt_1"), "t", "{}");
        assert_ne!(header.identity.key, named(None, "t", r#"{"id":"evt_1"}"#).identity.key);
        for body in [r#"{"id":7}"#, r#"{"id":""}"#, r#"{"id":" "}"#, "not json", "[]", ""] {
            assert_eq!(named(Some("evt_1"), "t", body).identity.key, header.identity.key, "{body}");
        }
        let same_bytes = named(Some("evt_9"), "t", "{}");
        assert_eq!(header.identity.alias, same_bytes.identity.alias);
        assert_ne!(header.identity.alias, named(Some("evt_1"), "u", "{}").identity.alias);
    }

    #[test]
    fn without_any_id_the_body_is_the_key() {
        let (a, b) = (named(None, "t", "x"), named(Some(" "), "u", "x"));
        assert_eq!(a.identity.key, b.identity.key);
        assert!(a.external_id.starts_with("sha256:"));
    }

    #[test]
    fn odd_ids_are_keyed_by_their_hash() {
        for id in ["a".repeat(65), "a\\u0000b".to_owned(), "a\\nb".to_owned()] {
            let named = named(None, "t", &format!(r#"{{"id":"{id}"}}"#));
            assert_eq!((named.identity.key[0], named.identity.key.len()), (b'I', 33), "{id}");
            assert!(named.external_id.starts_with("sha256:"));
        }
    }
}
