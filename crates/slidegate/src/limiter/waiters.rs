//! The queues of waiting acquisitions, one per state, in the order of arrival.
//!
//! Every state, a rule's name and a key, has a queue. A waiter gets one ticket and enters the queues of all its
//! states in one step, so that the order of tickets is the order in every queue: the lowest ticket is first
//! in all of its own, and waiters for several states cannot block each other in a circle.
//!
//! Only a waiter that is first in all its queues is woken, so there is no stampede: when one unit becomes free, one
//! waiter asks the store, however many wait.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::charge::Charge;
use crate::rule::Rule;

/// Most acquisitions that wait in one limiter at the same time.
pub const WAITERS_MAX: usize = 65_536;

/// The queues of a limiter, behind one lock that is never held across a wait.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// The number of waiters, so that other calls need not lock to see that there are none.
    count: AtomicUsize,
    queues: Mutex<Queues>,
}

#[derive(Debug, Default)]
struct Queues {
    tickets_given: u64,
    waiters: HashMap<u64, Waiter>,
    /// Queues by the rule's name and key. No map or queue in it is empty.
    by_rule: HashMap<Arc<str>, HashMap<Arc<str>, BTreeSet<u64>>>,
}

#[derive(Debug)]
struct Waiter {
    states: Box<[(Arc<str>, Arc<str>)]>,
    waker: Waker,
    /// Whether it was woken since it last checked.
    woken: bool,
    /// When it will try next, if it is first; else 0.
    tries_at_us: u64,
}

/// A waiter's ticket for its queues. Dropping it leaves the queues and wakes the next waiter.
#[derive(Debug)]
pub(super) struct QueueTicket<'l> {
    waiters: &'l Waiters,
    number: u64,
}

