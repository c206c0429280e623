//! The signature of a UnifyPort delivery: making it and checking it. No I/O, no clock.
//!
//! `X-Device-Signature` is the HMAC-SHA256, in hexadecimal, of the `X-Device-Timestamp` header
//! exactly as sent, one ASCII full stop, and the body exactly as sent, under the endpoint's
//! `signing_secret` as it stands. There is no prefix and no key id. Source: UnifyPort's published
//! reference "Webhook delivery and event semantics", and the receiver in its own demo repository.
//!
//! ```
//! use inboxd::receive::unifyport::signature::{sign, verify};
//!
//! let signature = sign(b"secret_1", b"2026-06-08T12:34:56Z", b"{}");
//! let secrets: [&[u8]; 2] = [b"secret_2", b"secret_1"];
//! assert_eq!(verify(secrets, b"2026-06-08T12:34:56Z", b"{}", signature.as_bytes()), Ok(1));
//! ```

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Why a signature was not accepted. A sender is never told which it was, because that would tell
/// a prober one gate from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The header is not 64 hexadecimal digits.
    #[error("the signature is not 64 hexadecimal digits")]
    Malformed,
    /// There is no secret to check against, or only empty ones, which sign nothing.
    #[error("no signing secret is configured")]
    NoSecret,
    /// No secret makes this signature of these bytes.
    #[error("the signature matches none of the secrets")]
    Mismatch,
}

/// The signature UnifyPort would send: 64 lowercase hexadecimal digits.
///
/// `timestamp` is the text of the `X-Device-Timestamp` header. An empty secret is computed like
/// any other here, but [`verify`] never accepts it.
#[must_use]
pub fn sign(secret: &[u8], timestamp: &[u8], body: &[u8]) -> String {
    hex::encode(digest(secret, timestamp, body))
}

/// Checks a signature against every secret, and says the position of the one that made it (the
/// first, if a secret is listed twice).
///
/// Takes the same time for a signature that is right under the first secret, under the last, or
/// under none: digests are compared whole, and no secret is skipped after a match. An empty secret
/// keeps its position and matches nothing.
///
/// # Errors
/// [`SignatureError`] says which check failed.
pub fn verify<'a>(
    secrets: impl IntoIterator<Item = &'a [u8]>,
    timestamp: &[u8],
    body: &[u8],
    signature: &[u8],
) -> Result<usize, SignatureError> {
    let mut given = [0; 32];
    hex::decode_to_slice(signature, &mut given).map_err(|_| SignatureError::Malformed)?;

    let mut any_secret = false;
    let mut matched = Choice::from(0);
    let mut position = 0_u64;
    for (index, secret) in (0_u64..).zip(secrets) {
        if secret.is_empty() {
            continue;
        }
        any_secret = true;
        let matches = digest(secret, timestamp, body).ct_eq(&given);
        position.conditional_assign(&index, matches & !matched);
        matched |= matches;
    }
    if !any_secret {
        Err(SignatureError::NoSecret)
    } else if bool::from(matched) {
        usize::try_from(position).map_err(|_| SignatureError::Mismatch)
    } else {
        Err(SignatureError::Mismatch)
    }
}

fn digest(secret: &[u8], timestamp: &[u8], body: &[u8]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC is defined for a key of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(timestamp);
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &[u8] = b"2026-06-08T12:34:56Z";

    #[test]
    fn the_first_of_two_equal_secrets_is_named() {
        let signature = sign(b"b", TIME, b"x");
        let secrets: [&[u8]; 4] = [b"a", b"b", b"b", b"c"];
        assert_eq!(verify(secrets, TIME, b"x", signature.as_bytes()), Ok(1));
    }

    #[test]
    fn an_empty_secret_verifies_nothing() {
        let signature = sign(b"", TIME, b"x");
        let none: [&[u8]; 0] = [];
        assert_eq!(verify(none, TIME, b"x", signature.as_bytes()), Err(SignatureError::NoSecret));
        assert_eq!(
            verify([&b""[..]], TIME, b"x", signature.as_bytes()),
            Err(SignatureError::NoSecret)
        );
        assert_eq!(
            verify([&b""[..], b"real"], TIME, b"x", signature.as_bytes()),
            Err(SignatureError::Mismatch)
        );
        let real = sign(b"real", TIME, b"x");
        assert_eq!(verify([&b""[..], b"real"], TIME, b"x", real.as_bytes()), Ok(1));
    }

    #[test]
    fn what_is_not_64_hex_digits_is_malformed() {
        for signature in [&b""[..], b"00", &[b'0'; 63], &[b'0'; 65], &[b'g'; 64], &[0xff; 64]] {
            assert_eq!(verify([&b"s"[..]], TIME, b"x", signature), Err(SignatureError::Malformed));
        }
    }
}
