//! Denials, peeks and costs that can never pass change nothing.

use super::subject::{BOUNDARY_US, SECOND_US, Subject, key, rule};
use crate::charge::{Admission, Charge, ChargeError};
use crate::store::Store;
use crate::testing::model::ModelDecision;
use crate::testing::trace;

const DENIALS: u64 = 100;

/// A denial changes nothing: `used`, `remaining`, the wait and the reset stay the same, even after many denials,
/// with and without units left.
pub async fn denials_change_nothing<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let rule = rule("api", &["5/10s", "30/1m"], algorithm);
        for used in [3, 5] {
            let subject = Subject::new(fresh).await;
            subject.admit(BOUNDARY_US, &rule, used).await?;
            let at_us = BOUNDARY_US + SECOND_US;
            let ask = [(&rule, "alice", 5)];
            let peeked = ModelDecision::of(&subject.peek(at_us, &ask).await?);
            let before = (peeked, subject.usages(at_us, &rule).await?);
            for number in 0..DENIALS {
                let outcome = subject.check(at_us, &ask).await?;
                ensure!(outcome.receipt().is_none(), "{algorithm}: a denial has a receipt");
                let answer = ModelDecision::of(&outcome);
                ensure_eq!(&answer, &before.0, "{algorithm}: denial {number} after {used} were used");
            }
            let after =
                (ModelDecision::of(&subject.peek(at_us, &ask).await?), subject.usages(at_us, &rule).await?);
            ensure_eq!(&after, &before, "{algorithm}: used after {DENIALS} denials");
            let left = before.0.remaining;
            if left > 0 {
                subject.admit(at_us, &rule, left).await?;
            }
        }
    }
    Ok(())
}

/// A peek returns what a check would answer and charges nothing; a new key has nothing used.
pub async fn peeks_change_nothing<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["5/10s"], algorithm));
        for used in 0..=5 {
            let peeked = subject.peek(BOUNDARY_US, &[(&rule, "alice", 1)]).await?;
            let again = subject.peek(BOUNDARY_US, &[(&rule, "alice", 1)]).await?;
            ensure_eq!(ModelDecision::of(&peeked), ModelDecision::of(&again), "{algorithm}: a second peek");
            let numbers = (peeked.used(), peeked.remaining(), peeked.limit());
            ensure_eq!(
                numbers,
                (Some(used), Some(5 - used), Some(5)),
                "{algorithm}: used, remaining and limit"
            );
            ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, used, "{algorithm}: inspected");
            let checked = subject.ask(BOUNDARY_US, &rule, 1).await?;
            ensure_eq!(checked.allowed(), peeked.allowed(), "{algorithm}: a check after {used}");
        }
    }
    Ok(())
}

/// A cost that can never pass is an error before a store is asked; a cost equal to the limit passes.
pub async fn never_is_an_error<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["7/1s", "100/1m"], algorithm));
        let charge = |cost| Charge::new(&rule, key("alice"), cost);
        let never = Admission::new(&[charge(8)]).err();
        let promised = ChargeError::Never { rule: "api".to_owned(), cost: 8, limit: 7 };
        ensure_eq!(never, Some(promised), "{algorithm}: above the smallest limit");
        let nothing = Admission::new(&[charge(0)]).err();
        ensure!(matches!(nothing, Some(ChargeError::Zero { .. })), "{algorithm}: a cost of 0");
        subject.admit(BOUNDARY_US, &rule, 7).await?;
        // A limiter rejects a credit of 0; a store does nothing.
        ensure_eq!(subject.credit(BOUNDARY_US, &rule, 0).await?, None, "{algorithm}: a credit of 0");
        ensure_eq!(subject.used(BOUNDARY_US, &rule).await?, 7, "{algorithm}: used after it");
    }
    Ok(())
}
