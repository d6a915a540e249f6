//! Seeded random traces over all verbs, biased towards instants and costs at boundaries.

use super::model::ModelStore;
use super::rng::Rng;
use crate::rate::Rate;
use crate::rule::{Algorithm, Buckets, Edge, Entries, Limit, Rule, RuleBuilder};
use crate::time::TIME_MAX_US;

/// The keys of a trace.
pub const KEYS: [&str; 3] = ["alice", "203.0.113.45", "{yt}:quota"];

/// The earliest instant of a trace, so that no window reaches back before 1970.
const EARLIEST_US: u64 = 1_000_000_000_000_000;
const LATEST_US: u64 = TIME_MAX_US / 2;

/// Start and spread of a trace, by its seed: twice the present; then half an hour before the last microseconds that
/// doubles count well (2252) and exactly (2^53).
const BEGINNINGS: [(u64, u64); 4] = [
    (1_745_000_145_000_000, 86_400_000_000),
    (1_745_000_145_000_000, 86_400_000_000),
    (8_899_999_999_000_000 - 1_800_000_000, 1_800_000_000),
    ((1 << 53) - 1_800_000_000, 1_800_000_000),
];

/// Sorted by their limits.
const RATES: [&str; 12] = [
    "1/1ms",
    "1/10s",
    "2/7s",
    "3/1s",
    "5/60s",
    "40/10s",
    "1000/1ms",
    "1000/60s",
    "9500/1d",
    "2147483648/1h",
    "1000000000000/1s",
    "1000000000000/400d",
];

/// Units of one rule for one key, by their index.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Ask {
    pub rule: usize,
    pub key: usize,
    pub cost: u64,
}

/// The operation of a step. A receipt is an index in the order of issue.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names are the verbs of the contract")]
pub enum Operation {
    Check(Vec<Ask>),
    Peek(Vec<Ask>),
    Refund { receipt: usize },
    Settle { receipt: usize, actual: u64 },
    Credit(Ask),
    Reset { rule: usize, key: usize },
    Inspect { rule: usize, key: usize },
    Sweep,
    Change { rule: usize, changed: Rule },
}

/// One step of a trace.
#[derive(Debug, Clone)]
pub struct Step {
    /// The time in microseconds since 1970; sometimes earlier than the step before.
    pub at_us: u64,
    /// The operation.
    pub operation: Operation,
}

/// A generator of steps. It reads the remaining units from the model, never from the store under test.
#[derive(Debug)]
pub struct Trace {
    rng: Rng,
    rules: Vec<Rule>,
    /// How many of [`RATES`] are used.
    rates: usize,
    limit_max: u64,
    now_us: u64,
    /// The end of the model's last wait.
    passes_us: u64,
}

impl Trace {
    /// A trace against rules of `algorithm`: one with one limit, one with several, a shadow.
    #[must_use]
    pub fn new(seed: u64, algorithm: Algorithm) -> Self {
        let beginning = BEGINNINGS[usize::try_from(seed % 4).expect("one of four")];
        Self::of_rates(seed, algorithm, RATES.len(), crate::rate::LIMIT_MAX, beginning)
    }

    /// A trace of the present with limits up to some thousands, for stores with an entry per unit.
    #[must_use]
    pub fn of_small_limits(seed: u64, algorithm: Algorithm) -> Self {
        Self::of_rates(seed, algorithm, 8, 1_000, BEGINNINGS[0])
    }

    fn of_rates(
        seed: u64,
        algorithm: Algorithm,
        rates: usize,
        limit_max: u64,
        (begins_us, within_us): (u64, u64),
    ) -> Self {
        let mut rng = Rng::new(seed);
        let build = |name: &str, rates: &[&str], shadow: bool| {
            let rates = rates.iter().map(|rate| rate.parse().expect("the rates above are well formed"));
            let builder = rates.fold(Rule::builder(name), |builder, rate: Rate| builder.limit(rate));
            builder.algorithm(algorithm).shadow(shadow).build().expect("the rules above are valid")
        };
        let rules = vec![
            build("one", &[*rng.pick(&RATES[..rates])], false),
            build("several", &["4/1s", "20/10s", "60/1m"], false),
            build("shadow", &["30/10s"], true),
        ];
        let now_us = begins_us + rng.below(within_us);
        Self { rng, rules, rates, limit_max, now_us, passes_us: now_us }
    }

    /// The rules as they are now.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The next step; `receipt_costs` are the costs of the receipts issued so far.
    pub fn step(&mut self, model: &ModelStore, receipt_costs: &[u64]) -> Step {
        self.pass_time();
        let operation = match self.rng.below(100) {
            0..62 => Operation::Check(self.asks(model)),
            62..68 => Operation::Peek(self.asks(model)),
            68..84 if !receipt_costs.is_empty() => self.give_back(receipt_costs),
            84..88 => {
                let ask = self.ask(model);
                Operation::Credit(Ask { cost: self.rng.between(1, 2 * ask.cost), ..ask })
            }
            88..90 => Operation::Reset { rule: self.rule(), key: self.key() },
            90..94 => self.change(),
            94 => Operation::Sweep,
            _ => Operation::Inspect { rule: self.rule(), key: self.key() },
        };
        Step { at_us: self.now_us, operation }
    }

    /// Records the model's wait, so that a later step can be at its end.
    pub fn saw_wait(&mut self, retry_after_us: u64) {
        // A settlement can make gcra's wait thousands of years: it is capped.
        self.passes_us = self.now_us.saturating_add(retry_after_us).min(LATEST_US);
    }

