//! The UnifyPort signature against published vectors, and its properties.

use inboxd::receive::unifyport::signature::{SignatureError, sign, verify};
use proptest::prelude::*;

#[derive(serde::Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[derive(serde::Deserialize)]
struct Vector {
    name: String,
    secret: String,
    timestamp: String,
    body_hex: String,
    signature: String,
    valid: bool,
}

#[test]
fn every_vector_is_judged_as_it_says() {
    let Vectors { vectors } =
        serde_json::from_str(include_str!("vectors/unifyport-signature.json")).unwrap();
    assert_eq!(vectors.len(), 25);
    for Vector { name, secret, timestamp, body_hex, signature, valid } in vectors {
        let body = hex::decode(body_hex).unwrap();
        let (secret, timestamp) = (secret.as_bytes(), timestamp.as_bytes());
        let verdict = verify([secret], timestamp, &body, signature.as_bytes());
        assert_eq!(verdict.is_ok(), valid, "{name}: {verdict:?}");
        let ours = sign(secret, timestamp, &body);
        assert_eq!(ours == signature.to_ascii_lowercase(), valid, "{name}: {ours}");
    }
}

proptest! {
    #[test]
    fn what_is_signed_verifies_in_any_place_and_case(
        // HMAC pads short keys with zeros, so secrets with zeros at the end may be the same key.
        secrets in proptest::collection::vec(proptest::collection::vec(1..=255_u8, 1..80), 1..6),
        chosen in any::<prop::sample::Index>(),
        timestamp: Vec<u8>,
        body: Vec<u8>,
        upper: bool,
    ) {
        let secret = &secrets[chosen.index(secrets.len())];
        let mut signature = sign(secret, &timestamp, &body);
        if upper {
            signature.make_ascii_uppercase();
        }
        let position = secrets.iter().position(|other| other == secret).unwrap();
        prop_assert_eq!(
            verify(secrets.iter().map(Vec::as_slice), &timestamp, &body, signature.as_bytes()),
            Ok(position)
        );
    }

    #[test]
    fn one_changed_bit_anywhere_is_a_mismatch(
        secret in proptest::collection::vec(any::<u8>(), 1..40),
        timestamp in proptest::collection::vec(any::<u8>(), 1..40),
        body in proptest::collection::vec(any::<u8>(), 1..40),
        at: prop::sample::Index,
        bit in 0..8_u32,
    ) {
        let flip = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            bytes
        };
        let signature = sign(&secret, &timestamp, &body);
        let signed = signature.as_bytes();
        let mismatch = Err(SignatureError::Mismatch);
        prop_assert_eq!(verify([&*secret], &timestamp, &flip(&body), signed), mismatch);
        prop_assert_eq!(verify([&*secret], &flip(&timestamp), &body, signed), mismatch);
        prop_assert_eq!(verify([&*flip(&secret)], &timestamp, &body, signed), mismatch);
        let digest = hex::decode(&signature).unwrap();
        let other = hex::encode(flip(&digest));
        prop_assert_eq!(verify([&*secret], &timestamp, &body, other.as_bytes()), mismatch);
    }

    #[test]
    fn no_header_is_a_panic(signature: Vec<u8>, text in "[0-9a-fA-Fg]{62,66}", secret: Vec<u8>) {
        for signature in [signature.as_slice(), text.as_bytes()] {
            let malformed = signature.len() != 64 || !signature.iter().all(u8::is_ascii_hexdigit);
            let expected = if malformed {
                SignatureError::Malformed
            } else if secret.is_empty() {
                SignatureError::NoSecret
            } else {
                SignatureError::Mismatch
            };
            prop_assert_eq!(verify([&*secret], b"t", b"b", signature), Err(expected));
        }
    }
}
