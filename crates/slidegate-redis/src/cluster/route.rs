//! Sends calls to the owners of their slots, and sends again what was certainly not executed.

use std::sync::Arc;
use std::time::{Duration, Instant as StdInstant};

use redis::Value;
use slidegate::store::StoreError;
use tokio::time::{Instant, sleep};

use super::hash_slot::hash_slot;
use super::join_all::join_all;
use super::node::Node;
use super::reply::Outcome;
use super::{Cluster, Shared};
use crate::link::{Backoff, ScriptCall};

/// First and longest pause before a call is sent again.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// Redirections of a call that are followed without a pause. More mean that two nodes disagree.
const REDIRECTS_AT_ONCE: u32 = 4;

/// The results of a batch; `None` while a call is on its way.
type Results = Vec<Option<Result<Value, StoreError>>>;

/// A call on its way.
#[derive(Debug)]
struct Routed {
    /// Its number in the batch.
    number: usize,
    call: Arc<ScriptCall>,
    slot: u16,
    /// The node that an `ASK` named: only for the next try.
    ask: Option<Arc<Node>>,
    redirects: u32,
    /// Why it was not executed so far.
    failure: Option<StoreError>,
}

impl Routed {
    fn new(number: usize, call: ScriptCall) -> Self {
        let slot = hash_slot(call.keys.first().map_or(b"", |key| key));
        Self { number, call: Arc::new(call), slot, ask: None, redirects: 0, failure: None }
    }

    /// To be sent to the owner of its slot.
    fn again(self, failure: Option<StoreError>) -> Self {
        Self { ask: None, failure: failure.or(self.failure), ..self }
    }

    fn redirected(self, ask: Option<Arc<Node>>) -> Self {
        Self { ask, redirects: self.redirects + 1, ..self }
    }
}

/// The calls of a round that were not executed.
#[derive(Debug, Default)]
struct Unexecuted {
    again: Vec<Routed>,
    /// Calls whose node cannot be used, with that node, if their slot had one.
    lost: Vec<(Routed, Option<Arc<Node>>, StoreError)>,
    /// Whether to pause before the next round.
    pause: bool,
}

impl Unexecuted {
    /// Takes note of the outcome of a try at `node`.
    fn note(
        &mut self,
        shared: &Arc<Shared>,
        routed: Routed,
        node: Arc<Node>,
        outcome: Outcome,
        results: &mut Results,
    ) {
        let asked = routed.ask.is_some();
        match outcome {
            Outcome::Done(result) => results[routed.number] = Some(result),
            Outcome::Doubtful(error) => {
                shared.refresh_now_and_then();
                results[routed.number] = Some(Err(error));
            }
            Outcome::Moved(redirect) => {
                shared.map_mut().moved(&redirect);
                shared.refresh();
                let routed = routed.redirected(None);
                self.pause |= routed.redirects > REDIRECTS_AT_ONCE;
                self.again.push(routed);
            }
            Outcome::Ask(redirect) => {
                let target = shared.map_mut().node(&redirect.address);
                if let Some(target) = &target {
                    target.set_redirected();
                }
                let routed = routed.redirected(target);
                self.pause |= routed.ask.is_none() || routed.redirects > REDIRECTS_AT_ONCE;
                self.again.push(routed);
            }
            Outcome::Later(error) => {
                self.pause = true;
                self.again.push(routed.again(Some(error)));
            }
            // The owner may still know better.
            Outcome::Lost(error) if asked => {
                self.pause = true;
                self.again.push(routed.again(Some(error)));
            }
            Outcome::Lost(error) => self.lost.push((routed, Some(node), error)),
        }
    }
}

impl Cluster {
    /// Calls a script on the owner of its keys, which all lie in one slot. Without `until` the deadline of the options
    /// counts, from now.
    pub(crate) async fn call(
        &self,
        until: Option<StdInstant>,
        call: ScriptCall,
    ) -> Result<Value, StoreError> {
        let (deadline, routed) = (self.deadline(until), Routed::new(0, call));
        let (mut unexecuted, mut results) = (Unexecuted::default(), vec![None]);
        let owner = self.0.map().owner(routed.slot).cloned();
        // Nearly every call ends here.
        if let Some(owner) = owner {
            let call = Arc::clone(&routed.call);
            let result = self.link_to(&owner).try_call(Some(deadline.into_std()), call).await;
            match Outcome::of(result, owner.address()) {
                Outcome::Done(result) => return result,
                outcome => unexecuted.note(&self.0, routed, owner, outcome, &mut results),
            }
        } else {
            unexecuted.lost.push(without_owner(routed));
        }
        self.send_again(deadline, unexecuted, &mut results).await;
        results.pop().flatten().expect("every call has a result")
    }

