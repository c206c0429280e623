//! The document's routes are the router's: by the source, and by asking.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{document, operations};
use crate::support::http::{Connection, get};
use crate::support::place::{Kind, Place};

/// Where the private router's routes stand.
const FILES: [&str; 2] = ["src/deliver", "src/operate"];

/// `METHOD path` of every `.route("…", get(…).post(…))` in this text.
fn routes(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for call in source.split(".route(").skip(1) {
        let path = call.split('"').nth(1).unwrap();
        // The call ends where its bracket closes.
        let mut depth = 1;
        let end = call.find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0
        });
        let call = &call[..end.unwrap()];
        for method in ["get", "post", "put", "patch", "delete"] {
            if call.contains(&format!("{method}(")) {
                found.insert(format!("{} {path}", method.to_ascii_uppercase()));
            }
        }
    }
    found
}

#[test]
fn the_routes_in_the_source_are_the_documents() {
    let mut source = BTreeSet::new();
    for folder in FILES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in fs::read_dir(folder).unwrap() {
            source.append(&mut routes(&fs::read_to_string(entry.unwrap().path()).unwrap()));
        }
    }
    let document = document();
    let operations = operations(&document);
    let documented: BTreeSet<String> = operations
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    assert_eq!(source, documented);
}

#[tokio::test]
async fn the_command_line_and_the_gateway_tell_the_same_document() {
    let place = Place::new(Kind::Sqlite);
    let printed = place.home.command(&["openapi"]).output().unwrap();
    assert_eq!(String::from_utf8(printed.stderr).unwrap(), "");
    let gateway = place.start();
    let served = get(gateway.private, "/v1/openapi.json", &[]).await;
    assert_eq!(serde_json::from_slice::<Value>(&printed.stdout).unwrap(), served.json());
    assert_eq!(served.json(), document());
}

#[test]
fn routes_are_read_from_source() {
    let text = r#"Router::new().route("/a", get(x::list)).route(
        "/b/{c}", post(y).get(z)).with_state(s)"#;
    let found: Vec<String> = routes(text).into_iter().collect();
    assert_eq!(found, ["GET /a", "GET /b/{c}", "POST /b/{c}"]);
}

#[tokio::test]
async fn every_documented_route_is_there_and_takes_no_other_method() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let document = document();
    for operation in operations(&document) {
        let path = operation.path.replace("{consumer}", "default").replace("{id}", "x");
        let mut connection = Connection::open(gateway.private).await;
        let answer = connection.request("PUT", &path, &[], b"").await.unwrap();
        assert_eq!(answer.status, 405, "{path}");
        let allowed: Vec<&str> = answer.header("allow").unwrap().split(',').collect();
        assert!(allowed.contains(&&*operation.method), "{path} {allowed:?}");
        for method in allowed.into_iter().filter(|method| *method != "HEAD") {
            let is_documented =
                document["paths"][operation.path].get(method.to_ascii_lowercase()).is_some();
            assert!(is_documented, "{method} {path}");
        }
    }
}
