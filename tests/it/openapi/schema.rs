//! A JSON Schema validator for as much of it as the document uses, and no more: what it does not
//! know fails the test, because a keyword left unread would prove nothing.

use inboxd::clock::Time;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Keywords that say nothing about whether a value is valid, or that other tests look at.
const ANNOTATIONS: [&str; 4] = ["contentEncoding", "default", "description", "pattern"];

/// Formats that only tell a generator what to make.
const OWN_FORMATS: [&str; 4] = ["delay", "duration-text", "lease", "wait"];

/// Where `value` breaks `schema`, whose references lead into `document`; empty if it is valid.
pub(super) fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { document, faults: vec![] };
    check.value(schema, value, "");
    check.faults
}

/// What a `{"$ref": "#/…"}` leads to; itself if it is none.
pub(super) fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value.get("$ref") else { return value };
    let pointer = reference.as_str().and_then(|text| text.strip_prefix('#')).unwrap();
    let target = document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"));
    resolve(document, target)
}

struct Check<'a> {
    document: &'a Value,
    faults: Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        let schema = resolve(self.document, schema).as_object().expect("a schema is an object");
        for (keyword, wanted) in schema {
            let good = match keyword.as_str() {
                "type" => is_of(wanted, value),
                "const" => wanted == value,
                "enum" => wanted.as_array().unwrap().contains(value),
                "format" => has_format(wanted.as_str().unwrap(), value),
                "minimum" => value.as_f64().is_none_or(|is| is >= wanted.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|is| is <= wanted.as_f64().unwrap()),
                "minLength" => length(value).is_none_or(|is| is >= wanted.as_u64().unwrap()),
                "maxLength" => length(value).is_none_or(|is| is <= wanted.as_u64().unwrap()),
                "maxItems" => {
                    value.as_array().is_none_or(|is| is.len() as u64 <= wanted.as_u64().unwrap())
                }
                "oneOf" => self.matching(wanted, value) == 1,
                "anyOf" => self.matching(wanted, value) > 0,
                "allOf" => {
                    wanted.as_array().unwrap().iter().for_each(|each| self.value(each, value, at));
                    true
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(wanted, item, &format!("{at}[{index}]"));
                    }
                    true
                }
                // The three of them together.
                "properties" | "required" | "additionalProperties" => true,
                _ => ANNOTATIONS.contains(&keyword.as_str()),
            };
            if !good {
                self.faults.push(format!("{at}: {keyword} wants {wanted}, and it is {value}"));
            }
        }
        if let Some(members) = value.as_object() {
            self.members(schema, members, at);
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, members: &Map<String, Value>, at: &str) {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str).filter(|name| !members.contains_key(*name)) {
            self.faults.push(format!("{at}: {name} is missing"));
        }
        for (name, value) in members {
            let at = format!("{at}.{name}");
            let known = schema.get("properties").and_then(|known| known.get(name));
            match known.or(schema.get("additionalProperties")) {
                Some(Value::Bool(false)) => self.faults.push(format!("{at} is not documented")),
                Some(wanted) if wanted.is_object() => self.value(wanted, value, &at),
                _ => {}
            }
        }
    }

    /// How many of these schemas `value` is valid under.
    fn matching(&self, schemas: &Value, value: &Value) -> usize {
        let schemas = schemas.as_array().unwrap().iter();
        schemas.filter(|schema| faults(self.document, schema, value).is_empty()).count()
    }
}

fn is_of(types: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("there is no type {other}"),
    };
    match types {
        Value::Array(types) => types.iter().filter_map(Value::as_str).any(is),
        one => is(one.as_str().unwrap()),
    }
}

fn has_format(format: &str, value: &Value) -> bool {
    let Some(text) = value.as_str() else { return true };
    match format {
        "date-time" => Time::parse(text).is_some(),
        "uuid" => text.len() == 36 && Uuid::try_parse(text).is_ok(),
        own => OWN_FORMATS.contains(&own),
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_are_found() {
        let document = json!({ "components": { "schemas": {
            "Name": { "type": ["string", "null"], "maxLength": 3 },
            "Thing": {
                "type": "object", "additionalProperties": false, "required": ["name"],
                "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
                "properties": {
                    "name": { "$ref": "#/components/schemas/Name" },
                    "a": { "type": "array", "items": { "type": "integer", "minimum": 1 } },
                    "b": { "enum": ["x"] },
                    "at": { "type": "string", "format": "date-time" }
                }
            }
        } } });
        let schema = json!({ "$ref": "#/components/schemas/Thing" });
        let count = |value: Value| faults(&document, &schema, &value).len();
        assert_eq!(count(json!({ "name": "abc", "a": [1, 2], "at": "2026-06-08T12:34:56Z" })), 0);
        assert_eq!(count(json!({ "name": null, "b": "x" })), 0);
        assert_eq!(count(json!({ "name": "abcd", "a": [] })), 1);
        assert_eq!(count(json!({ "name": null, "a": [0, 1.5, "x"] })), 3);
        assert_eq!(count(json!({ "name": null, "a": [], "b": "x" })), 1);
        assert_eq!(count(json!({ "a": [], "c": 1, "at": "now" })), 3);
        assert_eq!(count(json!([])), 2);
        assert_eq!(faults(&document, &json!({ "multipleOf": 2 }), &json!(4)).len(), 1);
    }
}
