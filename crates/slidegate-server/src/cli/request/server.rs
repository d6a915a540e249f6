//! A slidegate server as the store: questions become bodies, bodies become answers.

use std::env;

use anyhow::{Error, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};
use slidegate::rule::OnStoreError;
use slidegate::ruleset::RuleRef;
use slidegate::{Applied, ChargeRequest};

use super::answer::{Answer, Override};
use super::exchange::{Reply, post};
use super::location::ServerUrl;
use super::question::Question;
use super::target::Verb;
use crate::text::escaped;

/// What is shown to a server that wants a token.
const TOKEN: &str = "SLIDEGATE_TOKEN";

/// Asks once. A server that does not answer is answered for by the caller's policy; its rules are not known here.
pub(super) fn ask(url: &ServerUrl, verb: Verb, question: &Question) -> Result<Answer, Error> {
    match asked(url, verb, question) {
        Err(Failure { error, is_outage: true }) if question.policy == Some(OnStoreError::Allow) => {
            Ok(Answer::degraded(question.rule(), &error))
        }
        answered => Ok(answered?),
    }
}

fn asked(url: &ServerUrl, verb: Verb, question: &Question) -> Result<Answer, Failure> {
    let path = match verb {
        Verb::Check => "/v1/check",
        Verb::Peek => "/v1/peek",
    };
    let reply = send(url, path, &body_of(question))?;
    if !matches!(reply.status, 200 | 429) {
        let blocked = || Answer::overridden(Override::Blocked, question.rule());
        return refusal(url, &reply).map_or_else(|| Ok(blocked()), Err);
    }
    match Answer::of_server(&reply.body) {
        // Status and answer say the same, or it is no server of ours that answers.
        Ok(answer) if verb == Verb::Peek || answer.allowed == (reply.status == 200) => Ok(answer),
        _ => Err(not_ours(url, reply.status)),
    }
}

/// Forgets a key.
pub(super) fn reset(url: &ServerUrl, request: &ChargeRequest<'_>) -> Result<Applied, Error> {
    let reply = send(url, "/v1/reset", &json!({ "rule": rule_of(&request.rule), "key": request.key }))?;
    if reply.status != 200 {
        return refusal(url, &reply).map_or_else(|| Ok(Applied::default()), |failure| Err(failure.into()));
    }
    let Done { applied, units } =
        serde_json::from_slice(&reply.body).map_err(|_| not_ours(url, reply.status))?;
    Ok(Applied { applied, units })
}

fn send(url: &ServerUrl, path: &str, body: &Value) -> Result<Reply, Failure> {
    // An empty one is as good as none.
    let token = env::var_os(TOKEN).unwrap_or_default().into_string().ok();
    let Some(token) = token.filter(|token| token.bytes().all(|byte| (b' '..=b'~').contains(&byte))) else {
        let error = anyhow!("{TOKEN}: is not one line of printable ASCII; write it so");
        return Err(Failure { error, is_outage: false });
    };
    let token = (!token.is_empty()).then_some(token.as_str());
    post(url, path, token, body.to_string().as_bytes())
        .map_err(|error| Failure { error: error.into(), is_outage: true })
}

/// Why there is no answer; `None` where an override blocks the key.
fn refusal(url: &ServerUrl, reply: &Reply) -> Option<Failure> {
    let Ok(problem) = serde_json::from_slice::<Problem>(&reply.body) else {
        return Some(not_ours(url, reply.status));
    };
    let remedy = problem.remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
    let error = match (reply.status, problem.kind.rsplit(':').next()) {
        (403, Some("blocked")) => return None,
        (401, _) => anyhow!("store: the server wants its token; set {TOKEN} to it"),
        // A server is not trusted with the terminal.
        _ => anyhow!("{}{}", escaped(&problem.detail), escaped(&remedy)),
    };
    Some(Failure { error, is_outage: reply.status >= 500 })
}

fn not_ours(url: &ServerUrl, status: u16) -> Failure {
    let error = anyhow!(
        "store: what answers at http://{} with status {status} is no slidegate server; check host and port",
        url.authority
    );
    // A proxy in between says so when the server behind it is gone.
    Failure { error, is_outage: status >= 500 }
}

/// Why there is no answer.
struct Failure {
    error: Error,
    /// The server or its store gave none, and the outage policy may; else the request cannot be answered as it is.
    is_outage: bool,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// What a server says when it has no answer (RFC 9457).
#[derive(Deserialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: String,
    detail: String,
    remedy: Option<String>,
}

/// What a reset did.
#[derive(Deserialize)]
struct Done {
    applied: bool,
    units: u64,
}

fn body_of(question: &Question) -> Value {
    let charge = |request: &ChargeRequest<'_>| json!({ "rule": rule_of(&request.rule), "key": request.key, "cost": request.cost });
    let mut body = match question.charges.as_slice() {
        [request] => charge(request),
        several => json!({ "checks": several.iter().map(charge).collect::<Vec<_>>() }),
    };
    if let Some(policy) = question.policy {
        body["on_store_error"] = json!(if policy == OnStoreError::Allow { "allow" } else { "deny" });
    }
    body
}

/// By name, or inline: rules that are made here have one limit, and defaults for what an algorithm takes.
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
