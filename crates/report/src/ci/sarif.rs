//! SARIF 2.1.0 (OASIS, 27 March 2020): a rule for each cause and a result for each case, for code scanning.
//!
//! A stall has no line of source: the location is a file that the caller names, or the capture.

use diagnose::Severity;
use diagnose::cause::Describe as _;
use serde_json::{Value, json};

use super::{cost, example, fix, millis, one_line, reason};
use crate::verdict::{Case, Outcome, Unjudged, Verdict};

/// Returns the document; `file` is the location of every result.
pub fn text(verdict: &Verdict<'_>, file: Option<&str>) -> String {
    let mut causes: Vec<_> = verdict.cases.iter().map(|case| case.key.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    let rule = |cause: &diagnose::Cause| {
        let help: Vec<&str> = cause.about().fixes.iter().map(|fix| fix.change).collect();
        json!({
            "id": cause.name(),
            "shortDescription": { "text": cause.about().description },
            "help": { "text": help.join("; ") },
        })
    };
    let result = |case: &Case<'_>| {
        let index = causes.iter().position(|cause| *cause == case.key.cause);
        result(case, index.unwrap_or_default(), verdict.captures, file)
    };
    let document = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "roundtrip",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": causes.iter().map(rule).collect::<Value>(),
            }},
            "invocations": [invocation(verdict)],
            "columnKind": "unicodeCodePoints",
            "results": verdict.cases.iter().map(result).collect::<Value>(),
        }],
    });
    format!("{document:#}\n")
}

/// Returns whether there was a verdict, and why not.
fn invocation(verdict: &Verdict<'_>) -> Value {
    let notify = |reason: Unjudged| json!({ "level": "error", "message": { "text": reason.sentence() } });
    json!({
        "executionSuccessful": verdict.unjudged().is_none(),
        "toolExecutionNotifications": verdict.unjudged().map(notify).into_iter().collect::<Value>(),
    })
}

fn result(case: &Case<'_>, rule: usize, captures: usize, file: Option<&str>) -> Value {
    let (capture, _) = case.worst;
    let level = match (case.outcome, case.severity) {
        (Outcome::Fails, _) => "error",
        (_, Severity::High | Severity::Medium) => "warning",
        (_, Severity::Low | Severity::Note) => "note",
    };
    let message = format!("{}: {}. {} {}", case.key, cost(case, captures), example(case), fix(case));
    let mut result = json!({
        "ruleId": case.key.cause.name(),
        "ruleIndex": rule,
        "level": level,
        "message": { "text": one_line(&message) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(file.unwrap_or(&capture.name)) },
                "region": { "startLine": 1 },
            },
        }],
        "partialFingerprints": { "case/v1": case.key.to_string() },
        "properties": { "lostMs": millis(case.lost), "severity": case.severity.name(), "runs": case.seen },
    });
    if let (Outcome::Known | Outcome::Allowed, Some(reason)) = (case.outcome, reason(case)) {
        result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    result
}

/// Encodes a path as a relative or absolute URI reference (RFC 3986, section 2.1).
fn uri(path: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        _other => format!("%{byte:02X}"),
    };
    path.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::{captures, policy, unseen};
    use crate::verdict::{Policy, judge};

    /// The part of OASIS's schema that the document uses: types, required names, enumerations; nothing else is valid.
    const SCHEMA: &str = include_str!("../../tests/sarif-2.1.0.json");

    /// Validates a value against a schema with `type`, `enum`, `required`, `properties`, `additionalProperties`,
    /// `items` and `minItems`; returns the violations.
    fn complaints(value: &Value, schema: &Value, location: &str) -> Vec<String> {
        let mut found = Vec::new();
        let is_type = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            Some("boolean") => value.is_boolean(),
            other => panic!("the schema has a type {other:?} at {location}"),
        };
        if !is_type {
            found.push(format!("{location}: {value} is not of type {}", schema["type"]));
        }
        if schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)) {
            found.push(format!("{location}: {value} is none of {}", schema["enum"]));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if value.get(name.as_str().unwrap()).is_none() {
                found.push(format!("{location}: no {name}"));
            }
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            match (&schema["properties"][name], &schema["additionalProperties"]) {
                (Value::Null, Value::Bool(true)) => {}
                (Value::Null, Value::Object(_)) => {
                    let schema = &schema["additionalProperties"];
                    found.extend(complaints(inner, schema, &format!("{location}/{name}")));
                }
                (Value::Null, _) => found.push(format!("{location}: {name} is not in the schema")),
                (schema, _) => found.extend(complaints(inner, schema, &format!("{location}/{name}"))),
            }
        }
        let items = value.as_array().into_iter().flatten();
        found.extend(
            items.clone().flat_map(|item| complaints(item, &schema["items"], &format!("{location}[]"))),
        );
        if schema["minItems"].as_u64().is_some_and(|min| (items.count() as u64) < min) {
            found.push(format!("{location}: too few items"));
        }
        found
    }

    #[test]
    fn the_document_follows_the_schema() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let captures = captures();
        let unseen = unseen();
        for (verdict, results) in [
            (judge(&captures, &policy(&captures)), 3),
            (judge(&[], &Policy::default()), 0),
            (judge(&unseen, &Policy::default()), 0),
        ] {
            let document: Value = serde_json::from_str(&super::text(&verdict, None)).unwrap();
            assert_eq!(complaints(&document, &schema, ""), Vec::<String>::new());
            assert_eq!(document["runs"][0]["results"].as_array().unwrap().len(), results);
            for result in document["runs"][0]["results"].as_array().unwrap() {
                let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
                let rule = &document["runs"][0]["tool"]["driver"]["rules"][index];
                assert_eq!(rule["id"], result["ruleId"]);
            }
        }
    }

    #[test]
    fn the_schema_finds_mistakes() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let captures = captures();
        let document: Value =
            serde_json::from_str(&super::text(&judge(&captures, &policy(&captures)), Some("a b.yml")))
                .unwrap();
        let location = &document["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "a%20b.yml");
        for (pointer, wrong) in [
            ("/version", Value::from("2.0.0")),
            ("/runs/0/results/0/level", Value::from("fatal")),
            ("/runs/0/results/0/ruleIndex", Value::from(-1)),
            ("/runs/0/results/1/suppressions/0/kind", Value::Null),
            ("/runs/0/tool/driver/rules/0", Value::Object(serde_json::Map::new())),
        ] {
            let mut document = document.clone();
            *document.pointer_mut(pointer).unwrap() = wrong;
            assert!(!complaints(&document, &schema, "").is_empty(), "{pointer}");
        }
    }
}
