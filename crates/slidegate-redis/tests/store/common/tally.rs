//! Counts the results of many requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slidegate::store::{Call, Store, StoreError};
use slidegate::{Decision, Rule};
use tokio::task::JoinSet;

use super::{admission, ask};

/// A pause after a failure, so that a starting server is not flooded with calls.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub admitted: u64,
    pub denied: u64,
    /// Failures that may have charged.
    pub ambiguous: u64,
    /// The texts of the first failures that charged nothing.
    pub failures: Vec<String>,
    pub failed: u64,
}

impl Tally {
    pub fn count(&mut self, decision: Result<Decision<'_>, StoreError>) {
        match decision {
            Ok(decision) if decision.allowed() => self.admitted += 1,
            Ok(_) => self.denied += 1,
            Err(error) if error.maybe_charged() => self.ambiguous += 1,
            Err(error) => {
                self.failed += 1;
                if self.failures.len() < 5 {
                    self.failures.push(error.to_string());
                }
            }
        }
    }

    pub fn join(mut self, other: Self) -> Self {
        self.admitted += other.admitted;
        self.denied += other.denied;
        self.ambiguous += other.ambiguous;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self
    }

    /// Asserts that every request was answered.
    pub fn assert_answered(&self) {
        assert_eq!((self.ambiguous, self.failed), (0, 0), "{self:?}");
    }

    /// Asserts that nothing was charged twice, and no admission is missing.
    pub fn assert_charged(&self, used: u64) {
        let bounds = self.admitted..=self.admitted + self.ambiguous;
        assert!(bounds.contains(&used), "{used} in use, but {self:?}");
    }
}

/// Concurrent callers, each asking once for one unit for alice.
pub async fn all_at_once<S: Store + 'static>(store: &Arc<S>, rule: &Arc<Rule>, callers: usize) -> Tally {
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (store, rule) = (Arc::clone(store), Arc::clone(rule));
        tasks.spawn(async move {
            let mut tally = Tally::default();
            tally.count(ask(&*store, Call::now(), &rule, 1).await);
            tally
        });
    }
    joined(tasks).await
}

/// Callers that ask for alice until `stop`, every other one in batches of sixteen admissions.
pub async fn until<S: Store + 'static>(
    store: &Arc<S>,
    rule: &Arc<Rule>,
    callers: usize,
    stop: &Arc<AtomicBool>,
) -> Tally {
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (store, rule, stop) = (Arc::clone(store), Arc::clone(rule), Arc::clone(stop));
        tasks.spawn(async move {
            let mut tally = Tally::default();
            let batch = if caller % 2 == 0 { 1 } else { 16 };
            while !stop.load(Ordering::SeqCst) {
                let failures = tally.failed + tally.ambiguous;
                let requests = vec![admission(&[(&*rule, "alice", 1)]); batch];
                if batch == 1 {
                    tally.count(store.check(Call::now(), &requests[0]).await);
                } else {
                    for decision in store.check_batch(Call::now(), &requests).await {
                        tally.count(decision);
                    }
                }
                if tally.failed + tally.ambiguous > failures {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            tally
        });
    }
    joined(tasks).await
}

async fn joined(mut tasks: JoinSet<Tally>) -> Tally {
    let mut all = Tally::default();
    while let Some(tally) = tasks.join_next().await {
        all = all.join(tally.expect("a caller panicked"));
    }
    all
}
