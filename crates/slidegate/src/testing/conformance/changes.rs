//! Live changes of rules.

use super::subject::{BOUNDARY_US, SECOND_US, Subject, rule};
use crate::store::Store;
use crate::testing::trace;

/// After a change of limit, window, algorithm or number of limits, used units still count, and waits are exact.
pub async fn changes_keep_what_is_used<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let old = rule("api", &["10/10s"], algorithm);
        for other in trace::algorithms() {
            for rates in [&["7/10s"][..], &["20/10s"], &["7/20s"], &["4/1s"], &["7/10s", "100/1h"]] {
                let (subject, new) = (Subject::new(fresh).await, rule("api", rates, other));
                subject.admit(BOUNDARY_US + SECOND_US, &old, 6).await?;
                let at_us = BOUNDARY_US + 6 * SECOND_US;
                let before = subject.used(at_us, &old).await?;
                subject.change(at_us, &new).await?;
                let story = format!("{algorithm} 10/10s changed to {other} {rates:?}");
                ensure_eq!(subject.used(at_us, &new).await?, before, "{story}: used");
                let left = new.cost_max().saturating_sub(before);
                let shown = subject.peek(at_us, &[(&new, "alice", 1)]).await?.remaining();
                ensure_eq!(shown, Some(left), "{story}: remaining");
                if left > 0 {
                    subject.admit(at_us, &new, left).await?;
                }
                let denied = subject.ask(at_us, &new, 1).await?;
                ensure!(!denied.allowed(), "{story}: over the limit");
                subject.wait_is_exact(at_us, &[(&new, "alice", 1)], &denied).await?;
            }
        }
    }
    Ok(())
}

/// A change to another window and back creates new states: earlier receipts give nothing back.
pub async fn changes_void_receipts<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (hourly, brief) = (rule("api", &["10/1h"], algorithm), rule("api", &["10/1s"], algorithm));
        let subject = Subject::new(fresh).await;
        let old = subject.admit(BOUNDARY_US, &hourly, 6).await?;
        subject.change(BOUNDARY_US + SECOND_US, &brief).await?;
        subject.change(BOUNDARY_US + 10 * SECOND_US, &hourly).await?;
        let at_us = BOUNDARY_US + 11 * SECOND_US;
        let left = 10 - subject.used(at_us, &hourly).await?;
        let new = subject.admit(at_us, &hourly, left).await?;
        ensure_eq!(subject.refund(at_us, &old).await?, None, "{algorithm}: a receipt from before the change");
        ensure!(!subject.passes(at_us, &hourly, 1).await?, "{algorithm}: over the limit");
        ensure_eq!(subject.refund(at_us, &new).await?, Some(left), "{algorithm}: a receipt from after it");
    }
    Ok(())
}