impl Waiters {
    /// Whether a waiter queues for one of these states.
    pub(super) fn any_for(&self, asks: &[Charge<'_>]) -> bool {
        self.any() && {
            let queues = self.lock();
            queued(asks).any(|ask| queues.first(ask.rule.name(), ask.key.identity()).is_some())
        }
    }

    /// Enters the queues of all these states; `None` if [`WAITERS_MAX`] wait.
    pub(super) fn join(&self, asks: &[Charge<'_>], waker: &Waker) -> Option<QueueTicket<'_>> {
        let mut queues = self.lock();
        if queues.waiters.len() >= WAITERS_MAX {
            return None;
        }
        let ticket = queues.tickets_given;
        queues.tickets_given += 1;
        let states =
            queued(asks).map(|ask| queues.enter(ticket, ask.rule.name(), ask.key.identity())).collect();
        let waiter = Waiter { states, waker: waker.clone(), woken: false, tries_at_us: 0 };
        queues.waiters.insert(ticket, waiter);
        self.count.store(queues.waiters.len(), Ordering::Release);
        Some(QueueTicket { waiters: self, number: ticket })
    }

    /// Wakes the first waiters of these states: units may have become free.
    pub(super) fn wake<'a>(&self, states: impl Iterator<Item = (&'a str, &'a str)>) {
        if self.any() {
            let mut queues = self.lock();
            let firsts = states.filter_map(|(rule, key)| queues.first(rule, key)).collect();
            wake_outside(queues.wake(firsts), queues);
        }
    }

    /// Wakes the first waiters of all states of a rule: units may have become free.
    pub(super) fn wake_rule(&self, rule: &Rule) {
        if self.any() {
            let mut queues = self.lock();
            let of_rule = queues.by_rule.get(rule.name()).into_iter().flat_map(HashMap::values);
            let firsts = of_rule.filter_map(BTreeSet::first).copied().collect();
            wake_outside(queues.wake(firsts), queues);
        }
    }

    /// Number of waiters.
    pub(super) fn waiting(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether there are waiters. None is missed: a waiter is counted before it asks the store, and the store orders
    /// that call and the change that is followed by this load.
    fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueTicket<'_> {
    /// Whether this waiter is first in all its queues. From here on `waker` is woken when that may have changed, or
    /// when units may have become free.
    pub(super) fn is_first(&self, waker: &Waker) -> bool {
        let mut queues = self.waiters.lock();
        let waiter = queues.waiter(self.number);
        waiter.woken = false;
        waiter.waker.clone_from(waker);
        queues.is_first(self.number)
    }

    /// Whether it was woken since the last `is_first`; if not, `waker` will be woken.
    pub(super) fn woken(&self, waker: &Waker) -> bool {
        let mut queues = self.waiters.lock();
        let waiter = queues.waiter(self.number);
        if !waiter.woken {
            waiter.waker.clone_from(waker);
        }
        waiter.woken
    }

    /// Records when this waiter, which is first, will try next.
    pub(super) fn tries_next_at(&self, at_us: u64) {
        self.waiters.lock().waiter(self.number).tries_at_us = at_us;
    }

    /// If another waiter is first for the state: when that one will try next, 0 if unknown.
    pub(super) fn behind_until_us(&self, ask: &Charge<'_>) -> Option<u64> {
        let mut queues = self.waiters.lock();
        // A queue is for the whole key, and a store may have answered for a shard of it.
        let first = queues.first(ask.rule.name(), ask.key.unsharded().identity());
        let first = first.filter(|first| *first != self.number)?;
        Some(queues.waiter(first).tries_at_us)
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        let mut queues = self.waiters.lock();
        let next = queues.leave(self.number);
        self.waiters.count.store(queues.waiters.len(), Ordering::Release);
        wake_outside(queues.wake(next), queues);
    }
}

impl Queues {
    /// Appends a ticket to the queue of a state.
    fn enter(&mut self, ticket: u64, rule: &str, key: &str) -> (Arc<str>, Arc<str>) {
        fn shared<V>(names: &HashMap<Arc<str>, V>, name: &str) -> Arc<str> {
            names.get_key_value(name).map_or_else(|| name.into(), |(known, _)| Arc::clone(known))
        }
        let rule = shared(&self.by_rule, rule);
        let by_key = self.by_rule.entry(Arc::clone(&rule)).or_default();
        let key = shared(by_key, key);
        by_key.entry(Arc::clone(&key)).or_default().insert(ticket);
        (rule, key)
    }

    /// Removes a waiter from all its queues; returns the waiters that became first.
    fn leave(&mut self, ticket: u64) -> Vec<u64> {
        let waiter = self.waiters.remove(&ticket).expect("a ticket leaves its queues once");
        let mut next = Vec::new();
        for (rule, key) in &waiter.states {
            let by_key = self.by_rule.get_mut(rule).expect("a queue with a waiter");
            let queue = by_key.get_mut(key).expect("a queue with a waiter");
            let was_first = queue.first() == Some(&ticket);
            queue.remove(&ticket);
            next.extend(queue.first().filter(|_| was_first));
            if queue.is_empty() {
                by_key.remove(key);
            }
            if by_key.is_empty() {
                self.by_rule.remove(rule);
            }
        }
        next
    }

    fn first(&self, rule: &str, key: &str) -> Option<u64> {
        self.by_rule.get(rule)?.get(key)?.first().copied()
    }

    /// Whether a waiter is first in all its queues.
    fn is_first(&self, ticket: u64) -> bool {
        self.waiters[&ticket].states.iter().all(|(rule, key)| self.first(rule, key) == Some(ticket))
    }

    fn waiter(&mut self, ticket: u64) -> &mut Waiter {
        self.waiters.get_mut(&ticket).expect("it waits until its ticket is dropped")
    }

    /// Marks the waiters that are first and were not woken yet; returns their wakers.
    fn wake(&mut self, mut tickets: Vec<u64>) -> Vec<Waker> {
        tickets.retain(|ticket| self.is_first(*ticket));
        let mut wakers = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            let waiter = self.waiter(ticket);
            if !std::mem::replace(&mut waiter.woken, true) {
                wakers.push(waiter.waker.clone());
            }
        }
        wakers
    }
}

/// Wakes after the lock is released: a waker may run any code.
fn wake_outside(wakers: Vec<Waker>, queues: MutexGuard<'_, Queues>) {
    drop(queues);
    wakers.into_iter().for_each(Waker::wake);
}

/// The asks that are worth waiting for: a shadow rule never denies.
fn queued<'c, 'a>(asks: &'c [Charge<'a>]) -> impl Iterator<Item = &'c Charge<'a>> {
    asks.iter().filter(|ask| !ask.rule.shadow())
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;
    use crate::key::Key;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn rule(name: &str) -> Rule {
        Rule::builder(name).limit("1/1m".parse().unwrap()).build().unwrap()
    }

    #[test]
    fn only_a_waiter_that_is_first_in_all_queues_is_woken_and_only_once() {
        let (a, b) = (rule("a"), rule("b"));
        let charge = |rule| Charge { rule, key: Key::new("k").unwrap(), cost: 1 };
        let waiters = Waiters::default();
        let counters: [Arc<Wakes>; 3] = Default::default();
        let wakers: Vec<Waker> = counters.iter().map(|counter| Arc::clone(counter).into()).collect();
        let woken = || counters.each_ref().map(|counter| counter.0.load(Ordering::SeqCst));

        assert!(!waiters.any_for(&[charge(&a)]));
        let first = waiters.join(&[charge(&a)], &wakers[0]).unwrap();
        let both = waiters.join(&[charge(&b), charge(&a)], &wakers[1]).unwrap();
        let last = waiters.join(&[charge(&b)], &wakers[2]).unwrap();
        assert!(waiters.any_for(&[charge(&b)]));
        assert!(first.is_first(&wakers[0]) && !both.is_first(&wakers[1]) && !last.is_first(&wakers[2]));

        waiters.wake([("a", "k"), ("b", "k"), ("b", "unknown")].into_iter());
        waiters.wake_rule(&a);
        assert_eq!(woken(), [1, 0, 0], "one wake until it looks");
        assert!(first.woken(&wakers[0]) && !both.woken(&wakers[1]));
        assert!(first.is_first(&wakers[0]) && !first.woken(&wakers[0]), "looking takes the wake");

        drop(first);
        assert_eq!(woken(), [1, 1, 0], "first in both queues now");
        assert!(both.is_first(&wakers[1]));
        drop(last);
        assert_eq!(woken(), [1, 1, 0], "the first waiter has not changed");
        drop(both);
        assert_eq!(woken(), [1, 1, 0]);
        assert!(!waiters.any() && waiters.lock().by_rule.is_empty(), "no empty queue stays behind");
    }
}
