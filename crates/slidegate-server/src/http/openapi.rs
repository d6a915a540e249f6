//! The OpenAPI document: routes, bodies and answers, for tools.
//!
//! It is generated from the table of routes and from `answers`; a debug build panics on an answer whose status is not
//! listed, so tests find it. `docs/openapi.json` is this document, checked in.

mod schemas;

use serde_json::{Map, Value, json};

use super::reply::Content;
use super::route::{PATHS, Route, TEMPLATES};
use crate::tokens::Scope;
use crate::top::LISTED_MAX;

/// The document as it is served and checked in.
pub(super) fn written() -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(&document()).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Whether the document lists that status for the route.
pub(super) fn lists(route: Route<'_>, status: u16) -> bool {
    answers(route).iter().any(|(listed, ..)| *listed == status)
}

fn document() -> Value {
    let mut paths = Map::new();
    for &(path, method, route) in PATHS.iter().chain(TEMPLATES) {
        paths.insert(path.to_owned(), json!({ method.to_ascii_lowercase(): operation(path, route) }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "slidegate",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Rate limiting that holds",
            "description": "Answers that operations do not list come before routing: 400, 408, 414 and 431 for a head that \
                            cannot be read, 404 for an unknown path, 405 for another method, 503 when all connections are \
                            taken. Each of them is a problem document.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:8080" }],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(path: &str, route: Route<'_>) -> Value {
    let (summary, body) = about(route);
    let mut operation = json!({
        // Two paths may share a route, but operation names must be unique.
        "operationId": path.trim_matches('/').replace(['/', '-', '.'], "_").replace(['{', '}'], ""),
        "summary": summary,
        "responses": responses(route),
        // The empty scheme is an alternative: a server without tokens needs none.
        "security": match most_scope(route) {
            None => json!([]),
            Some(scope) => json!([{}, { "token": [scope.name()] }]),
        },
    });
    if let Some(schema) = body {
        let content = json!({ "application/json": { "schema": schemas::schema(schema) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

/// The summary of a route, and the schema of its body.
fn about(route: Route<'_>) -> (&'static str, Option<&'static str>) {
    match route {
        Route::Check => ("Check a request, and charge all of its units or none", Some("Request")),
        Route::CheckBatch => ("Check several requests, each on its own", Some("Batch")),
        Route::Peek => ("Check without charging", Some("Request")),
        Route::Explain => {
            ("Explain a decision: rule, override, usage and wait; charges nothing", Some("Request"))
        }
        Route::Refund => ("Take back a whole admission", Some("Refund")),
        Route::Settle => ("Replace the cost of an admission by the units really spent", Some("Settlement")),
        Route::Credit => ("Give back the oldest units of a key", Some("Credit")),
        Route::Reset => ("Reset a key: removes its used units", Some("Reset")),
        Route::Rules => ("The rules in force", None),
        Route::Key { .. } => ("What a key has used of every limit of a rule", None),
        Route::Rlaas { .. } => ("The small-service form, on rule `default`: charges one unit", None),
        Route::Top => ("The keys that were allowed and denied most since the server started", None),
        Route::Reload => ("Read the configuration file again and put it in force", None),
        Route::Metrics => ("Metrics for Prometheus", None),
        Route::Livez => ("Liveness; never depends on the store", None),
        Route::Readyz => ("Readiness: whether the server should get requests", None),
        Route::OpenApi => ("This document", None),
    }
}

/// Every status that a route can answer, with the type and the schema of its body.
fn answers(route: Route<'_>) -> Vec<(u16, Content, &'static str)> {
    let (content, schema, others): (_, _, &[u16]) = match route {
        Route::Check => (Content::Json, "Decision", &[404, 422, 429, 503]),
        Route::CheckBatch => (Content::Json, "Answers", &[503]),
        Route::Peek => (Content::Json, "Decision", &[404, 422, 503]),
        Route::Explain => (Content::Json, "Explanation", &[404, 503]),
        Route::Refund => (Content::Json, "Applied", &[503]),
        Route::Settle => (Content::Json, "Applied", &[422, 503]),
        Route::Credit | Route::Reset => (Content::Json, "Applied", &[404, 503]),
        Route::Rules => (Content::Json, "Rules", &[]),
        Route::Key { .. } => (Content::Json, "KeyUsage", &[404, 503]),
        Route::Rlaas { .. } => (Content::Json, "Rlaas", &[404, 429, 503]),
        Route::Top => (Content::Json, "TopKeys", &[]),
        Route::Reload => (Content::Json, "Reloaded", &[409, 422, 503]),
        Route::Metrics => (Content::Metrics, "string", &[]),
        Route::Livez => (Content::Text, "string", &[]),
        Route::Readyz => (Content::Text, "string", &[503]),
        Route::OpenApi => (Content::Json, "Document", &[]),
    };
    // Every route can be answered so: a truncated body, a foreign host, a late body, a body too large.
    let mut statuses = [&[200, 400, 403, 408, 413], others].concat();
    statuses.extend(most_scope(route).map(|_| 401));
    statuses.extend(route.has_body().then_some(415));
    statuses.sort_unstable();
    let answer = |status| match status {
        // A denial is an answer like an admission, and so is not being ready.
        200 | 429 => (status, content, schema),
        503 if content == Content::Text => (status, content, schema),
        _ => (status, Content::Problem, "Problem"),
    };
    statuses.into_iter().map(answer).collect()
}

/// The scope that the route needs with the query that needs most.
fn most_scope(route: Route<'_>) -> Option<Scope> {
    route.scope("verbose")
}

fn responses(route: Route<'_>) -> Value {
    let mut responses = Map::new();
    for (status, content, schema) in answers(route) {
        let content = json!({ content.media_type(): { "schema": schemas::schema(schema) } });
        let mut response = json!({ "description": description(status), "content": content });
        if status == 429 {
            let seconds = json!({ "required": true, "schema": { "type": "integer", "minimum": 1 } });
            response["headers"] = json!({ "Retry-After": seconds });
        }
        responses.insert(status.to_string(), response);
    }
    responses.into()
}

fn description(status: u16) -> &'static str {
    match status {
        200 => "The answer",
        400 => {
            "The request is not understood, its receipt is not accepted, or its inline rule is beyond a bound"
        }
        401 => "The request has no valid token",
        403 => {
            "The key is blocked, inline rules are not allowed, the token lacks the scope, or the request comes from \
             another site"
        }
        404 => "There is no such rule",
        408 => "The request did not arrive in time",
        409 => "There is no configuration file",
        413 => "The body is too large",
        415 => "The body is not JSON",
        422 => {
            "The cost is above the limit, the receipt cannot be settled for that, or the file has mistakes"
        }
        429 => "Denied",
        _ => "The store did not answer, or the server is not ready or has no room for the request",
    }
}

fn parameters(route: Route<'_>) -> Vec<Value> {
    let in_path = |name: &str, what: &str| {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 512 });
        json!({ "name": name, "in": "path", "required": true, "description": what, "schema": schema })
    };
    let in_query = |name: &str, what: &str, schema: Value| {
        vec![json!({ "name": name, "in": "query", "description": what, "schema": schema })]
    };
    match route {
        Route::Key { .. } => {
            let mut parameters = vec![
                in_path("rule", "The name of a rule, its slashes written %2F"),
                in_path("key", "Who is limited; may contain slashes"),
            ];
            let tag = json!({ "$ref": "#/components/schemas/Tag" });
            parameters.extend(in_query("tag", "The tag that the key was charged with", tag));
            parameters
        }
        Route::Rlaas { .. } => vec![in_path("userId", "Who is limited")],
        Route::Top => {
            let keys = json!({ "type": "integer", "minimum": 1, "maximum": LISTED_MAX });
            in_query("n", "Keys of each kind", keys)
        }
        Route::Readyz => in_query("verbose", "Adds a line per check", json!({ "type": "string" })),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

    #[test]
    fn the_checked_in_document_is_up_to_date() {
        let path = Path::new(PAGE);
        let right = String::from_utf8(written()).unwrap();
        if std::env::var_os("SLIDEGATE_WRITE_DOCS").is_some() {
            std::fs::write(path, &right).unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            checked_in == right,
            "`SLIDEGATE_WRITE_DOCS=1 cargo test -p slidegate-server openapi` writes docs/openapi.json"
        );
    }

    #[test]
    fn router_and_document_have_the_same_paths() {
        let document = document();
        let listed: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
        for path in &listed {
            let known = PATHS.iter().chain(TEMPLATES).find(|(known, ..)| known == path).unwrap();
            let filled = path.replace("{rule}", "api").replace("{key}", "alice").replace("{userId}", "alice");
            let found = Route::find(known.1, &filled).unwrap();
            assert_eq!(about(found), about(known.2), "{path}");
            assert_eq!(about(found).1.is_some(), found.has_body(), "{path}");
            let in_query: Vec<Value> =
                parameters(found).iter().filter(|it| it["in"] == "query").cloned().collect();
            assert!(
                in_query.iter().map(|it| it["name"].as_str().unwrap()).eq(found.parameters().iter().copied())
            );
            for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
                let is_listed = document["paths"][path.as_str()].get(method.to_ascii_lowercase()).is_some();
                assert_eq!(Route::find(method, &filled).is_ok(), is_listed, "{method} {path}");
            }
        }
        assert_eq!(listed.len(), PATHS.len() + TEMPLATES.len());
    }

    #[test]
    fn every_reference_resolves_and_every_schema_is_used() {
        let text = String::from_utf8(written()).unwrap();
        let all = schemas::all();
        let known = all.as_object().unwrap();
        for schema in known.keys() {
            assert!(text.contains(&format!("\"#/components/schemas/{schema}\"")), "{schema} is not used");
        }
        for used in text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(known.contains_key(used), "{used} is not there");
        }
    }
}
