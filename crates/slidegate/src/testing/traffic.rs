//! Seeded random traffic on one state, checked by an auditor.

use std::collections::VecDeque;

use super::auditor::{Auditor, Findings};
use super::probe;
use super::rng::Rng;
use crate::algorithm::State;
use crate::receipt::ChargePlace;
use crate::rule::Limit;

/// The parameters of random traffic.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    /// Seed of everything random.
    pub seed: u64,
    /// Decisions to ask for.
    pub decisions: u64,
    /// About this many requests fill the limit: costs are drawn around limit / this.
    pub requests_per_limit: u64,
    /// Whether some admissions are refunded and some units credited.
    pub give_back: bool,
    /// The wait of every n-th denial is probed; 0 for none.
    pub probe_every: u64,
}

impl Traffic {
    /// Runs it against a new state of `limit`. Returns the auditor's findings, or the wait that was wrong.
    pub fn run(&self, limit: &Limit) -> Result<Findings, String> {
        let mut run = Run::new(self, limit);
        for _ in 0..self.decisions {
            run.step()?;
        }
        Ok(run.auditor.findings())
    }
}

struct Run<'a> {
    traffic: &'a Traffic,
    limit: &'a Limit,
    rng: Rng,
    state: State,
    auditor: Auditor,
    /// Admissions that may still be refunded: time, place and cost.
    admitted: VecDeque<(u64, ChargePlace, u64)>,
    now_us: u64,
    mean_gap_us: u64,
    denials: u64,
    /// The end of the last wait.
    passes_us: u64,
}

impl<'a> Run<'a> {
    fn new(traffic: &'a Traffic, limit: &'a Limit) -> Self {
        Self {
            traffic,
            limit,
            rng: Rng::new(traffic.seed),
            state: State::new(*limit),
            auditor: Auditor::new(limit.units(), limit.window_us()),
            admitted: VecDeque::new(),
            now_us: 1_745_000_145_000_000 + traffic.seed % limit.window_us(),
            mean_gap_us: 1,
            denials: 0,
            passes_us: 0,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.pass_time();
        let cost = self.cost();
        let ruling = self.state.decide(self.limit, self.now_us, cost);
        self.auditor.saw(self.now_us, cost, ruling.allowed());
        if ruling.allowed() {
            let place = self.state.charge(self.limit, self.now_us, cost);
            if self.traffic.give_back {
                self.admitted.push_back((self.now_us, place, cost));
                self.give_back();
            }
        } else {
            self.passes_us = self.now_us + ruling.retry_after_us;
            self.denials += 1;
            if self.traffic.probe_every > 0 && self.denials % self.traffic.probe_every == 0 {
                probe::retry_after(&self.state, self.limit, self.now_us, cost, &mut self.rng)?;
            }
        }
        Ok(())
    }

    /// Advances mostly by gaps around the present load, which varies from idle to overload; sometimes not at all, to
    /// the end of a wait, to a boundary, or by a long idle time.
    fn pass_time(&mut self) {
        let (window_us, bucket_us) = (self.limit.window_us(), self.limit.bucket_us());
        let full_load_us = (window_us / self.traffic.requests_per_limit).max(1);
        match self.rng.below(256) {
            0 => self.mean_gap_us = full_load_us * 3,
            1..4 => self.mean_gap_us = full_load_us,
            4..10 => self.mean_gap_us = (full_load_us / 4).max(1),
            10..30 => return,
            30..60 if self.passes_us > self.now_us => {
                self.now_us = self.passes_us - self.rng.below(2);
                return;
            }
            60..70 => {
                self.now_us = (self.now_us / bucket_us + 1) * bucket_us - self.rng.below(2);
                return;
            }
            70 if self.rng.one_in(64) => self.now_us += self.rng.between(window_us, 3 * window_us),
            _ => {}
        }
        self.now_us += self.rng.between(0, 2 * self.mean_gap_us);
    }

    fn cost(&mut self) -> u64 {
        let usual = (self.limit.units() / self.traffic.requests_per_limit).max(1);
        match self.rng.below(64) {
            0 => self.rng.between(1, self.limit.units()),
            1..16 => 1,
            _ => self.rng.between(1, (2 * usual - 1).min(self.limit.units())),
        }
    }

    fn give_back(&mut self) {
        while self.admitted.front().is_some_and(|(at_us, ..)| at_us + self.limit.window_us() <= self.now_us) {
            self.admitted.pop_front();
        }
        if self.rng.one_in(16) && !self.admitted.is_empty() {
            let index = usize::try_from(self.rng.below(self.admitted.len() as u64)).expect("an index");
            let (at_us, place, cost) = self.admitted.remove(index).expect("an index below the length");
            let part = self.rng.between(1, cost);
            let given = self.state.refund(self.now_us, &place, part);
            self.auditor.refunded(self.now_us, at_us, given);
        } else if self.rng.one_in(128) {
            let units = self.rng.between(1, self.limit.units());
            let given = self.state.credit(self.limit, self.now_us, units);
            self.auditor.credited(self.now_us, given);
        }
    }
}
