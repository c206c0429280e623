//! What workers do, and what comes of it.

use serde_json::{Value, json};

use super::answers::{OPS, WORKER};
use super::calls::Client;

fn receipts(claimed: &Value) -> Vec<&Value> {
    claimed["deliveries"].as_array().unwrap().iter().map(|one| &one["receipt"]).collect()
}

const CONSUMER: &str = "/v1/consumers/default";

/// What workers do, as one that may act for this consumer alone.
pub(super) async fn work(client: &mut Client<'_>) {
    let path = |end: &str| format!("{CONSUMER}/{end}");
    let claim = json!({ "max": 1000, "lease": "60s", "wait": "1ms" });
    let claimed = client.post(WORKER, &path("claim"), claim.clone()).await.json();
    let held = receipts(&claimed);
    assert!(held.len() >= 5, "{claimed}");
    let begin = |key: &str, receipt: &Value| json!({ "key": key, "receipt": receipt });
    let begun = client.post(WORKER, &path("effects/begin"), begin("a", held[0])).await;
    assert_eq!(begun.status, 201);
    let token = begun.json()["token"].clone();
    let again = client.post(WORKER, &path("effects/begin"), begin("a", held[0])).await;
    assert_eq!((again.status, &again.json()["token"]), (200, &token));
    let other = client.post(WORKER, &path("effects/begin"), begin("a", held[1])).await;
    assert_eq!(other.json(), json!({ "state": "running" }));

    let extend = json!({ "receipts": [held[0], "x"], "lease": "1h30m" });
    let extended = client.post(WORKER, &path("extend"), extend).await.json();
    assert_eq!(extended, json!({ "extended": [held[0]], "stale": ["x"] }));
    let nack = json!({ "receipts": [held[0], "x"], "delay": "0s", "error": "no" });
    let nacked = client.post(WORKER, &path("nack"), nack).await.json();
    assert_eq!(nacked, json!({ "requeued": [held[0]], "dead": [], "stale": ["x"] }));
    let doubtful = client.post(WORKER, &path("effects/begin"), begin("a", held[1])).await.json();
    assert_eq!(doubtful["state"], "in_doubt");
    for state in ["", "?state=in_doubt", "?state=running&limit=1", "?state=finished"] {
        client.get(WORKER, &path(&format!("effects{state}"))).await;
    }
    let stale = client.post(WORKER, &path("effects/begin"), begin("b", held[0])).await;
    assert_eq!((stale.status, &stale.json()["code"]), (409, &json!("stale_receipt")));
    for end in ["effects/finish", "effects/abandon"] {
        let stale = client.post(WORKER, &path(end), json!({ "key": "a", "token": token })).await;
        assert_eq!((stale.status, &stale.json()["code"]), (409, &json!("stale_token")));
    }
    let finish = json!({ "key": "a", "token": doubtful["token"], "result": { "n": [1.50, null] } });
    assert_eq!(client.post(WORKER, &path("effects/finish"), finish).await.status, 200);
    let finished = client.post(WORKER, &path("effects/begin"), begin("a", held[1])).await.json();
    assert_eq!(finished["state"], "finished");
    let begun = client.post(WORKER, &path("effects/begin"), begin("c", held[1])).await.json();
    let abandon = json!({ "key": "c", "token": begun["token"] });
    assert_eq!(client.post(WORKER, &path("effects/abandon"), abandon).await.status, 200);

    let nack = json!({ "receipts": [held[1]], "dead": true });
    let nacked = client.post(WORKER, &path("nack"), nack).await.json();
    assert_eq!(nacked["dead"], json!([held[1]]));
    let ack = json!({ "receipts": [held[2], "x"] });
    let acked = client.post(WORKER, &path("ack"), ack).await.json();
    assert_eq!(acked, json!({ "done": [held[2]], "stale": ["x"] }));
    for token in [OPS, WORKER] {
        assert_eq!(client.get(token, "/v1/consumers").await.status, 200);
        assert_eq!(client.get(token, CONSUMER).await.status, 200);
    }
    let dead = client.get(WORKER, &path("dead?limit=1")).await.json();
    let id = &dead["dead"][0]["event"]["id"];
    let one = client.get(OPS, &format!("/v1/events/{}", id.as_str().unwrap())).await.json();
    let mut work = one["consumers"].as_array().unwrap().iter();
    let of_default = work.find(|work| work["name"] == "default").unwrap();
    assert_eq!(
        (&of_default["state"], &of_default["attempts"][0]["attempt"]),
        (&json!("dead"), &json!(1))
    );
    for requeue in [json!({ "ids": [id] }), json!({ "all": true })] {
        client.post(WORKER, &path("dead/requeue"), requeue).await;
    }
    let replay = json!({ "since": "2020-01-01T00:00:00Z", "source": "main" });
    let replayed = client.post(WORKER, &path("replay"), replay).await.json();
    assert_eq!(replayed, json!({ "replayed": 1 }));
    client.post(OPS, &path("replay"), json!({ "ids": [id] })).await;
}
