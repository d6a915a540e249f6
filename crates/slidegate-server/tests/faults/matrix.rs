//! One fault: how requests are answered before, during and after it.

use std::time::Duration;

use serde_json::Value;
use slidegate::time::{Clock, SystemClock};

use crate::client::{Client, HttpAnswer};
use crate::faults::{Fault, Target};
use crate::observe::{check, stop, timed, until};
use crate::options::Plan;
use crate::program::file_of;
use crate::server_process::ServerProcess;
use crate::timings::Timings;

pub(crate) const DEADLINE: Duration = Duration::from_millis(50);
/// What an answer may take beyond the deadline, on a quiet machine.
const SLACK: Duration = Duration::from_millis(20);
/// Much more than a stalled machine needs.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// On a quiet machine, while the breaker is open.
const OPEN_P99_MAX: Duration = Duration::from_millis(1);
/// On a quiet machine, after the end of the fault.
const RECOVERY_MAX: Duration = Duration::from_secs(2);
/// The store is asked by one probe in that time at most, after the first pauses, which are shorter.
const PROBES_PER_SECOND_MAX: u64 = 10;
/// Failures that open the breaker, of requests one after the other.
const FAILURES_MAX: u64 = 5;

const RULES: &str = "
rules:
  strict: { limit: RATE, algorithm: gcra, on_store_error: deny }
  open: { limit: RATE, algorithm: gcra, on_store_error: allow }
  share: { limit: RATE, algorithm: gcra, on_store_error: { local: 0.25 } }
";
/// The limit of the rules, which no trial of a fault reaches.
pub(crate) const RATE: &str = "1000000/1d";
const NAMES: [&str; 3] = ["strict", "open", "share"];

/// What was measured during a fault.
pub(crate) struct Measured {
    pub(crate) causes: Vec<String>,
    pub(crate) requests: u64,
    pub(crate) longest: Duration,
    /// Of the answers while the breaker was open; `None` if it never opened.
    pub(crate) open_p99: Option<Duration>,
    /// Script calls that arrived at the store while the breaker was open, if they could.
    pub(crate) calls: Option<u64>,
    pub(crate) recovered_after: Duration,
}

/// The configuration of these rules.
pub(crate) fn configuration(rate: &str) -> String {
    let rules = RULES.replace("RATE", rate);
    file_of("rules.yaml", format!("{rules}\ndeadline: {}ms\n", DEADLINE.as_millis()))
}

/// Brings the fault about and ends it.
pub(crate) fn measure(fault: &Fault, plan: &Plan) -> Measured {
    let mut target = Target::start();
    let server = ServerProcess::start(&["--config", &configuration(RATE), "--store", &target.proxy.url()]);
    let mut client = server.connect();
    for rule in NAMES {
        until("the store answers", || is_normal(&check(&mut client, rule, "alice")));
    }
    (fault.begin)(&mut target);
    let mut seen = Seen::default();
    // The first answers open the breaker; some may come from before the fault.
    until("the fault shows", || !is_normal(&seen.ask(&mut client, "open")));
    for _ in 0..2 * FAILURES_MAX {
        for rule in NAMES {
            seen.judge(fault, rule, &mut client);
        }
    }
    if fault.opens_breaker {
        until("the breaker is open", || {
            seen.judge(fault, "open", &mut client);
            gauge(&server, "slidegate_breaker_open{store=\"redis\"}") == 1
        });
    }
    let clock = SystemClock::new();
    let ((_, calls_before), begin_us) = (target.proxy.counts(), clock.now_us());
    let mut open = Timings::default();
    for _ in 0..plan.size(60, 3_000) {
        for rule in NAMES {
            open.record(seen.judge(fault, rule, &mut client));
        }
    }
    let elapsed_s = (clock.now_us() - begin_us).div_ceil(1_000_000);
    let calls = target.proxy.counts().1 - calls_before;
    if fault.opens_breaker {
        assert_eq!(gauge(&server, "slidegate_breaker_open{store=\"redis\"}"), 1);
        assert!(calls <= PROBES_PER_SECOND_MAX * (elapsed_s + 1), "{calls} calls in {elapsed_s} s");
    }
    not_ready(&server, fault);
    let degraded = gauge(&server, "slidegate_outage_answers_total{rule=\"open\",policy=\"allow\"");
    assert!(degraded > 0, "no metric counts degraded answers");
    if fault.spares_others {
        for rule in NAMES {
            assert!(is_normal(&check(&mut client, rule, "bob")), "{rule}");
        }
    }
    (fault.end)(&mut target);
    let ((), recovered_after) = timed(|| {
        until("the store is used again", || {
            NAMES.iter().all(|rule| is_normal(&check(&mut client, rule, "alice")))
        });
    });
    until("/readyz notices the end", || server.ask("GET", "/readyz", "").status == 200);
    let log = stop(server);
    let opened = log.matches("the circuit breaker opened").count();
    assert_eq!(opened, usize::from(fault.opens_breaker), "{log}");
    assert!(log.matches("the store fails").count() <= 2 + fault.causes.len(), "{log}");
    assert!(!log.contains(crate::faults::PASSWORD), "{log}");
    if plan.full {
        assert!(seen.all.longest() <= DEADLINE + SLACK, "longest: {:?}", seen.all.longest());
        assert!(!fault.opens_breaker || open.p99() < OPEN_P99_MAX, "p99: {:?}", open.p99());
        assert!(recovered_after <= RECOVERY_MAX, "recovery: {recovered_after:?}");
    }
    Measured {
        causes: seen.causes,
        requests: seen.requests,
        longest: seen.all.longest(),
        open_p99: fault.opens_breaker.then(|| open.p99()),
        calls: fault.is_reachable.then_some(calls),
        recovered_after,
    }
}

