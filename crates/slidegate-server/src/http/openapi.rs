//! The OpenAPI document: what can be asked here and what is answered, for tools.
//!
//! It is made from the table of routes, and says of each what `answers` lists; a debug build refuses to give an
//! answer whose status is not listed, so no test can see one. `docs/openapi.json` is this document, checked in.

mod schemas;

use serde_json::{Map, Value, json};

use super::reply::Content;
use super::route::{PATHS, Route, TEMPLATES};

/// The document as it is served and checked in.
pub(super) fn written() -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(&document()).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Whether an answer of that status is one that the document knows of.
pub(super) fn lists(route: Route<'_>, status: u16) -> bool {
    answers(route).iter().any(|(listed, _)| *listed == status)
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
            "description": "Whatever is not listed with an operation is answered before one is found: 400, 408, 414 and 431 \
                            to a head that cannot be read, 404 to an unknown path, 405 to another method, 503 when all \
                            connections are taken. Every one of them is a problem document.",
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

/// A body of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// JSON of this schema.
    Json(&'static str),
    Problem,
    Text,
    Metrics,
}

impl Body {
    fn content(self) -> (Content, Value) {
        match self {
            Self::Json(schema) => (Content::Json, reference(schema)),
            Self::Problem => (Content::Problem, reference("Problem")),
            Self::Text => (Content::Text, json!({ "type": "string" })),
            Self::Metrics => (Content::Metrics, json!({ "type": "string" })),
        }
    }
}

fn operation(path: &str, route: Route<'_>) -> Value {
    let (summary, body) = about(route);
    let mut operation = json!({
        // Two paths may have one route, but no two operations one name.
        "operationId": path.trim_matches('/').replace(['/', '-', '.'], "_").replace(['{', '}'], ""),
        "summary": summary,
        "responses": responses(route),
        // No scheme at all is an alternative: a server without a token wants none.
        "security": if route.is_open() { json!([]) } else { json!([{}, { "token": [] }]) },
    });
    if let Some(schema) = body {
        let content = json!({ "application/json": { "schema": reference(schema) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

/// What a route is for, and the schema of its body.
fn about(route: Route<'_>) -> (&'static str, Option<&'static str>) {
    match route {
        Route::Check => ("Ask for units; charges all of them or none", Some("Request")),
        Route::CheckBatch => ("Ask for several requests, each on its own", Some("Batch")),
        Route::Peek => ("Ask without charging", Some("Request")),
        Route::Explain => ("Which rule, which override, what is used, when it would pass", Some("Request")),
        Route::Refund => ("Take back a whole admission", Some("Refund")),
        Route::Settle => ("Replace the cost of an admission by what was really spent", Some("Settlement")),
        Route::Credit => ("Give back the oldest units of a key", Some("Credit")),
        Route::Reset => ("Forget a key", Some("Reset")),
        Route::Rules => ("The rules in force", None),
        Route::Key { .. } => ("What is used of every limit of a rule", None),
        Route::Rlaas { .. } => ("The small-service form, on rule `default`: charges one unit", None),
        Route::Top => ("The keys that were allowed and denied most since the server started", None),
        Route::Reload => ("Read the configuration file again and put it in force", None),
        Route::Metrics => ("Metrics for Prometheus", None),
        Route::Livez => ("Whether the server lives; never depends on the store", None),
        Route::Readyz => ("Whether requests should come here", None),
        Route::OpenApi => ("This document", None),
    }
}

/// Every status that a route can answer, with its body.
fn answers(route: Route<'_>) -> Vec<(u16, Body)> {
    let own: &[(u16, Body)] = match route {
        Route::Check => &[
            (200, Body::Json("Decision")),
            (404, Body::Problem),
            (422, Body::Problem),
            (429, Body::Json("Decision")),
            (503, Body::Problem),
        ],
        Route::CheckBatch => &[(200, Body::Json("Answers"))],
        Route::Peek => {
            &[(200, Body::Json("Decision")), (404, Body::Problem), (422, Body::Problem), (503, Body::Problem)]
        }
        Route::Explain => &[(200, Body::Json("Explanation")), (404, Body::Problem), (503, Body::Problem)],
        Route::Refund => &[(200, Body::Json("Applied")), (503, Body::Problem)],
        Route::Settle => &[(200, Body::Json("Applied")), (422, Body::Problem), (503, Body::Problem)],
        Route::Credit | Route::Reset => {
            &[(200, Body::Json("Applied")), (404, Body::Problem), (503, Body::Problem)]
        }
        Route::Rules => &[(200, Body::Json("Rules"))],
        Route::Key { .. } => &[(200, Body::Json("KeyUsage")), (404, Body::Problem), (503, Body::Problem)],
        Route::Rlaas { .. } => &[
            (200, Body::Json("Rlaas")),
            (404, Body::Problem),
            (429, Body::Json("Rlaas")),
            (503, Body::Problem),
        ],
        Route::Top => &[(200, Body::Json("TopKeys"))],
        Route::Reload => {
            &[(200, Body::Json("Reloaded")), (409, Body::Problem), (422, Body::Problem), (503, Body::Problem)]
        }
        Route::Metrics => &[(200, Body::Metrics)],
        Route::Livez => &[(200, Body::Text)],
        Route::Readyz => &[(200, Body::Text), (503, Body::Text)],
        Route::OpenApi => &[(200, Body::Json("Document"))],
    };
    // A body that is cut short, a foreign host, a body that is late or too large: wherever it goes.
    let mut all = [own, &[400, 403, 408, 413].map(|status| (status, Body::Problem))].concat();
    if !route.is_open() {
        all.push((401, Body::Problem));
    }
    if route.has_body() {
        all.push((415, Body::Problem));
    }
    all.sort_unstable_by_key(|(status, _)| *status);
    all
}

fn responses(route: Route<'_>) -> Value {
    let mut responses = Map::new();
    for (status, body) in answers(route) {
        let (content, schema) = body.content();
        let mut response = json!({
            "description": description(status),
            "content": { content.media_type(): { "schema": schema } },
        });
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
        400 => "The request is not understood, or its receipt is not accepted",
        401 => "The request shows no valid token",
        403 => "The key is blocked, inline rules are not allowed, or the request comes from elsewhere",
        404 => "There is no such rule",
        408 => "The request did not arrive in time",
        409 => "There is no configuration file",
        413 => "The body is too large",
        415 => "The body is not JSON",
        422 => "The cost is above the limit, the receipt cannot be settled for that, or the file is not good",
        429 => "Denied",
        _ => "The store did not answer, or the server is not ready",
    }
}

fn parameters(route: Route<'_>) -> Vec<Value> {
    let in_path = |name: &str, what: &str| {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 512 });
        json!({ "name": name, "in": "path", "required": true, "description": what, "schema": schema })
    };
    let in_query = |name: &str, what: &str, schema: Value| json!({ "name": name, "in": "query", "description": what, "schema": schema });
    match route {
        Route::Key { .. } => {
            vec![
                in_path("rule", "The name of a rule, its slashes written %2F"),
                in_path("key", "Who is limited, slashes and all"),
            ]
        }
        Route::Rlaas { .. } => vec![in_path("userId", "Who is limited")],
        Route::Top => {
            let most = crate::top::LISTED_MAX;
            vec![in_query(
                "n",
                "Keys of each kind",
                json!({ "type": "integer", "minimum": 1, "maximum": most }),
            )]
        }
        Route::Readyz => vec![in_query("verbose", "Says why, line by line", json!({ "type": "string" }))],
        _ => Vec::new(),
    }
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

    #[test]
    fn the_checked_in_document_is_this_one() {
        let path = Path::new(PAGE);
        let right = String::from_utf8(written()).unwrap();
        if std::env::var_os("SLIDEGATE_WRITE_DOCS").is_some() {
            std::fs::write(path, &right).unwrap();
        }
        let shown = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            shown == right,
            "`SLIDEGATE_WRITE_DOCS=1 cargo test -p slidegate-server openapi` writes docs/openapi.json"
        );
    }

    #[test]
    fn every_path_of_the_router_is_in_the_document_and_the_other_way_round() {
        let document = document();
        let listed: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
        for path in &listed {
            let known = PATHS.iter().chain(TEMPLATES).find(|(known, ..)| known == path).unwrap();
            let asked = path.replace("{rule}", "api").replace("{key}", "alice").replace("{userId}", "alice");
            let found = Route::find(known.1, &asked).unwrap();
            assert_eq!(about(found), about(known.2), "{path}");
            for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
                let is_listed = document["paths"][path.as_str()].get(method.to_ascii_lowercase()).is_some();
                assert_eq!(Route::find(method, &asked).is_ok(), is_listed, "{method} {path}");
            }
        }
        assert_eq!(listed.len(), PATHS.len() + TEMPLATES.len());
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_schema_is_used() {
        let text = String::from_utf8(written()).unwrap();
        let known = schemas::all();
        let known = known.as_object().unwrap();
        for schema in known.keys() {
            assert!(text.contains(&format!("\"#/components/schemas/{schema}\"")), "{schema} is not used");
        }
        for used in text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(known.contains_key(used), "{used} is not there");
        }
    }
}
