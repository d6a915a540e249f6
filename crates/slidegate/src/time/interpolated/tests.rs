//! Tests on a simulated machine whose true time is known and whose tick counter misbehaves.

use std::cell::Cell;

use super::*;

const MILLISECOND_NS: u64 = 1_000_000;
/// Rates of counters in ticks per microsecond.
const RATES: [u64; 6] = [17, 100, 1_000, 2_400, 3_141, 15_999];

struct SimulatedMachine {
    true_ns: Cell<u64>,
    ticks: Cell<u64>,
    /// The fraction of a tick, in thousandths.
    tick_rest: Cell<u64>,
    ticks_per_us: Cell<u64>,
    steady: bool,
    /// The thread pauses this long after the next reading of the reference.
    pause_ns: Cell<u64>,
    references_read: Cell<u64>,
}

impl SimulatedMachine {
    fn new(ticks_per_us: u64) -> Self {
        Self {
            true_ns: Cell::new(12_345),
            // Wraps soon.
            ticks: Cell::new(u64::MAX - 1_000_000),
            tick_rest: Cell::new(0),
            ticks_per_us: Cell::new(ticks_per_us),
            steady: true,
            pause_ns: Cell::new(0),
            references_read: Cell::new(0),
        }
    }

    fn pass(&self, ns: u64) {
        self.true_ns.set(self.true_ns.get() + ns);
        let milliticks =
            u128::from(ns) * u128::from(self.ticks_per_us.get()) + u128::from(self.tick_rest.get());
        self.step_ticks(u64::try_from(milliticks / 1_000).unwrap());
        self.tick_rest.set(u64::try_from(milliticks % 1_000).unwrap());
    }

    fn step_ticks(&self, ticks: u64) {
        self.ticks.set(self.ticks.get().wrapping_add(ticks));
    }

    fn true_parts(&self) -> u64 {
        u64::try_from(u128::from(self.true_ns.get()) * u128::from(PARTS_PER_US) / 1_000).unwrap()
    }
}

impl Ticks for &SimulatedMachine {
    fn steady(&self) -> bool {
        self.steady
    }

    fn read(&self) -> u64 {
        self.pass(3);
        let ticks = self.ticks.get();
        self.pass(4);
        ticks
    }
}

impl Reference for &SimulatedMachine {
    fn elapsed(&self) -> Duration {
        self.references_read.set(self.references_read.get() + 1);
        self.pass(12);
        let elapsed = Duration::from_nanos(self.true_ns.get());
        self.pass(12 + self.pause_ns.take());
        elapsed
    }
}

/// Reads the clock and compares it with the truth.
struct ClockChecker<'a> {
    machine: &'a SimulatedMachine,
    clock: Interpolated<&'a SimulatedMachine, &'a SimulatedMachine>,
    last_parts: u64,
}

/// The allowed error of readings, in microseconds.
#[derive(Clone, Copy)]
struct ErrorBound {
    ahead_us: u64,
    behind_us: u64,
}

const CLOSE: ErrorBound = ErrorBound { ahead_us: 0, behind_us: 2 };

impl<'a> ClockChecker<'a> {
    fn new(machine: &'a SimulatedMachine) -> Self {
        Self { machine, clock: Interpolated::new(machine, machine), last_parts: 0 }
    }

    fn read(&mut self, allowed: ErrorBound) -> u64 {
        let before = self.machine.true_parts();
        let shown = self.clock.now_parts();
        let after = self.machine.true_parts();
        assert!(shown >= self.last_parts, "ran back from {} to {shown}", self.last_parts);
        assert!(shown <= after + allowed.ahead_us * PARTS_PER_US, "shows {shown} at {after}");
        assert!(shown + allowed.behind_us * PARTS_PER_US >= before, "shows {shown} at {before}");
        self.last_parts = shown;
        shown
    }

    /// Reads in uneven steps below 2 us.
    fn read_for(&mut self, ns: u64, allowed: ErrorBound) {
        let end_ns = self.machine.true_ns.get() + ns;
        while self.machine.true_ns.get() < end_ns {
            self.machine.pass(self.machine.true_ns.get() % 1_999 * 7_919 % 1_999);
            self.read(allowed);
        }
    }
}

#[test]
fn never_ahead_and_hardly_behind() {
    for rate in RATES {
        let machine = SimulatedMachine::new(rate);
        let mut checker = ClockChecker::new(&machine);
        checker.read_for(2 * MILLISECOND_NS, CLOSE);
        machine.references_read.set(0);
        checker.read_for(50 * MILLISECOND_NS, CLOSE);
        let references_read = machine.references_read.get();
        assert!((49..=50).contains(&references_read), "one per millisecond, not {references_read}");
        for idle_ms in [0, 1, 2, 900, 86_400_000, 365 * 86_400_000] {
            machine.pass(idle_ms * MILLISECOND_NS);
            checker.read_for(3 * MILLISECOND_NS, CLOSE);
        }
    }
}

/// Corrections of the monotonic clock make its microseconds longer or shorter in ticks, by 1/2000 at most.
/// From one extreme to the other, a line falls behind by twice as much as it would.
#[test]
fn never_ahead_while_the_reference_is_corrected() {
    let machine = SimulatedMachine::new(2_000);
    let mut checker = ClockChecker::new(&machine);
    for rate in [2_000, 2_001, 1_999, 2_000, 1_999, 2_001].repeat(10) {
        machine.ticks_per_us.set(rate);
        checker.read_for(MILLISECOND_NS * 27 / 10, ErrorBound { behind_us: 3, ..CLOSE });
    }
}