    /// Calls scripts, with one deadline. Those of one node are sent together. Returns one result per call, in order.
    pub(crate) async fn call_all(
        &self,
        until: Option<StdInstant>,
        calls: Vec<ScriptCall>,
    ) -> Vec<Result<Value, StoreError>> {
        let deadline = self.deadline(until);
        let mut results: Results = calls.iter().map(|_| None).collect();
        let calls = calls.into_iter().enumerate().map(|(number, call)| Routed::new(number, call)).collect();
        let unexecuted = self.send_round(deadline, calls, &mut results).await;
        self.send_again(deadline, unexecuted, &mut results).await;
        results.into_iter().map(|result| result.expect("every call has a result")).collect()
    }

    /// Sends calls until all have a result.
    async fn send_again(&self, deadline: Instant, mut unexecuted: Unexecuted, results: &mut Results) {
        let mut backoff = Backoff::new(RETRY_PAUSES.0, RETRY_PAUSES.1);
        loop {
            let pause = if unexecuted.pause { backoff.pause().max(RETRY_PAUSES.0) } else { Duration::ZERO };
            let calls = self.with_new_owners(deadline, unexecuted, results).await;
            if calls.is_empty() {
                return;
            }
            let now = Instant::now();
            if now + pause >= deadline {
                for routed in calls {
                    results[routed.number] =
                        Some(Err(routed.failure.unwrap_or_else(redirected_until_the_end)));
                }
                return;
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
            unexecuted = self.send_round(deadline, calls, results).await;
        }
    }

    /// Looks for new owners of what was lost; without one it fails. Returns the calls to be sent again.
    async fn with_new_owners(
        &self,
        deadline: Instant,
        unexecuted: Unexecuted,
        results: &mut Results,
    ) -> Vec<Routed> {
        let Unexecuted { mut again, lost, .. } = unexecuted;
        if lost.is_empty() {
            return again;
        }
        let refreshed = self.0.fresh_map(deadline).await;
        for (routed, node, error) in lost {
            let owner = self.0.map().owner(routed.slot).cloned();
            match (owner, node) {
                (Some(owner), Some(node)) if !Arc::ptr_eq(&owner, &node) => {
                    again.push(routed.again(Some(error)));
                }
                (Some(_), None) => again.push(routed.again(Some(error))),
                (None, None) => {
                    results[routed.number] = Some(Err(refreshed.clone().err().unwrap_or(error)));
                }
                _ => results[routed.number] = Some(Err(error)),
            }
        }
        again
    }

    /// Sends every call once, those of one node together.
    async fn send_round(&self, deadline: Instant, calls: Vec<Routed>, results: &mut Results) -> Unexecuted {
        let (mut unexecuted, mut groups) = (Unexecuted::default(), Vec::<(Arc<Node>, Vec<Routed>)>::new());
        {
            let map = self.0.map();
            for routed in calls {
                let Some(node) = routed.ask.as_ref().or_else(|| map.owner(routed.slot)) else {
                    unexecuted.lost.push(without_owner(routed));
                    continue;
                };
                let same = |(of, group): &&mut (Arc<Node>, Vec<Routed>)| {
                    Arc::ptr_eq(of, node) && group[0].ask.is_some() == routed.ask.is_some()
                };
                match groups.iter_mut().find(same) {
                    Some((_, group)) => group.push(routed),
                    None => groups.push((Arc::clone(node), vec![routed])),
                }
            }
        }
        let send = |(node, group): (Arc<Node>, Vec<Routed>)| async move {
            let calls = group.iter().map(|routed| Arc::clone(&routed.call));
            let (link, until) = (self.link_to(&node), Some(deadline.into_std()));
            let answers = match group[0].ask {
                Some(_) => link.try_call_all_asking(until, calls).await,
                None => link.try_call_all(until, calls).await,
            };
            (node, group, answers)
        };
        for (node, group, answers) in join_all(groups.into_iter().map(send)).await {
            for (routed, answer) in group.into_iter().zip(answers) {
                let outcome = Outcome::of(answer, node.address());
                unexecuted.note(&self.0, routed, Arc::clone(&node), outcome, results);
            }
        }
        unexecuted
    }
}

fn without_owner(routed: Routed) -> (Routed, Option<Arc<Node>>, StoreError) {
    let why = format!(
        "no node of the cluster owns hash slot {}; see CLUSTER INFO, and give the slot to a node",
        routed.slot
    );
    (routed, None, StoreError::Unavailable { why: why.into() })
}

fn redirected_until_the_end() -> StoreError {
    let why =
        "the nodes of the cluster redirected the call until its deadline; see CLUSTER SLOTS on each of them";
    StoreError::Unavailable { why: why.into() }
}
