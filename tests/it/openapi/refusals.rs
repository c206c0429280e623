//! What any operation of its kind refuses, made from the document.

use std::net::SocketAddr;

use super::Operation;
use super::answers::{OPS, WORKER};
use super::calls::{Client, Sent};
use crate::support::http::{Connection, head};

/// A request for this operation that nothing is wrong with but that it may name nothing.
fn request(operation: &Operation<'_>) -> (String, Vec<u8>) {
    let id = "019ad5f0-7c1b-7e40-9d58-0f6f4b1f6f0a";
    let path = operation.path.replace("{consumer}", "default").replace("{id}", id);
    let required = operation.parameters.iter().filter(|one| one["in"] == "query");
    let required = required.filter(|one| one["required"] == true);
    let query: Vec<String> = required
        .map(|one| {
            format!("{}={}", one["name"].as_str().unwrap(), one["example"].as_str().unwrap())
        })
        .collect();
    let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    (path, operation.body().map(|(_, example)| example.to_string()).unwrap_or_default().into())
}

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// What any operation of its kind refuses.
pub(super) async fn bad_calls(client: &mut Client<'_>) {
    for operation in client.operations() {
        let (path, body) = request(&operation);
        let method = &*operation.method;
        let good = Sent { token: OPS, headers: &JSON, body: &body };
        if !operation.is_open() {
            for token in ["", "x"] {
                client.call(method, &path, Sent { token, ..good }).await;
            }
        }
        if !operation.lets("worker") && !operation.is_open() {
            let refused = client.call(method, &path, Sent { token: WORKER, ..good }).await;
            assert_eq!(refused.json()["code"], "role_forbidden", "{path}");
        }
        if operation.path.contains("{consumer}") {
            let of_other = path.replace("/default", "/other");
            let refused = client.call(method, &of_other, Sent { token: WORKER, ..good }).await;
            assert_eq!(refused.json()["code"], "consumer_forbidden", "{path}");
            for (nobody, code) in
                [("nobody", "unknown_consumer"), ("%ff", "not_found"), ("%00", "not_found")]
            {
                let path = path.replace("default", nobody);
                let unknown = client.call(method, &path, good).await;
                assert_eq!(unknown.json()["code"], code, "{path}");
            }
        }
        if operation.path.contains("{id}") {
            for id in ["nothing", "%ff", "%00", "0190a5b0-0000-7000-8000-000000000000"] {
                let path = operation.path.replace("{id}", id);
                assert_eq!(client.call(method, &path, good).await.status, 404, "{path}");
            }
        }
        if !operation.is_open() {
            let mark = if path.contains('?') { '&' } else { '?' };
            let refused = client.call(method, &format!("{path}{mark}nope=1"), good).await;
            assert_eq!(refused.json()["field"], "nope", "{path}");
        }
        if operation.body().is_some() {
            let large = vec![b' '; 3 << 10];
            for (headers, body, status) in [
                (&JSON[..], &b"{"[..], 400),
                (&JSON, &large, 413),
                (&[], &body, 415),
                (&JSON, b"{\"nope\":1}", 422),
                (&JSON, b"[]", 422),
            ] {
                let refused = client.call(method, &path, Sent { token: OPS, headers, body }).await;
                assert_eq!(refused.status, status, "{path} {refused:?}");
            }
        }
    }
}

/// Bodies that do not come, and pages of another origin: to a gateway without tokens.
pub(super) async fn slow_bodies_and_foreign_pages(client: &mut Client<'_>, address: SocketAddr) {
    client.turn_to(address);
    for operation in client.operations() {
        let (path, body) = request(&operation);
        if !operation.is_open() {
            let headers = [("Origin", "http://evil.example"), JSON[0]];
            let sent = Sent { token: "", headers: &headers, body: &body };
            let refused = client.call(&operation.method, &path, sent).await;
            assert_eq!(refused.json()["code"], "origin_forbidden", "{path}");
        }
        if operation.body().is_some() {
            let mut connection = Connection::open(address).await;
            let head = head(&operation.method, &path, &JSON, body.len());
            connection.write(head.as_bytes()).await.unwrap();
            let refused = connection.response().await.unwrap();
            client.judge(&operation.method, &path, &refused);
            assert_eq!(refused.json()["code"], "body_timeout", "{path}");
        }
    }
}
