//! A slidegate server as the store: sends requests and parses answers.

use std::env;

use anyhow::{Error, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};
use slidegate::rule::OnStoreError;
use slidegate::ruleset::RuleRef;
use slidegate::{Applied, ChargeRequest};

use super::answer::{CheckAnswer, KeyOverride};
use super::http_client::{HttpResponse, post};
use super::location::ServerUrl;
use super::plan::CommandRequest;
use super::target::Verb;
use crate::text::escaped;

/// The environment variable of the token for servers that require one.
const TOKEN: &str = "SLIDEGATE_TOKEN";

/// Sends a request once. If the server does not answer, `--on-store-error` decides; the rule's own policy is unknown
/// here.
pub(super) fn ask(url: &ServerUrl, verb: Verb, request: &CommandRequest) -> Result<CheckAnswer, Error> {
    match send_check(url, verb, request) {
        Err(ServerError { error, is_outage: true }) if request.policy == Some(OnStoreError::Allow) => {
            Ok(CheckAnswer::degraded(request.rule(), &error))
        }
        answered => Ok(answered?),
    }
}

fn send_check(url: &ServerUrl, verb: Verb, request: &CommandRequest) -> Result<CheckAnswer, ServerError> {
    let path = match verb {
        Verb::Check => "/v1/check",
        Verb::Peek => "/v1/peek",
    };
    let response = send(url, path, &body_of(request))?;
    if !matches!(response.status, 200 | 429) {
        let blocked = || CheckAnswer::overridden(KeyOverride::Blocked, request.rule());
        return response_error(url, &response).map_or_else(|| Ok(blocked()), Err);
    }
    match CheckAnswer::from_server(&response.body) {
        // An answer that contradicts the status does not come from a slidegate server.
        Ok(answer) if verb == Verb::Peek || answer.allowed == (response.status == 200) => Ok(answer),
        _ => Err(not_slidegate(url, response.status)),
    }
}

/// Resets a key.
pub(super) fn reset(url: &ServerUrl, request: &ChargeRequest<'_>) -> Result<Applied, Error> {
    let mut body = charge_of(request);
    if let Some(fields) = body.as_object_mut() {
        fields.remove("cost");
    }
    update(url, "/v1/reset", &body)
}

/// Refunds a charge.
pub(super) fn refund(url: &ServerUrl, receipt: &str) -> Result<Applied, Error> {
    update(url, "/v1/refund", &json!({ "receipt": receipt }))
}

fn update(url: &ServerUrl, path: &str, body: &Value) -> Result<Applied, Error> {
    let response = send(url, path, body)?;
    if response.status != 200 {
        return response_error(url, &response)
            .map_or_else(|| Ok(Applied::default()), |failure| Err(failure.into()));
    }
    let UpdateAnswer { applied, units } =
        serde_json::from_slice(&response.body).map_err(|_| not_slidegate(url, response.status))?;
    Ok(Applied { applied, units })
}

fn send(url: &ServerUrl, path: &str, body: &Value) -> Result<HttpResponse, ServerError> {
    // An empty variable counts as unset.
    let token = env::var_os(TOKEN).unwrap_or_default().into_string().ok();
    let Some(token) = token.filter(|token| token.bytes().all(|byte| (b' '..=b'~').contains(&byte))) else {
        let error =
            anyhow!("{TOKEN}: is not printable ASCII; set it to the one line of the server's token file");
        return Err(ServerError { error, is_outage: false });
    };
    let token = (!token.is_empty()).then_some(token.as_str());
    post(url, path, token, body.to_string().as_bytes())
        .map_err(|error| ServerError { error: error.into(), is_outage: true })
}

/// The error of a response that is not an answer; `None` if an override blocks the key.
fn response_error(url: &ServerUrl, response: &HttpResponse) -> Option<ServerError> {
    let Ok(problem) = serde_json::from_slice::<ProblemDocument>(&response.body) else {
        return Some(not_slidegate(url, response.status));
    };
    let remedy = problem.remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
    let error = match (response.status, problem.kind.rsplit(':').next()) {
        (403, Some("blocked")) => return None,
        (401, _) => anyhow!("store: the server requires its token; set {TOKEN} to it"),
        // A server must not write escapes to the terminal.
        _ => anyhow!("{}{}", escaped(&problem.detail), escaped(&remedy)),
    };
    Some(ServerError { error, is_outage: response.status >= 500 })
}

fn not_slidegate(url: &ServerUrl, status: u16) -> ServerError {
    let error = anyhow!(
        "store: http://{} answers with status {status} but is not a slidegate server; check host and port",
        url.authority
    );
    // A proxy answers 5xx when the server behind it is gone.
    ServerError { error, is_outage: status >= 500 }
}

/// Why a server gave no answer.
struct ServerError {
    error: Error,
    /// Whether the server or its store is down, so that the outage policy applies; else the request is wrong.
    is_outage: bool,
}

impl From<ServerError> for Error {
    fn from(failure: ServerError) -> Self {
        failure.error
    }
}

/// A problem document of a server (RFC 9457).
#[derive(Deserialize)]
struct ProblemDocument {
    #[serde(rename = "type")]
    kind: String,
    detail: String,
    remedy: Option<String>,
}

/// The answer to a reset or a refund.
#[derive(Deserialize)]
struct UpdateAnswer {
    applied: bool,
    units: u64,
}

fn body_of(request: &CommandRequest) -> Value {
    let mut body = match request.charges.as_slice() {
        [request] => charge_of(request),
        several => json!({ "checks": several.iter().map(charge_of).collect::<Vec<_>>() }),
    };
    if let Some(policy) = request.policy {
        body["on_store_error"] = json!(if policy == OnStoreError::Allow { "allow" } else { "deny" });
    }
    body
}

fn charge_of(request: &ChargeRequest<'_>) -> Value {
    let rule = rule_of(&request.rule);
    let mut charge = json!({ "rule": rule, "key": request.key, "cost": request.cost });
    if let Some(tag) = request.tag() {
        charge["tag"] = json!(tag);
    }
    charge
}

/// A rule by name or inline. Inline rules of a command have one limit and default parameters.
fn rule_of(rule: &RuleRef<'_>) -> Value {
    match rule {
        RuleRef::Named(name) => json!(name),
        RuleRef::Inline(rule) => json!({
            "limit": rule.rate().limit(),
            "window": format!("{}ms", rule.rate().window().as_millis()),
            "algorithm": rule.algorithm().name(),
        }),
    }
}
