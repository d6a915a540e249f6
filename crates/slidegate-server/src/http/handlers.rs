//! The handlers of all routes: parse the body, call the service, write the answer.

use std::cell::RefCell;
use std::sync::Arc;

use slidegate::charge::CHARGES_MAX;
use slidegate::time::Clock;
use slidegate::{ChargeRequest, Decision};

use super::body::CheckBody;
use super::problem::Problem;
use super::query::parameter;
use super::reply::{self, Content, Reply, whole_seconds};
use super::route::{Route, decoded};
use super::{admin, body_errors, explanation, openapi, rate_headers};
use crate::config::DEFAULT_RULE;
use crate::metrics::Transport;
use crate::reload::FileReloader;
use crate::service::{HeaderSet, Service, ServiceError, ServiceErrorKind};

thread_local! {
    /// The buffers of a reply and its receipt, reused by the next check on the fast path.
    static REUSED: RefCell<(Reply, Vec<u8>)> = RefCell::new((Reply::json(200, Vec::new()), Vec::new()));
}

/// The state that handlers share.
pub(super) struct Handlers {
    pub(super) service: Service,
    pub(super) headers: Box<[HeaderSet]>,
    pub(super) clock: Arc<dyn Clock>,
    /// Reloads the configuration file, if there is one.
    pub(super) reloader: Option<Arc<FileReloader>>,
}

/// The query and body of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct HttpRequest<'a> {
    /// Without the question mark.
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
    /// Whether the server is shutting down.
    pub(super) draining: bool,
}

impl Handlers {
    /// Answers a request that access control has routed.
    pub(super) async fn answer(&self, route: Route<'_>, request: HttpRequest<'_>) -> Reply {
        let begun_us = self.clock.now_us();
        let reply = self.answer_any(route, request).await;
        // Errors are not decisions.
        if route.decides() && matches!(reply.status, 200 | 429) {
            self.observe_duration(begun_us);
        }
        reply
    }

    /// Counts the duration of a decision.
    fn observe_duration(&self, begun_us: u64) {
        let took_us = self.clock.now_us().saturating_sub(begun_us);
        self.service.counters.metrics.observe_decision(Transport::Http, took_us);
    }

    async fn answer_any(&self, route: Route<'_>, request: HttpRequest<'_>) -> Reply {
        let HttpRequest { query, body, draining } = request;
        let answered = match route {
            Route::Check => self.check(body).await,
            Route::CheckBatch => self.check_batch(body).await,
            Route::Peek => self.peek(body).await,
            Route::Explain => self.explain(body).await,
            Route::Refund => self.refund(body).await,
            Route::Settle => self.settle(body).await,
            Route::Credit => self.credit(body).await,
            Route::Reset => self.reset(body).await,
            Route::Rules => Ok(Reply::of(&explanation::rules(&self.service.rules()))),
            Route::Key { rule, key } => self.key(rule, key, query).await,
            Route::Rlaas { user } => self.rlaas(user).await,
            Route::Top => admin::top(&self.service, query),
            Route::Reload => admin::reload(self.reloader.as_ref()).await,
            Route::Metrics => Ok(Reply::text(200, Content::Metrics, self.service.exposition())),
            Route::Livez => Ok(admin::live()),
            Route::Readyz => Ok(admin::ready(&self.service, query, draining).await),
            Route::OpenApi => Ok(Reply::json(200, openapi::written())),
        };
        answered.unwrap_or_else(|problem| problem.reply())
    }

    async fn check(&self, body: &[u8]) -> Result<Reply, Problem> {
        let request = CheckBody::read(body)?;
        let rules = self.service.rules();
        let charges = request.charges.as_slice();
        let decision = self.service.check(Transport::Http, &rules, charges, request.policy).await?;
        Ok(self.decision_reply(&decision, 429))
    }

    /// Answers a check on the fast path.
    pub(super) async fn check_fast_path(&self, request: &CheckBody<'_>, close: bool, out: &mut Vec<u8>) {
        let begun_us = self.clock.now_us();
        let rules = self.service.rules();
        let charges = request.charges.as_slice();
        match self.service.check(Transport::Http, &rules, charges, request.policy).await {
            Ok(decision) => {
                REUSED.with_borrow_mut(|(reply, receipt)| {
                    self.write_decision(&decision, 429, reply, receipt);
                    reply.close = close;
                    reply.write(&*self.clock, out);
                });
                self.observe_duration(begun_us);
            }
            Err(failure) => Reply { close, ..Problem::from(failure).reply() }.write(&*self.clock, out),
        }
    }

    async fn peek(&self, body: &[u8]) -> Result<Reply, Problem> {
        let request = CheckBody::read(body)?;
        let rules = self.service.rules();
        let charges = request.charges.as_slice();
        let decision = self.service.peek(&rules, charges, request.policy).await?;
        Ok(self.decision_reply(&decision, 200))
    }

    /// A decision with its headers; a denial has the status `denied`.
    fn decision_reply(&self, decision: &Decision<'_>, denied: u16) -> Reply {
        let mut reply = Reply::json(200, Vec::new());
        self.write_decision(decision, denied, &mut reply, &mut Vec::new());
        reply
    }