#[test]
fn readings_come_from_the_reference_until_the_rate_is_known() {
    let machine = SimulatedMachine::new(2_400);
    let mut checker = ClockChecker::new(&machine);
    let started_ns = machine.true_ns.get();
    while machine.true_ns.get() < started_ns + MILLISECOND_NS * 3 / 4 {
        let parts = checker.read(ErrorBound { ahead_us: 0, behind_us: 0 });
        assert_eq!(machine.references_read.replace(0), 1, "at {parts}");
    }
}

#[test]
fn an_unsteady_counter_is_not_used() {
    let machine = SimulatedMachine { steady: false, ..SimulatedMachine::new(2_400) };
    let mut checker = ClockChecker::new(&machine);
    for _ in 0..10_000 {
        machine.step_ticks(machine.ticks.get() / 3);
        checker.read(ErrorBound { ahead_us: 0, behind_us: 0 });
    }
}

/// Ahead or behind by the length of a line at most, and soon close again.
#[test]
fn a_counter_that_is_set_is_detected() {
    let second = 2_400 * 1_000_000;
    for leap in [second, 3 * second, 1 << 63, 0_u64.wrapping_sub(second), 0_u64.wrapping_sub(2_400 * 1_000)] {
        // In the middle of a line, and between readings.
        for idle_ns in [300_000, 20 * MILLISECOND_NS] {
            let machine = SimulatedMachine::new(2_400);
            let mut checker = ClockChecker::new(&machine);
            checker.read_for(5 * MILLISECOND_NS, CLOSE);
            machine.pass(idle_ns);
            machine.step_ticks(leap);
            checker.read_for(2 * MILLISECOND_NS, ErrorBound { ahead_us: 1_000, behind_us: 2 });
            machine.references_read.set(0);
            checker.read_for(10 * MILLISECOND_NS, CLOSE);
            assert!(machine.references_read.get() <= 10, "lines are drawn again");
        }
    }
}

#[test]
fn a_counter_that_changes_its_rate_is_measured_again() {
    for (rate, later) in [(1_200, 2_400), (2_400, 1_200), (2_400, 2_500), (3_000, 600), (600, 3_000)] {
        let machine = SimulatedMachine::new(rate);
        let mut checker = ClockChecker::new(&machine);
        checker.read_for(10 * MILLISECOND_NS, CLOSE);
        machine.ticks_per_us.set(later);
        // A line of slow ticks takes longer to end: until then, it falls behind.
        let span_us = 1_000 * rate.max(later) / later;
        let rate_changed = ErrorBound { ahead_us: 1_000, behind_us: span_us };
        checker.read_for((span_us + 2_000) * 1_000, rate_changed);
        machine.references_read.set(0);
        checker.read_for(10 * MILLISECOND_NS, CLOSE);
        assert!(machine.references_read.get() <= 10, "lines are drawn again");
    }
}

#[test]
fn a_counter_that_stands_still_from_the_beginning_is_not_used() {
    let machine = SimulatedMachine::new(0);
    ClockChecker::new(&machine).read_for(10 * MILLISECOND_NS, ErrorBound { ahead_us: 0, behind_us: 0 });
}

/// The clock stops and continues with the counter.
#[test]
fn a_counter_that_stops_for_a_while_is_never_ahead() {
    let machine = SimulatedMachine::new(2_400);
    let mut checker = ClockChecker::new(&machine);
    checker.read_for(5 * MILLISECOND_NS, CLOSE);
    machine.ticks_per_us.set(0);
    checker.read_for(MILLISECOND_NS, ErrorBound { ahead_us: 0, behind_us: 1_005 });
    machine.ticks_per_us.set(2_400);
    checker.read_for(4 * MILLISECOND_NS, ErrorBound { ahead_us: 0, behind_us: 1_005 });
    checker.read_for(10 * MILLISECOND_NS, CLOSE);
}

/// A sample with a pause between its readings gives no line.
#[test]
fn a_pause_within_a_sample_does_not_delay_later_readings() {
    const PAUSES_NS: [u64; 7] = [0, 200, 400, 3_000, 5_000, 50_000, 10 * MILLISECOND_NS];
    // Shorter and longer than it takes to draw a line from clean samples.
    for between_ns in [MILLISECOND_NS / 2, MILLISECOND_NS * 33 / 10] {
        let machine = SimulatedMachine::new(2_400);
        let mut checker = ClockChecker::new(&machine);
        for pause_ns in PAUSES_NS.repeat(20) {
            machine.pause_ns.set(pause_ns);
            let paused = ErrorBound { behind_us: 2 + pause_ns / 1_000, ..CLOSE };
            while machine.pause_ns.get() > 0 {
                machine.pass(100);
                checker.read(paused);
            }
            checker.read_for(between_ns, CLOSE);
        }
    }
}

#[test]
fn readings_come_from_the_reference_while_another_thread_replaces_the_line() {
    let machine = SimulatedMachine::new(2_400);
    let mut checker = ClockChecker::new(&machine);
    checker.read_for(5 * MILLISECOND_NS, CLOSE);
    machine.pass(MILLISECOND_NS);
    let held = checker.clock.fitter.lock().unwrap();
    let shown = checker.clock.now_parts();
    assert!(machine.true_parts() - shown < PARTS_PER_US, "nobody waits");
    drop(held);
    checker.last_parts = shown;
    checker.read_for(2 * MILLISECOND_NS, CLOSE);
}
