//! The thread that executes the asynchronous calls of a store, and the queue in front of it.
//!
//! A transaction blocks the thread it runs on: while it waits for the lock, and while the disk syncs. Here that is not a
//! thread of the caller's executor. There is one thread, as there is one connection: more would wait for each other.
//!
//! ```text
//! future --push--> queue --next--> thread: a transaction
//!    ^               |                |
//!    '----answer-----'----------------'      from the queue: full, or timed out
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use slidegate::time::{Clock, SystemClock};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::patience::{Deadline, Patience};

/// Most asynchronous calls of a store that wait for their turn. At 3,000 admissions a second these are a third of a
/// second of work; a longer queue would only be answered later.
pub const QUEUE_MAX: usize = 1_024;

/// Starts its thread with the first call, and ends it when it is dropped.
pub(crate) struct Worker(Arc<Queue>);

struct Queue {
    clock: Arc<SystemClock>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Box<dyn Job>>,
    thread: Option<JoinHandle<()>>,
    closed: bool,
}

/// A call that waits for its turn.
trait Job: Send {
    /// Whether its future was dropped.
    fn is_abandoned(&self) -> bool;

    fn deadline(&self) -> Deadline;

    fn execute(self: Box<Self>, queue: &Queue);

    /// Answers that it was not executed in time.
    fn expire(self: Box<Self>);
}

struct Task<F, T> {
    deadline: Deadline,
    work: F,
    answer: oneshot::Sender<Result<T, Failure>>,
}

impl<T, F> Job for Task<F, T>
where
    T: Send,
    F: FnOnce(&mut Patience<'_>) -> Result<T, Failure> + Send,
{
    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn execute(self: Box<Self>, queue: &Queue) {
        let Self { deadline, work, answer } = *self;
        // While this call waits for the lock, those behind it whose deadline passes need not wait with it.
        let wanted = || queue.answer_expired() && !answer.is_closed();
        let done = work(&mut Patience::new(&queue.clock, deadline).while_wanted(&wanted));
        // Nobody waits for it if the future was dropped meanwhile.
        let _ = answer.send(done);
    }

    fn expire(self: Box<Self>) {
        let _ = self.answer.send(Err(Failure::timed_out()));
    }
}

impl Worker {
    pub(crate) fn new(clock: Arc<SystemClock>) -> Self {
        Self(Arc::new(Queue { clock, state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Executes `work` on the thread, unless the deadline passes or the future is dropped before its turn.
    pub(crate) async fn execute<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: impl FnOnce(&mut Patience<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        self.0.push(Box::new(Task { deadline, work, answer }))?;
        answered.await.unwrap_or_else(|_| Err(Failure::panicked()))
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of a job runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, job: Box<dyn Job>) -> Result<(), Failure> {
        let mut state = self.lock();
        if state.jobs.len() >= QUEUE_MAX {
            return Err(Failure::queue_full(QUEUE_MAX));
        }
        if state.thread.is_none() {
            let queue = Arc::clone(self);
            let started =
                thread::Builder::new().name("slidegate-sqlite".to_owned()).spawn(move || queue.work());
            state.thread = Some(started.map_err(|error| Failure::no_thread(&error))?);
        }
        state.jobs.push_back(job);
        self.changed.notify_one();
        Ok(())
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // A panic, of the work or of a waker, is told to its caller by the answer that does not come; the next call
            // has its turn.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if job.is_abandoned() {
                    drop(job);
                } else if job.deadline().has_passed(self.clock.now_us()) {
                    job.expire();
                } else {
                    job.execute(self);
                }
            }));
        }
    }

    /// The next call, once there is one; `None` if there will be none.
    fn next(&self) -> Option<Box<dyn Job>> {
        let waiting = self.changed.wait_while(self.lock(), |state| state.jobs.is_empty() && !state.closed);
        let mut state = waiting.unwrap_or_else(PoisonError::into_inner);
        if state.closed { None } else { state.jobs.pop_front() }
    }

    /// Answers the calls whose deadline has passed and drops those whose future was dropped; says whether the store is
    /// still there.
    fn answer_expired(&self) -> bool {
        let now_us = self.clock.now_us();
        let mut state = self.lock();
        let is_over = |job: &dyn Job| job.is_abandoned() || job.deadline().has_passed(now_us);
        if state.jobs.iter().any(|job| is_over(&**job)) {
            let (over, waiting) = state.jobs.drain(..).partition::<Vec<_>, _>(|job| is_over(&**job));
            state.jobs.extend(waiting);
            let open = !state.closed;
            drop(state);
            over.into_iter().for_each(Job::expire);
            return open;
        }
        !state.closed
    }
}

/// Ends the thread. It is waited for, so that the file is closed when the store is gone; that is at most one
/// transaction, as nobody waits for an answer any more.
impl Drop for Worker {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        let (jobs, thread) = (std::mem::take(&mut state.jobs), state.thread.take());
        drop(state);
        drop(jobs);
        self.0.changed.notify_one();
        if let Some(thread) = thread
            // A waker that drops the store does so on this very thread, which then ends by itself.
            && thread.thread().id() != thread::current().id()
        {
            // What panicked there was told to its caller.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        let (queued, started) = (state.jobs.len(), state.thread.is_some());
        f.debug_struct("Worker").field("queued", &queued).field("started", &started).finish()
    }
}

#[cfg(test)]
mod tests;