    /// Overwrites a reply with a decision.
    fn write_decision(&self, decision: &Decision<'_>, denied: u16, reply: &mut Reply, scratch: &mut Vec<u8>) {
        reply.status = if decision.allowed() { 200 } else { denied };
        reply.body.clear();
        reply::write_decision(decision, &self.service.receipts.codec, scratch, &mut reply.body);
        reply.lines.clear();
        rate_headers::write(&decision.binding(), &self.headers, &*self.clock, &mut reply.lines);
    }

    async fn check_batch(&self, body: &[u8]) -> Result<Reply, Problem> {
        let requests = CheckBody::read_batch(body)?;
        let rules = self.service.rules();
        let batch: Vec<_> =
            requests.iter().map(|request| (request.charges.as_slice(), request.policy)).collect();
        let answers = self.service.check_batch(Transport::Http, &rules, &batch).await;
        let mut out = Vec::with_capacity(384 * answers.len());
        let mut scratch = Vec::new();
        out.extend_from_slice(b"{\"answers\":[");
        for (index, answer) in answers.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            match answer {
                Ok(decision) => {
                    reply::write_decision(&decision, &self.service.receipts.codec, &mut scratch, &mut out);
                }
                Err(failure) => Problem::from(failure).within(&format!("checks[{index}]")).write(&mut out),
            }
        }
        out.extend_from_slice(b"]}");
        Ok(Reply::json(200, out))
    }

    async fn explain(&self, body: &[u8]) -> Result<Reply, Problem> {
        let request = CheckBody::read(body)?;
        let rules = self.service.rules();
        let charges = request.charges.as_slice();
        if charges.is_empty() || charges.len() > CHARGES_MAX {
            let text = format!("checks: {} given; give 1 to {CHARGES_MAX} at once", charges.len());
            return Err(Problem::malformed(&text));
        }
        let mut explained = Vec::with_capacity(charges.len());
        for (index, charge) in charges.iter().enumerate() {
            let at = (charges.len() > 1).then_some(index);
            let explanation = self.service.explain(&rules, charge).await;
            explained.push((charge, explanation.map_err(|failure| ServiceError { at, ..failure })?));
        }
        // Charges on one state are summed, so the decisions on each alone are not enough.
        let together = match self.service.peek(&rules, charges, None).await {
            Err(ServiceError { kind: ServiceErrorKind::Never | ServiceErrorKind::Blocked, .. }) => None,
            peeked => Some(peeked?),
        };
        Ok(Reply::of(&explanation::explained(&explained, together.as_ref())))
    }

    async fn refund(&self, body: &[u8]) -> Result<Reply, Problem> {
        let receipt = body_errors::receipt(body).map_err(|text| Problem::malformed(&text))?;
        Ok(Reply::applied(self.service.refund(&receipt).await?))
    }

    async fn settle(&self, body: &[u8]) -> Result<Reply, Problem> {
        let (receipt, actual) = body_errors::settlement(body).map_err(|text| Problem::malformed(&text))?;
        Ok(Reply::applied(self.service.settle(&receipt, actual).await?))
    }

    async fn credit(&self, body: &[u8]) -> Result<Reply, Problem> {
        let credit = body_errors::credit(body).map_err(|text| Problem::malformed(&text))?;
        Ok(Reply::applied(self.service.credit(&credit).await?))
    }

    async fn reset(&self, body: &[u8]) -> Result<Reply, Problem> {
        let reset = body_errors::reset(body).map_err(|text| Problem::malformed(&text))?;
        Ok(Reply::applied(self.service.reset(&reset).await?))
    }

    async fn key(&self, rule: &str, key: &str, query: &str) -> Result<Reply, Problem> {
        let rule = decoded(rule).map_err(Problem::malformed)?;
        let key = decoded(key).map_err(Problem::malformed)?;
        let wrong = |text: &str| Problem::malformed(&text.replacen("path", "tag", 1));
        let tag = parameter(query, "tag").map(decoded).transpose().map_err(wrong)?;
        let rules = self.service.rules();
        let request = ChargeRequest::named(&*rule, &*key, 0).with_tag(tag.as_deref());
        let (rule, usages) = self.service.inspect(&rules, &request).await?;
        Ok(Reply::of(&explanation::used(rule, &request, &usages)))
    }

    /// The small-service form: the count before this request, and the window in seconds.
    async fn rlaas(&self, user: &str) -> Result<Reply, Problem> {
        let user = decoded(user).map_err(Problem::malformed)?;
        let rules = self.service.rules();
        let charges = [ChargeRequest::named(DEFAULT_RULE, &*user, 1)];
        let decision = self.service.check(Transport::Http, &rules, &charges, None).await?;
        let binding = decision.binding();
        let own = rules.get(DEFAULT_RULE).map_err(ServiceError::from)?;
        let window = binding.window().unwrap_or_else(|| own.limits()[0].rate().window());
        // A shadow rule that would deny does not charge, and an unlimited key is not counted.
        let before = match binding.used() {
            Some(count) => {
                let is_counted = decision.is_charged() || (decision.degraded() && binding.allowed());
                count.saturating_sub(is_counted.into()).to_string()
            }
            None if decision.degraded() => "null".to_owned(),
            None => "0".to_owned(),
        };
        let (allowed, ttl) = (binding.allowed(), whole_seconds(window));
        let body = format!("{{\"allowed\":{allowed},\"currentCount\":{before},\"ttl\":{ttl}}}");
        let mut reply = Reply::json(if allowed { 200 } else { 429 }, body.into_bytes());
        rate_headers::write(&binding, &self.headers, &*self.clock, &mut reply.lines);
        Ok(reply)
    }
}
