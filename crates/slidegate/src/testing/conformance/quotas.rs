//! Worked examples of floods, quotas and refusals.

use super::subject::{BOUNDARY_US, DAY_US, MINUTE_US, SECOND_US, Subject, admission, retry_us, rule};
use crate::charge::{Admission, Charge, ChargeError};
use crate::rule::{Algorithm, Buckets, Edge};
use crate::store::Store;
use crate::testing::trace;

/// The web firewall: 2,000 per five minutes in 60 buckets; 1,950 spread out pass, of 100 more in one second
/// exactly 50.
pub async fn worked_example_6<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let sixty = Buckets::new(60).expect("in range");
    let waf = rule("waf", &["2000/5m"], Algorithm::SlidingBuckets(sixty, Edge::Full));
    let subject = Subject::new(fresh).await;
    let ask = [(&waf, "203.0.113.45", 1)];
    for number in 0..1_950 {
        let at_us = BOUNDARY_US + SECOND_US + number * (297 * SECOND_US / 1_950);
        let allowed = subject.check(at_us, &ask).await?.allowed();
        ensure!(allowed, "request {number} of 1,950 is denied");
    }
    let mut admitted = 0;
    for number in 0..100 {
        let at_us = BOUNDARY_US + 299 * SECOND_US + number * SECOND_US / 100;
        admitted += u64::from(subject.check(at_us, &ask).await?.allowed());
    }
    ensure_eq!(admitted, 50, "of 100 in one second");
    Ok(())
}

/// 10,000 refused requests in a minute change nothing and do not postpone the reopening.
pub async fn worked_example_7<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let (subject, rule) = (Subject::new(fresh).await, rule("api", &["5/60s"], Algorithm::SlidingLog));
    subject.admit(BOUNDARY_US, &rule, 5).await?;
    let before = subject.usages(BOUNDARY_US, &rule).await?;
    for knock in 0..10_000 {
        let at_us = BOUNDARY_US + knock * MINUTE_US / 10_000;
        let decision = subject.ask(at_us, &rule, 1).await?;
        ensure!(!decision.allowed(), "knock {knock} is admitted");
        ensure_eq!(at_us + retry_us(&decision), BOUNDARY_US + MINUTE_US, "reopening after knock {knock}");
    }
    ensure_eq!(subject.usages(BOUNDARY_US, &rule).await?, before, "after 10,000 refusals");
    subject.admit(BOUNDARY_US + MINUTE_US, &rule, 5).await?;
    Ok(())
}

/// Every one of many requests within one microsecond counts.
pub async fn worked_example_8<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["100/10s"], algorithm));
        let mut admitted = 0;
        for _ in 0..150 {
            admitted += u64::from(subject.ask(BOUNDARY_US, &rule, 1).await?.allowed());
        }
        ensure_eq!(admitted, 100, "{algorithm}: admitted of 150 in one microsecond");
        ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, 100, "{algorithm}: used");
    }
    Ok(())
}

/// 100-unit calls against 9,500 a day: the 96th is refused with the exact wait; 9,501 at once are never
/// possible.
pub async fn worked_example_10<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let (subject, quota) = (Subject::new(fresh).await, rule("quota", &["9500/24h"], Algorithm::SlidingLog));
    let call_us = |number: u64| BOUNDARY_US + number * MINUTE_US;
    for number in 0..95 {
        subject.admit(call_us(number), &quota, 100).await?;
    }
    let refused = subject.ask(call_us(95), &quota, 100).await?;
    ensure_eq!((refused.allowed(), refused.remaining()), (false, Some(0)), "the 96th call");
    ensure_eq!(retry_us(&refused), DAY_US - 95 * MINUTE_US, "its wait");
    subject.wait_is_exact(call_us(95), &[(&quota, "alice", 100)], &refused).await?;
    let costly = Charge::new(&quota, super::subject::key("alice"), 9_501);
    let never = Admission::new(&[costly]).err();
    ensure!(matches!(never, Some(ChargeError::Never { .. })), "9,501 of 9,500 is no error");
    Ok(())
}

/// The small service everyone writes first: 5 per 60 s, six calls.
pub async fn worked_example_11<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("default", &["5/60s"], algorithm));
        for call in 0..6 {
            let before = subject.peek(BOUNDARY_US, &[(&rule, "alice", 1)]).await?.used();
            ensure_eq!(before, Some(call), "{algorithm}: used before call {call}");
            let decision = subject.ask(BOUNDARY_US, &rule, 1).await?;
            ensure_eq!(decision.allowed(), call < 5, "{algorithm}: call {call}");
        }
    }
    // Another user has a separate state.
    let rule = rule("default", &["5/60s"], Algorithm::SlidingLog);
    let subject = Subject::new(fresh).await;
    subject.admit(BOUNDARY_US, &rule, 5).await?;
    let bob =
        subject.0.check(crate::store::Call::at_us(BOUNDARY_US), &admission(&[(&rule, "bob", 5)])?).await;
    ensure!(bob.is_ok_and(|outcome| outcome.allowed()), "bob is denied what alice has used");
    Ok(())
}
