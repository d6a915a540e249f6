//! The thread that executes the asynchronous calls of a store, and the queue in front of it.
//!
//! A transaction blocks its thread while it waits for the lock and while the disk syncs, so it must not run on the
//! caller's executor. There is one thread, because there is one connection: more would wait for each other.
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

use crate::file_error::FileError;
use crate::lock_wait::{Deadline, LockWait};

/// The most queued asynchronous calls of a store. At 3,000 admissions a second that is a third of a second of work; a
/// longer queue would only delay the answers.
pub const QUEUE_MAX: usize = 1_024;

/// The thread and its queue. The thread starts with the first call and ends when this is dropped.
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

/// A queued call.
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
    answer: oneshot::Sender<Result<T, FileError>>,
}

impl<T, F> Job for Task<F, T>
where
    T: Send,
    F: FnOnce(&mut LockWait<'_>) -> Result<T, FileError> + Send,
{
    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn execute(self: Box<Self>, queue: &Queue) {
        let Self { deadline, work, answer } = *self;
        // While this call waits for the lock, it answers queued calls whose deadline passes.
        let has_caller = || queue.answer_expired() && !answer.is_closed();
        let result = work(&mut LockWait::new(&queue.clock, deadline).while_called(&has_caller));
        // The future may have been dropped meanwhile.
        let _ = answer.send(result);
    }

    fn expire(self: Box<Self>) {
        let _ = self.answer.send(Err(FileError::timed_out()));
    }
}

impl Worker {
    pub(crate) fn new(clock: Arc<SystemClock>) -> Self {
        Self(Arc::new(Queue { clock, state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Executes `work` on the thread, unless the deadline passes or the future is dropped while it is queued.
    pub(crate) async fn execute<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: impl FnOnce(&mut LockWait<'_>) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let (answer, answered) = oneshot::channel();
        self.0.push(Box::new(Task { deadline, work, answer }))?;
        answered.await.unwrap_or_else(|_| Err(FileError::panicked()))
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of a job runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, job: Box<dyn Job>) -> Result<(), FileError> {
        let mut state = self.lock();
        if state.jobs.len() >= QUEUE_MAX {
            return Err(FileError::queue_full(QUEUE_MAX));
        }
        if state.thread.is_none() {
            let queue = Arc::clone(self);
            let started =
                thread::Builder::new().name("slidegate-sqlite".to_owned()).spawn(move || queue.work());
            state.thread = Some(started.map_err(|error| FileError::no_thread(&error))?);
        }
        state.jobs.push_back(job);
        self.changed.notify_one();
        Ok(())
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // After a panic, of the work or of a waker, the answer's sender is dropped, which its caller notices. The
            // next call runs.
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

    /// Waits for the next call; `None` when the store is dropped.
    fn next(&self) -> Option<Box<dyn Job>> {
        let waiting = self.changed.wait_while(self.lock(), |state| state.jobs.is_empty() && !state.closed);
        let mut state = waiting.unwrap_or_else(PoisonError::into_inner);
        if state.closed { None } else { state.jobs.pop_front() }
    }

    /// Answers the calls whose deadline has passed, and removes those whose future was dropped. Returns whether the
    /// store still exists.
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

/// Ends the thread and joins it, so that the file is closed when the store is dropped. That takes at most one
/// transaction, because no caller waits any more.
impl Drop for Worker {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        let (jobs, thread) = (std::mem::take(&mut state.jobs), state.thread.take());
        drop(state);
        drop(jobs);
        self.0.changed.notify_one();
        if let Some(thread) = thread
            // A waker may drop the store on this very thread, which then ends without a join.
            && thread.thread().id() != thread::current().id()
        {
            // A panic there was reported to its caller.
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
