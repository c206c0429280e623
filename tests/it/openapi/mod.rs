//! The OpenAPI document held against what it describes: the router, real answers, itself.

mod answers;
mod bots;
mod calls;
mod document;
mod refusals;
mod routes;
mod schema;
mod work;

use serde_json::Value;

use self::schema::resolve;

/// The document as clients read it.
fn document() -> Value {
    serde_json::to_value(inboxd::openapi::document().unwrap()).unwrap()
}

/// One method of one path, with the path's own parameters.
#[derive(Clone, Debug)]
struct Operation<'a> {
    /// In upper case.
    method: String,
    /// As a template.
    path: &'a str,
    object: &'a Value,
    parameters: Vec<&'a Value>,
}

impl<'a> Operation<'a> {
    fn id(&self) -> &'a str {
        self.object["operationId"].as_str().unwrap()
    }

    /// The schema and the example of a JSON body, if it takes one.
    fn body(&self) -> Option<(&'a Value, &'a Value)> {
        let body = self.object.pointer("/requestBody/content/application~1json")?;
        Some((&body["schema"], &body["example"]))
    }

    /// The answer documented for that status.
    fn answer(&self, document: &'a Value, status: &str) -> Option<&'a Value> {
        self.object["responses"].get(status).map(|answer| resolve(document, answer))
    }

    /// Whether a token of that role may, by the document.
    fn lets(&self, role: &str) -> bool {
        let any = self.object["security"].as_array().unwrap();
        any.iter().any(|one| one["bearer"].as_array().is_some_and(|roles| roles[0] == role))
    }

    /// Whether it needs a token at all.
    fn is_open(&self) -> bool {
        self.object["security"].as_array().unwrap().is_empty()
    }

    /// Whether this path is one of the template's.
    fn takes(&self, path: &str) -> bool {
        let (template, path) = (self.path.split('/'), path.split('/'));
        template.clone().count() == path.clone().count()
            && template.zip(path).all(|(wanted, is)| wanted == is || wanted.starts_with('{'))
    }
}

/// All operations of the document.
fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut all = vec![];
    for (path, item) in document["paths"].as_object().unwrap() {
        let shared = item.get("parameters").and_then(Value::as_array).into_iter().flatten();
        for (method, object) in item.as_object().unwrap() {
            if method == "parameters" {
                continue;
            }
            let own = object.get("parameters").and_then(Value::as_array).into_iter().flatten();
            let parameters = shared.clone().chain(own).map(|one| resolve(document, one)).collect();
            all.push(Operation { method: method.to_ascii_uppercase(), path, object, parameters });
        }
    }
    all
}
