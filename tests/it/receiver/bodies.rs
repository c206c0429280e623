//! A correctly signed body is stored whatever it holds, to the byte, and spoils nobody's claim.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::on_each_store;
use crate::support::delivery::{Delivery, message};
use crate::support::http::{get, post};
use crate::support::place::MAIN;

/// `(what it is, its bytes, whether every JSON reader takes them)`
fn odd() -> Vec<(&'static str, Vec<u8>, bool)> {
    let png = STANDARD
        .decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
        .unwrap();
    // `{"id":"gzip"}` as gzip writes it.
    let gzip = STANDARD.decode("H4sIAAAAAAACA6tWykxRslJKr8osUKoFAH0dZmsNAAAA").unwrap();
    let deep = format!("{{\"id\":\"deep\",\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let within = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let mut split = b"{\"id\":\"evt_bytes\",\"text\":\"".to_vec();
    split.extend_from_slice(b"\xf0\x9f\"}");
    vec![
        ("PNG", png, false),
        ("gzip", gzip, false),
        ("not UTF-8", split, false),
        ("NUL", b"{\"id\":\"nul\",\"type\":\"a\\u0000b\"}".to_vec(), true),
        ("a bare NUL", b"\0".to_vec(), false),
        ("lone surrogates", b"{\"id\":\"s\",\"text\":\"\\ud800\"}".to_vec(), false),
        ("a lone surrogate as the id", b"{\"id\":\"\\udfff\"}".to_vec(), false),
        ("depth 10,000", deep.into_bytes(), false),
        ("depth 100", within.into_bytes(), true),
        ("empty", vec![], false),
        ("blank", b" \r\n".to_vec(), false),
        ("form", b"payload=%7B%7D&a=1".to_vec(), false),
        ("byte order mark", b"\xef\xbb\xbf{\"id\":\"bom\"}".to_vec(), false),
        ("emoji and U+2028", "{\"id\":\"👋\u{2028}\"}".into(), true),
        ("long digits", b"{\"id\":\"n\",\"n\":1.10e5,\"m\":12345678901234567890}".to_vec(), true),
        ("beyond a double", b"{\"id\":\"inf\",\"n\":1e999}".to_vec(), false),
        ("twice the same key", b"{\"id\":\"k\",\"a\":1,\"a\":2}".to_vec(), true),
        ("unknown type", b"{\"id\":\"u\",\"type\":\"brand.new\",\"data\":[]}".to_vec(), true),
        ("odd types", b"{\"id\":7,\"type\":[],\"provider\":null,\"data\":3}".to_vec(), true),
        ("a long id", format!("{{\"id\":\"{}\"}}", "x".repeat(20_000)).into_bytes(), true),
        ("long attributes", long_attributes(), true),
        ("a list", b"[{\"id\":\"in a list\"}]".to_vec(), true),
        ("cut off", b"{\"id\":\"cut\",\"data\":{".to_vec(), false),
        ("one MiB", vec![b'x'; 1 << 20], false),
    ]
}

fn long_attributes() -> Vec<u8> {
    let long = "é".repeat(5_000);
    format!(
        "{{\"id\":\"l\",\"type\":\"{long}\",\"provider\":\"{long}\",\"account_id\":\"{long}\",\
         \"data\":{{\"conversation\":{{\"id\":\"{long}\"}}}}}}"
    )
    .into_bytes()
}

#[tokio::test]
async fn odd_bodies_are_stored_to_the_byte_and_handed_out_like_any_other() {
    on_each_store(MAIN, async |place, gateway| {
        let odd = odd();
        for (what, body, _) in &odd {
            let mut delivery = Delivery::new(body.clone());
            if *what == "gzip" {
                delivery = delivery.with("Content-Encoding", "gzip");
            }
            for _ in 0..2 {
                assert_eq!(delivery.send(gateway.public).await.status, 204, "{what}");
            }
        }
        let last = Delivery::message("ordinary");
        assert_eq!(last.send(gateway.public).await.status, 204);
        assert_eq!(place.events().await.len(), odd.len() + 1, "each once");

        let json_type = [("Content-Type", "application/json")];
        let path = "/v1/consumers/default/claim";
        let claim = post(gateway.private, path, &json_type, br#"{"max":100}"#).await;
        assert_eq!(claim.status, 200);
        let claimed = claim.json()["deliveries"].as_array().unwrap().clone();
        assert_eq!(claimed.len(), odd.len() + 1);
        for ((what, body, portable), delivery) in odd.iter().zip(&claimed) {
            let event = &delivery["event"];
            assert_eq!(event["specversion"], "1.0");
            if *portable {
                assert_eq!(event["data"], serde_json::from_slice::<Value>(body).unwrap(), "{what}");
                let data = [b"\"data\":", &body[..]].concat();
                let verbatim = claim.body.windows(data.len()).any(|window| window == data);
                assert!(verbatim, "{what} is not handed out as it came");
            } else {
                assert_eq!(event["data_base64"], STANDARD.encode(body), "{what}");
                assert!(event.get("data").is_none(), "{what}");
            }
            let id = event["id"].as_str().unwrap();
            let raw = get(gateway.private, &format!("/v1/events/{id}/raw"), &[]).await;
            assert!(raw.status == 200 && raw.body == *body, "/raw of {what}");
            let one = get(gateway.private, &format!("/v1/events/{id}"), &[]).await.json();
            assert_eq!(one["receipts"], 2, "{what}");
            assert_eq!(one["event"], *event, "{what}");
        }
        let ordinary = claimed.last().unwrap();
        let body: Value = serde_json::from_slice(&message("ordinary")).unwrap();
        assert_eq!(ordinary["event"]["data"], body);
        assert_eq!(ordinary["message"]["text"], "привет 👋");
        let page = get(gateway.private, "/v1/events?limit=500", &[]).await;
        assert_eq!(page.json()["events"].as_array().unwrap().len(), odd.len() + 1);
    })
    .await;
}
