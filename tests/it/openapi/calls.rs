//! A client that takes no answer which the document does not promise.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;

use super::schema::faults;
use super::{Operation, operations};
use crate::support::http::{Connection, Response};

pub(super) struct Client<'a> {
    document: &'a Value,
    operations: Vec<Operation<'a>>,
    address: SocketAddr,
    /// The operation and the status of every answer.
    seen: BTreeSet<(String, u16)>,
}

/// What is sent beside the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent<'a> {
    pub(super) token: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

impl<'a> Client<'a> {
    pub(super) fn new(document: &'a Value, address: SocketAddr) -> Client<'a> {
        Client { document, operations: operations(document), address, seen: BTreeSet::new() }
    }

    pub(super) fn operations(&self) -> Vec<Operation<'a>> {
        self.operations.clone()
    }

    /// Talks to another gateway from now on.
    pub(super) fn turn_to(&mut self, address: SocketAddr) {
        self.address = address;
    }

    pub(super) async fn get(&mut self, token: &str, path: &str) -> Response {
        self.call("GET", path, Sent { token, ..Sent::default() }).await
    }

    pub(super) async fn post(&mut self, token: &str, path: &str, body: Value) -> Response {
        let body = body.to_string();
        let sent = Sent { token, headers: &[JSON], body: body.as_bytes() };
        self.call("POST", path, sent).await
    }

    /// Asks, and holds the answer against the document.
    pub(super) async fn call(&mut self, method: &str, path: &str, sent: Sent<'_>) -> Response {
        let bearer = format!("Bearer {}", sent.token);
        let mut headers = sent.headers.to_vec();
        if !sent.token.is_empty() {
            headers.push(("Authorization", &bearer));
        }
        let mut connection = Connection::open(self.address).await;
        let answer = connection.request(method, path, &headers, sent.body).await.unwrap();
        self.judge(method, path, &answer);
        answer
    }

    /// Fails the test unless the document promises this answer.
    pub(super) fn judge(&mut self, method: &str, path: &str, answer: &Response) {
        let operation = self.operation(method, path);
        let told = format!("{method} {path}: {answer:?}");
        let status = answer.status.to_string();
        let documented = operation.answer(self.document, &status);
        let documented = documented.unwrap_or_else(|| panic!("no such status: {told}"));
        for (name, header) in documented["headers"].as_object().into_iter().flatten() {
            let is = answer.header(&name.to_ascii_lowercase());
            assert!(is.is_some() || header["required"] != true, "no {name}: {told}");
        }
        let content = documented["content"].as_object().unwrap();
        let kind = answer.header("content-type").unwrap_or_else(|| panic!("no type: {told}"));
        let schema = content.get(kind).unwrap_or_else(|| panic!("another type: {told}"));
        if kind.ends_with("json") {
            let found = faults(self.document, &schema["schema"], &answer.json());
            assert_eq!(found, Vec::<String>::new(), "{told}");
        }
        self.seen.insert((operation.id().to_owned(), answer.status));
    }

    /// Fails the test unless this is what the schema of that name describes.
    pub(super) fn fits(&self, schema: &str, value: &Value) {
        let schema = &self.document["components"]["schemas"][schema];
        assert_eq!(faults(self.document, schema, value), Vec::<String>::new(), "{value}");
    }

    /// The operation that this request is one of; a path without variables comes first.
    fn operation(&self, method: &str, path: &str) -> Operation<'a> {
        let path = path.split('?').next().unwrap();
        let fits = |one: &&Operation<'a>| one.method == method && one.takes(path);
        let fitting = self.operations.iter().filter(fits);
        fitting.min_by_key(|one| one.path.matches('{').count()).unwrap().clone()
    }

    /// Which documented answers never came, beside those of these statuses.
    pub(super) fn missing(&self, beside: &[&str]) -> Vec<String> {
        let mut missing = vec![];
        for operation in &self.operations {
            for status in operation.object["responses"].as_object().unwrap().keys() {
                let key = (operation.id().to_owned(), status.parse().unwrap());
                if !beside.contains(&&**status) && !self.seen.contains(&key) {
                    missing.push(format!("{} {status}", operation.id()));
                }
            }
        }
        missing
    }
}