/// All answers during a fault.
#[derive(Default)]
struct Seen {
    all: Timings,
    requests: u64,
    causes: Vec<String>,
}

impl Seen {
    fn ask(&mut self, client: &mut Client, rule: &str) -> HttpAnswer {
        let (answer, took) = timed(|| check(client, rule, "alice"));
        assert!(took < ANSWER_TIME_MAX, "{took:?}");
        self.all.record(took);
        self.requests += 1;
        answer
    }

    /// Sends a request and asserts that the policy of its rule answers it; returns how long that took.
    fn judge(&mut self, fault: &Fault, rule: &str, client: &mut Client) -> Duration {
        let (answer, took) = timed(|| self.ask(client, rule));
        let body = answer.json();
        assert_eq!(body["degraded"], true, "{}: {answer:?}", fault.name);
        let cause = body["cause"].as_str().expect("a cause");
        assert!(fault.causes.contains(&cause), "{}: {answer:?}", fault.name);
        if !self.causes.iter().any(|known| known == cause) {
            self.causes.push(cause.to_owned());
        }
        if rule == "strict" {
            assert_eq!((answer.status, answer.problem().as_str()), (503, "store"));
        } else {
            assert_eq!((answer.status, &body["allowed"]), (200, &Value::Bool(true)), "{answer:?}");
            assert_eq!(body["receipt"], Value::Null, "{answer:?}");
        }
        let limit = if rule == "share" { Value::from(250_000) } else { Value::Null };
        assert_eq!(body["limit"], limit, "{answer:?}");
        took
    }
}

/// Whether the store decided.
fn is_normal(answer: &HttpAnswer) -> bool {
    answer.status == 200 && answer.json()["degraded"] == false
}

/// `/readyz` names the cause, unless other keys go on.
fn not_ready(server: &ServerProcess, fault: &Fault) {
    // A busy machine may exceed the deadline of this question, too.
    until("/readyz names the cause", || {
        let ready = server.ask("GET", "/readyz", "");
        if fault.spares_others {
            return ready.status == 200;
        }
        let is_named = |cause: &&str| ready.body == format!("not ready: store ({cause})\n");
        ready.status == 503 && fault.causes.iter().any(is_named)
    });
}

/// The value of the first sample whose line begins so; 0 if there is none.
pub(crate) fn gauge(server: &ServerProcess, sample: &str) -> u64 {
    let text = server.ask("GET", "/metrics", "").body;
    let line = text.lines().find(|line| line.starts_with(sample));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}
