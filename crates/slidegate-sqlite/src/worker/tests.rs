use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slidegate::testing::block_on;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

struct Fixture {
    worker: Worker,
    clock: Arc<SystemClock>,
}

impl Fixture {
    fn new() -> Self {
        let clock = Arc::new(SystemClock::new());
        Self { worker: Worker::new(Arc::clone(&clock)), clock }
    }

    /// A call that answers with `value`.
    async fn answer(&self, deadline: Duration, value: u32) -> Result<u32, FileError> {
        self.worker.execute(Deadline::after(&self.clock, deadline), move |_| Ok(value)).await
    }

    /// A call that runs until the sender is dropped, or no caller waits for it.
    fn occupy(&self) -> (mpsc::Sender<()>, impl Future<Output = Result<bool, FileError>> + '_) {
        let (release, released) = mpsc::channel();
        let deadline = Deadline::after(&self.clock, MINUTE);
        let occupied = self.worker.execute(deadline, move |lock_wait| {
            while lock_wait.pause() {
                if released.try_recv() == Err(mpsc::TryRecvError::Disconnected) {
                    return Ok(true);
                }
            }
            Ok(false)
        });
        (release, occupied)
    }
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_thread_starts_with_the_first_call_and_ends_with_the_worker() {
    let unused = Fixture::new();
    assert!(format!("{:?}", unused.worker).contains("started: false"));
    let used = Fixture::new();
    assert_eq!(block_on(used.answer(MINUTE, 7)), Ok(7));
    let queue = Arc::downgrade(&used.worker.0);
    assert_eq!(queue.strong_count(), 2, "the worker's and the thread's");
    drop(used);
    assert_eq!(queue.strong_count(), 0, "the thread has ended");
}

#[test]
fn dropping_the_worker_does_not_wait_for_a_call_without_a_caller() {
    let fixture = Fixture::new();
    let (release, occupied) = fixture.occupy();
    let mut occupied = Box::pin(occupied);
    assert!(poll(occupied.as_mut()).is_pending());
    let mut behind = Box::pin(fixture.answer(MINUTE, 1));
    assert!(poll(behind.as_mut()).is_pending());
    drop((occupied, behind));
    let (clock, queue) = (Arc::clone(&fixture.clock), Arc::downgrade(&fixture.worker.0));
    let begun_us = clock.now_us();
    drop(fixture);
    assert!(clock.now_us() - begun_us < 30_000_000, "it waited for the deadline");
    assert_eq!(queue.strong_count(), 0);
    drop(release);
}

#[test]
fn a_call_behind_a_slow_one_is_answered_at_its_own_deadline() {
    let fixture = Fixture::new();
    let (release, occupied) = fixture.occupy();
    let mut occupied = pin!(occupied);
    assert!(poll(occupied.as_mut()).is_pending());
    assert_eq!(block_on(fixture.answer(Duration::from_millis(20), 1)), Err(FileError::timed_out()));
    assert!(poll(occupied.as_mut()).is_pending(), "the slow one goes on");
    drop(release);
    assert_eq!(block_on(occupied), Ok(true));
}

#[test]
fn a_call_that_finds_the_queue_full_is_refused_at_once() {
    let fixture = Fixture::new();
    let (release, occupied) = fixture.occupy();
    let mut occupied = pin!(occupied);
    assert!(poll(occupied.as_mut()).is_pending());
    // The first may have left the queue already.
    let mut queued: Vec<_> = (0..=QUEUE_MAX).map(|_| Box::pin(fixture.answer(MINUTE, 1))).collect();
    let refused = queued.iter_mut().filter_map(|future| match poll(future.as_mut()) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    });
    let refused: Vec<_> = refused.collect();
    assert!((1..=2).contains(&refused.len()), "{} were refused", refused.len());
    assert!(refused.iter().all(|answer| *answer == Err(FileError::queue_full(QUEUE_MAX))), "{refused:?}");
    drop(release);
    assert_eq!(block_on(occupied), Ok(true));
    assert_eq!(block_on(queued.swap_remove(0)), Ok(1));
}

#[test]
fn a_dropped_call_frees_its_place_in_the_queue() {
    let fixture = Fixture::new();
    let (release, occupied) = fixture.occupy();
    let mut occupied = pin!(occupied);
    assert!(poll(occupied.as_mut()).is_pending());
    for _ in 0..3 * QUEUE_MAX {
        let mut dropped = Box::pin(fixture.answer(MINUTE, 1));
        while let Poll::Ready(full) = poll(dropped.as_mut()) {
            assert_eq!(full, Err(FileError::queue_full(QUEUE_MAX)));
            dropped = Box::pin(fixture.answer(MINUTE, 1));
            thread::yield_now();
        }
    }
    drop(release);
    assert_eq!(block_on(occupied), Ok(true));
}

#[test]
fn a_panic_in_a_call_is_reported_and_the_next_call_runs() {
    let fixture = Fixture::new();
    let deadline = Deadline::after(&fixture.clock, MINUTE);
    let panicking = fixture.worker.execute(deadline, |_| -> Result<(), _> { panic!("on purpose") });
    assert_eq!(block_on(panicking), Err(FileError::panicked()));
    assert_eq!(block_on(fixture.answer(MINUTE, 3)), Ok(3));
}
