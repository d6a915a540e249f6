//! A slidegate server as the store: questions become bodies, bodies become answers.

use std::env;

use anyhow::{Error, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};
use slidegate::rule::OnStoreError;
use slidegate::ruleset::{InlineRule, RuleRef};
use slidegate::{Applied, ChargeRequest};

use super::answer::{Answer, Override};
use super::exchange::{Reply, post};
use super::question::Question;
use super::server_url::ServerUrl;
use super::target::Verb;
use crate::text::escaped;

/// What is shown to a server that wants a token.
const TOKEN: &str = "SLIDEGATE_TOKEN";

/// A server that can be asked.
#[derive(Debug)]
pub(in crate::cli) struct Server {
    url: ServerUrl,
}

impl Server {
    pub(super) fn new(url: ServerUrl) -> Self {
        Self { url }
    }

    /// Asks once. A server that does not answer is answered for by the caller's policy; its rules are not known here.
    pub(super) fn ask(&self, verb: Verb, question: &Question) -> Result<Answer, Error> {
        match self.asked(verb, question) {
            Ok(answer) => Ok(answer),
            Err(Failure::Store(error)) if question.policy() == Some(OnStoreError::Allow) => {
                Ok(Answer::degraded(question.rule(), &error))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    fn asked(&self, verb: Verb, question: &Question) -> Result<Answer, Failure> {
        let path = match verb {
            Verb::Check => "/v1/check",
            Verb::Peek => "/v1/peek",
        };
        let reply = self.post(path, &body_of(question))?;
        match reply.status {
            200 | 429 => match Answer::of_server(&reply.body) {
                // Status and answer say the same, or it is no server of ours that answers.
                Ok(answer) if verb == Verb::Peek || answer.allowed == (reply.status == 200) => Ok(answer),
                _ => Err(self.not_ours(reply.status)),
            },
            _ => match self.problem(&reply) {
                Refusal::Blocked => Ok(Answer::overridden(Override::Blocked, question.rule())),
                Refusal::Failed(failure) => Err(failure),
            },
        }
    }

    /// Forgets a key.
    pub(super) fn reset(&self, request: &ChargeRequest<'_>) -> Result<Applied, Error> {
        let reply = self.post("/v1/reset", &json!({ "rule": rule_of(&request.rule), "key": request.key }))?;
        if reply.status == 200 {
            let Done { applied, units } =
                serde_json::from_slice(&reply.body).map_err(|_| self.not_ours(reply.status))?;
            return Ok(Applied { applied, units });
        }
        match self.problem(&reply) {
            Refusal::Blocked => Ok(Applied { applied: false, units: 0 }),
            Refusal::Failed(failure) => Err(failure.into()),
        }
    }

    fn post(&self, path: &str, body: &Value) -> Result<Reply, Failure> {
        let token = env::var_os(TOKEN).filter(|token| !token.is_empty());
        let token = token.map(|token| token.into_string().ok().filter(|token| is_line(token)));
        let Some(token) = token.map_or(Some(None), |token| token.map(Some)) else {
            return Err(Failure::Other(anyhow!("{TOKEN}: is not one line of printable ASCII; write it so")));
        };
        post(&self.url, path, token.as_deref(), body.to_string().as_bytes())
            .map_err(|error| Failure::Store(error.into()))
    }

    /// What a refusal means.
    fn problem(&self, reply: &Reply) -> Refusal {
        let Ok(problem) = serde_json::from_slice::<Problem>(&reply.body) else {
            return Refusal::Failed(self.not_ours(reply.status));
        };
        let remedy = problem.remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
        // A server is not trusted with the terminal.
        let text = anyhow!("{}{}", escaped(&problem.detail), escaped(&remedy));
        Refusal::Failed(match (reply.status, problem.kind.rsplit(':').next()) {
            (403, Some("blocked")) => return Refusal::Blocked,
            (401, _) => Failure::Other(anyhow!("store: the server wants its token; set {TOKEN} to it")),
            (500.., _) => Failure::Store(text),
            _ => Failure::Other(text),
        })
    }

    fn not_ours(&self, status: u16) -> Failure {
        let text = format!(
            "store: what answers at http://{} with status {status} is no slidegate server; check host and port",
            self.url.authority
        );
        // A proxy in between says so when the server behind it is gone.
        if status >= 500 { Failure::Store(anyhow!(text)) } else { Failure::Other(anyhow!(text)) }
    }
}

/// Why there is no answer.
enum Failure {
    /// The server or its store gave none, and the outage policy may.
    Store(Error),
    /// The request cannot be answered as it is.
    Other(Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) | Failure::Other(error) => error,
        }
    }
}

enum Refusal {
    Blocked,
    Failed(Failure),
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

/// A value of a header.
fn is_line(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn body_of(question: &Question) -> Value {
    let charge = |request: &ChargeRequest<'_>| json!({ "rule": rule_of(&request.rule), "key": request.key, "cost": request.cost });
    let mut body = match question.charges() {
        [request] => charge(request),
        several => json!({ "checks": several.iter().map(charge).collect::<Vec<_>>() }),
    };
    if let Some(policy) = question.policy() {
        body["on_store_error"] = json!(if policy == OnStoreError::Allow { "allow" } else { "deny" });
    }
    body
}

/// By name, or inline: rules that are made here have one limit, and defaults for what an algorithm takes.
fn rule_of(rule: &RuleRef<'_>) -> Value {
    match rule {
        RuleRef::Named(name) => json!(name),
        RuleRef::Inline(rule) => inline(rule),
    }
}

fn inline(rule: &InlineRule) -> Value {
    let rate = rule.rate();
    json!({
        "limit": rate.limit(),
        "window": format!("{}ms", rate.window().as_millis()),
        "algorithm": rule.algorithm().name(),
    })
}
