//! The document by itself: whole, true to its own examples, and with every code there is.

use std::collections::BTreeSet;

use inboxd::http::problem::Refusal;
use inboxd::http::problem::Unavailable::{self, *};
use serde_json::Value;

use super::schema::{faults, resolve};
use super::{document, operations};

/// Refusals that no private route gives.
const PUBLIC: [&str; 5] = [
    "unauthorized",
    "too_many_failures",
    "queue_full",
    "answer_timeout",
    "endpoint_not_configured",
];

/// Calls `look` with every object in `value`, and the way to it.
fn walk(value: &Value, at: &str, look: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => {
            look(at, value);
            for (name, member) in members {
                walk(member, &format!("{at}/{name}"), look);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| walk(item, &format!("{at}/{n}"), look));
        }
        _ => {}
    }
}

#[test]
fn it_is_of_this_version_and_names_everything_once() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let operations = operations(&document);
    let ids: BTreeSet<&str> = operations.iter().map(|operation| operation.id()).collect();
    assert_eq!(ids.len(), operations.len());
    let tags: Vec<&Value> =
        document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for operation in &operations {
        assert!(tags.contains(&&operation.object["tags"][0]), "{}", operation.id());
        let wanted: Vec<&str> = operation.path.split(['{', '}']).skip(1).step_by(2).collect();
        let path = operation.parameters.iter().filter(|one| one["in"] == "path");
        let path: Vec<&str> = path.map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(path, wanted, "{}", operation.id());
        for link in operation.object["responses"].as_object().unwrap().values() {
            for link in link["links"].as_object().into_iter().flat_map(|links| links.values()) {
                assert!(ids.contains(link["operationId"].as_str().unwrap()), "{link}");
            }
        }
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let document = document();
    let mut used = BTreeSet::new();
    walk(&document, "", &mut |_, object| {
        if let Some(reference) = object.get("$ref") {
            resolve(&document, object);
            used.insert(reference.as_str().unwrap().to_owned());
        }
    });
    let components = document["components"].as_object().unwrap().iter();
    for (kind, all) in components.filter(|(kind, _)| *kind != "securitySchemes") {
        for name in all.as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            // The router's own answer, whatever the operation.
            let is_used = used.contains(&reference) || name == "MethodNotAllowed";
            assert!(is_used, "{reference}");
        }
    }
}

#[test]
fn every_example_is_valid() {
    let document = document();
    let mut seen = 0;
    walk(&document, "", &mut |at, object| {
        // An example inside an example is somebody's payload.
        if at.contains("/example") {
            return;
        }
        let Some(schema) = object.get("schema") else { return };
        let several = object.get("examples").and_then(Value::as_object);
        let several = several.into_iter().flat_map(|all| all.values().map(|one| &one["value"]));
        for example in object.get("example").into_iter().chain(several) {
            assert_eq!(faults(&document, schema, example), Vec::<String>::new(), "{at}");
            seen += 1;
        }
    });
    assert!(seen > 40, "{seen}");
    // What is sent and what comes back is shown wherever it is JSON.
    for operation in operations(&document) {
        if let Some((_, example)) = operation.body() {
            assert!(example.is_object(), "{}", operation.id());
        }
    }
}

#[test]
fn no_object_may_hold_more_than_is_documented() {
    let document = document();
    walk(&document, "", &mut |at, object| {
        let is_schema = object.get("properties").is_some() && object.get("type").is_some();
        // The document's own schema is not repeated in it.
        if is_schema && !at.contains("openapi.json") && !at.contains("/example") {
            assert_eq!(object["additionalProperties"], false, "{at}");
        }
    });
}

/// Every refusal that a private route may give.
fn refusals() -> Vec<Refusal> {
    let text = String::new;
    let unavailable = |reason: Unavailable| Refusal::Unavailable(reason);
    vec![
        Refusal::Malformed(text()),
        Refusal::Unauthenticated,
        Refusal::Role,
        Refusal::Consumer(text()),
        Refusal::Host,
        Refusal::Origin,
        Refusal::NotFound,
        Refusal::UnknownConsumer(text()),
        Refusal::MethodNotAllowed,
        Refusal::BodyTimeout,
        Refusal::BodyIncomplete,
        Refusal::StaleReceipt,
        Refusal::StaleToken,
        Refusal::BodyTooLarge(1),
        Refusal::NotJson,
        Refusal::UnknownField { field: text(), detail: text() },
        Refusal::InvalidValue { field: text(), detail: text() },
        Refusal::Internal,
        unavailable(Store),
        unavailable(TooManyBodies),
        unavailable(ShuttingDown),
    ]
}

#[test]
fn every_code_is_documented_with_its_status() {
    let document = document();
    let schema = &document["components"]["schemas"]["Problem"];
    let documented = schema["properties"]["code"]["enum"].as_array().unwrap();
    let documented: BTreeSet<&str> = documented.iter().map(|code| code.as_str().unwrap()).collect();
    let mut given = BTreeSet::new();
    for refusal in refusals() {
        let problem = refusal.problem();
        given.insert(problem.code);
        let status = problem.status.as_u16();
        let answers = document["components"]["responses"].as_object().unwrap().values();
        let with_code = answers.filter(|answer| {
            let parts = &answer["content"]["application/problem+json"]["schema"]["allOf"][1];
            let codes = parts["properties"]["code"]["enum"].as_array().unwrap();
            parts["properties"]["status"]["const"] == status && codes.contains(&problem.code.into())
        });
        assert!(with_code.count() > 0, "{status} {}", problem.code);
    }
    assert_eq!(documented, given);

    // The table itself, so that a new refusal is not forgotten here.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/problem.rs");
    let source = std::fs::read_to_string(file).unwrap();
    let table = source.split("#[cfg(test)]").next().unwrap();
    let is_code = |text: &&str| {
        text.len() > 5 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let in_table: BTreeSet<&str> = table
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(is_code)
        .filter(|c| !PUBLIC.contains(c))
        .collect();
    let in_table: BTreeSet<&str> =
        in_table.into_iter().filter(|word| !["detail", "status"].contains(word)).collect();
    assert_eq!(in_table, documented);
}
