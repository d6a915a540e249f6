//! A deterministic runtime for acquisitions: the test schedules the tasks and counts wakes and polls.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use slidegate::receipt::ReceiptCharge;
use slidegate::store::MemoryStore;
use slidegate::time::{Clock, ManualClock};
use slidegate::{Charge, CheckError, Decision, Limiter};

type Acquisition<'a> = Pin<Box<dyn Future<Output = Result<Decision<'a>, CheckError>> + Send + 'a>>;

pub struct Tasks<'a> {
    limiter: &'a Limiter<MemoryStore<ManualClock>>,
    all: Vec<Task<'a>>,
    /// In the order in which they finished, and when.
    finished: Vec<(usize, u64)>,
}

struct Task<'a> {
    /// `None` when it has finished or was cancelled.
    acquisition: Option<Acquisition<'a>>,
    outcome: Option<Decision<'a>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<'a> Tasks<'a> {
    pub fn new(limiter: &'a Limiter<MemoryStore<ManualClock>>) -> Self {
        Self { limiter, all: Vec::new(), finished: Vec::new() }
    }

    /// Adds an acquisition that has not joined the queue yet; returns its number.
    pub fn add(&mut self, charges: &[Charge<'a>], max_wait: Duration) -> usize {
        let (limiter, charges) = (self.limiter, charges.to_vec());
        let acquisition =
            Box::pin(async move { limiter.acquire_all_async(limiter.clock(), &charges, max_wait).await });
        let wakes = Arc::new(Wakes(AtomicUsize::new(1)));
        self.all.push(Task { acquisition: Some(acquisition), outcome: None, wakes });
        self.all.len() - 1
    }

    /// Adds an acquisition and polls it once; returns its number.
    pub fn spawn(&mut self, charges: &[Charge<'a>], max_wait: Duration) -> usize {
        let task = self.add(charges, max_wait);
        self.poll(task);
        task
    }

    /// Polls a task, whether it was woken or not, unless it has finished.
    pub fn poll(&mut self, number: usize) {
        let task = &mut self.all[number];
        let Some(acquisition) = &mut task.acquisition else { return };
        task.wakes.0.store(0, Ordering::SeqCst);
        let waker: Waker = Arc::clone(&task.wakes).into();
        if let Poll::Ready(outcome) = acquisition.as_mut().poll(&mut Context::from_waker(&waker)) {
            task.outcome = Some(outcome.unwrap());
            task.acquisition = None;
            self.finished.push((number, self.limiter.clock().now_us()));
        }
    }

    pub fn cancel(&mut self, number: usize) {
        self.all[number].acquisition = None;
    }

    /// Polls woken tasks until none is woken; returns the numbers of wakes and polls.
    pub fn run(&mut self) -> (usize, usize) {
        self.run_all_but(usize::MAX)
    }

    /// The same without one task. Later tasks are polled first, so that the order of service is not that of the
    /// runtime.
    pub fn run_all_but(&mut self, left_out: usize) -> (usize, usize) {
        let (mut wakes, mut polls) = (0, 0);
        loop {
            let woken = |task: &Task<'_>| {
                if task.acquisition.is_some() { task.wakes.0.load(Ordering::SeqCst) } else { 0 }
            };
            let found =
                (0..self.all.len()).rev().find(|&number| number != left_out && woken(&self.all[number]) > 0);
            let Some(number) = found else { return (wakes, polls) };
            wakes += woken(&self.all[number]);
            polls += 1;
            self.poll(number);
        }
    }

    /// Moves the clock from sleep to sleep until all tasks have finished.
    pub fn run_to_the_end(&mut self) {
        self.run();
        while let Some(end_us) = self.limiter.clock().next_end_us() {
            self.limiter.clock().set_us(end_us);
            self.run();
        }
        assert!(self.all.iter().all(|task| task.acquisition.is_none()), "nobody is left behind");
    }

    /// The finished tasks, in the order in which they finished.
    pub fn finished(&self) -> Vec<usize> {
        self.finished.iter().map(|(number, _)| *number).collect()
    }

    pub fn outcome(&self, number: usize) -> &Decision<'a> {
        self.all[number].outcome.as_ref().unwrap()
    }

    pub fn outcomes(&self) -> impl Iterator<Item = &Decision<'a>> {
        self.finished.iter().map(|(number, _)| self.outcome(*number))
    }

    /// Units that were charged after an instant.
    pub fn charged_since(&self, after_us: u64) -> u64 {
        let since = self.finished.iter().filter(|(_, at_us)| *at_us > after_us);
        let receipts = since.filter_map(|(number, _)| self.outcome(*number).receipt());
        receipts
            .flat_map(|receipt| receipt.charges().iter().map(ReceiptCharge::cost).collect::<Vec<_>>())
            .sum()
    }
}