    fn limit(&mut self) -> Limit {
        let rule = self.rule();
        *self.rng.pick(self.rules[rule].limits())
    }

    /// Advances by nothing, a little, to the end of a wait or just before, to a boundary, by a long idle time, or back.
    fn pass_time(&mut self) {
        let limit = self.limit();
        let (window_us, bucket_us) = (limit.window_us(), limit.bucket_us());
        match self.rng.below(20) {
            0..5 => {}
            5..8 => self.now_us += self.rng.between(1, 5),
            8..12 => self.now_us += self.rng.below(window_us / 4 + 2),
            12..15 if self.passes_us > self.now_us => self.now_us = self.passes_us - self.rng.below(2),
            15 => self.now_us = (self.now_us / window_us + 1) * window_us - self.rng.below(2),
            16 => self.now_us = (self.now_us / bucket_us + 1) * bucket_us - self.rng.below(2),
            17 => self.now_us += self.rng.between(window_us - 1, window_us + 1),
            18 if self.rng.one_in(3) => self.now_us += self.rng.between(2 * window_us, 5 * window_us),
            19 if self.rng.one_in(4) => self.now_us -= self.rng.below(window_us),
            _ => self.now_us += self.rng.below(1_000),
        }
        self.now_us = self.now_us.clamp(EARLIEST_US, LATEST_US);
    }

    fn rule(&mut self) -> usize {
        match self.rng.below(10) {
            0..6 => 0,
            6..9 => 1,
            _ => 2,
        }
    }

    fn key(&mut self) -> usize {
        if self.rng.one_in(4) { 1 + usize::from(self.rng.one_in(2)) } else { 0 }
    }

    fn asks(&mut self, model: &ModelStore) -> Vec<Ask> {
        let count = if self.rng.one_in(5) { self.rng.between(2, 4) } else { 1 };
        (0..count).map(|_| self.ask(model)).collect()
    }

    fn ask(&mut self, model: &ModelStore) -> Ask {
        let (rule, key) = (self.rule(), self.key());
        let cost_max = self.rules[rule].cost_max();
        let left = model.inspect(self.now_us, &self.rules[rule], KEYS[key]);
        let left =
            left.iter().map(|(limit, usage)| limit.units().saturating_sub(usage.used)).min().unwrap_or(0);
        let cost = match self.rng.below(10) {
            0..4 => 1,
            4 => left,
            5 => left + 1,
            6 => cost_max,
            7 => self.rng.between(1, cost_max),
            _ => self.rng.between(1, cost_max / 10 + 1),
        };
        // A shadow rule may be asked for a cost that can never pass.
        let cost_max = if self.rules[rule].shadow() && self.rng.one_in(8) { cost_max + 1 } else { cost_max };
        Ask { rule, key, cost: cost.clamp(1, cost_max) }
    }

    fn give_back(&mut self, receipt_costs: &[u64]) -> Operation {
        let count = receipt_costs.len() as u64;
        let recent = self.rng.one_in(2);
        let first = if recent { count.saturating_sub(8) } else { 0 };
        let receipt = usize::try_from(self.rng.between(first, count - 1)).expect("an index");
        let cost = receipt_costs[receipt];
        match self.rng.below(6) {
            0..3 => Operation::Refund { receipt },
            3 => Operation::Settle { receipt, actual: self.rng.below(cost) },
            4 => Operation::Settle { receipt, actual: cost },
            _ => Operation::Settle { receipt, actual: cost + self.rng.between(1, 16 * cost) },
        }
    }

    fn change(&mut self) -> Operation {
        let rule = self.rule();
        let old = &self.rules[rule];
        let mut algorithm = old.algorithm();
        let mut rates: Vec<Rate> = old.limits().iter().map(Limit::rate).collect();
        match self.rng.below(8) {
            0..5 => {
                for rate in &mut rates {
                    let most = rate.limit().saturating_mul(2).min(self.limit_max);
                    *rate = Rate::new(self.rng.between(1, most), rate.window()).expect("a limit in range");
                }
            }
            5 => {
                let rate = self.rng.pick(&RATES[..self.rates]);
                rates = vec![rate.parse().expect("the rates above are well formed")];
            }
            6 => {
                rates.truncate(1);
                let other: Rate = "700/3m".parse().expect("well formed");
                if rates[0].window() != other.window() {
                    rates.push(other);
                }
            }
            _ => algorithm = *self.rng.pick(&algorithms()),
        }
        let builder = rates.into_iter().fold(Rule::builder(old.name()), RuleBuilder::limit);
        let changed =
            builder.algorithm(algorithm).shadow(old.shadow()).build().expect("valid by construction");
        self.rules[rule] = changed.clone();
        Operation::Change { rule, changed }
    }
}

/// The algorithms of the traces: all, with small compact logs so that they merge, rings whose
/// width divides the window and rings whose width does not, and every edge.
#[must_use]
pub fn algorithms() -> Vec<Algorithm> {
    let buckets = |count| Buckets::new(count).expect("in range");
    let entries = |count| Entries::new(count).expect("in range");
    vec![
        Algorithm::SlidingLog,
        Algorithm::CompactLog(entries(6)),
        Algorithm::CompactLog(Entries::DEFAULT),
        Algorithm::SlidingBuckets(buckets(10), Edge::Full),
        Algorithm::SlidingBuckets(buckets(7), Edge::Interpolated),
        Algorithm::SlidingBuckets(buckets(7), Edge::Dropped),
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
        Algorithm::Gcra,
    ]
}
