//! What became of many requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slidegate::store::{Call, Store, StoreError};
use slidegate::{Decision, Rule};
use tokio::task::JoinSet;

use super::{admission, ask};

/// A pause after a failure, so that nobody knocks ten thousand times while a server starts.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub admitted: u64,
    pub denied: u64,
    /// Failures after which nobody knows whether the charge was made.
    pub ambiguous: u64,
    /// Failures that charged nothing, in words; of many only the first.
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

    /// Nothing went wrong.
    pub fn assert_answered(&self) {
        assert_eq!((self.ambiguous, self.failed), (0, 0), "{self:?}");
    }

    /// Nothing was charged twice, and nothing that was admitted is missing.
    pub fn assert_charged(&self, used: u64) {
        let bounds = self.admitted..=self.admitted + self.ambiguous;
        assert!(bounds.contains(&used), "{used} in use, but {self:?}");
    }
}

/// So many callers at once, each asking once for one unit for alice.
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

/// So many callers who ask for alice again and again, every other of them for sixteen admissions at a time, until
/// they are told to stop.
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
