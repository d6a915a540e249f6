//! All counters of one server, and their Prometheus text.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use slidegate::RuleSet;
use slidegate::limiter::LimiterStats;
use slidegate::store::Stats;
use slidegate::time::Clock;

use super::decisions::{Decisions, Transport};
use super::exposition::{Exposition, seconds};
use super::histogram::Histogram;
use super::operations::Operations;
use super::outage_answers::OutageAnswers;
use super::process;

/// What the store and the guard before it count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StoreFigures {
    pub(crate) breaker_is_open: bool,
    /// Requests that the deny cache answered.
    pub(crate) cached_denials: u64,
    /// Of a store in memory.
    pub(crate) stats: Option<Stats>,
}

impl From<LimiterStats> for StoreFigures {
    fn from(stats: LimiterStats) -> Self {
        let LimiterStats { breaker_is_open, cached_denials, store, .. } = stats;
        Self { breaker_is_open, cached_denials, stats: store }
    }
}

/// All counters of one server.
pub(crate) struct Metrics {
    /// The kind of store: `memory`, `sqlite` or `redis`.
    store: &'static str,
    clock: Arc<dyn Clock>,
    started_us: u64,
    pub(crate) decisions: Decisions,
    decision_durations: [Histogram; Transport::ALL.len()],
    pub(crate) operations: Operations,
    pub(crate) outage_answers: OutageAnswers,
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    reloads_ok: AtomicU64,
    reloads_failed: AtomicU64,
    /// Whether the last reload failed. The start of the server is not a reload.
    last_reload_failed: AtomicBool,
    last_reload_us: AtomicU64,
    /// The hash of the configuration in force.
    config_hash: Mutex<String>,
    /// Counts the dropped lines of the log, which is older than these counters.
    dropped_log_lines: OnceLock<Arc<AtomicU64>>,
}

impl Metrics {
    /// All counters at zero. The clock dates reloads.
    pub(crate) fn new(store: &'static str, clock: Arc<dyn Clock>) -> Self {
        let started_us = clock.now_us();
        Self {
            store,
            clock,
            started_us,
            decisions: Decisions::default(),
            decision_durations: Default::default(),
            operations: Operations::default(),
            outage_answers: OutageAnswers::default(),
            connections_opened: AtomicU64::default(),
            connections_closed: AtomicU64::default(),
            reloads_ok: AtomicU64::default(),
            reloads_failed: AtomicU64::default(),
            last_reload_failed: AtomicBool::default(),
            last_reload_us: AtomicU64::new(started_us),
            config_hash: Mutex::default(),
            dropped_log_lines: OnceLock::default(),
        }
    }

    /// Counts the duration of a decision, from the request read to the answer ready.
    #[inline]
    pub(crate) fn observe_decision(&self, transport: Transport, took_us: u64) {
        self.decision_durations[transport as usize].observe(took_us);
    }

    /// Counts a reload.
    pub(crate) fn count_reload(&self, ok: bool) {
        self.last_reload_failed.store(!ok, Ordering::Relaxed);
        if ok {
            self.reloads_ok.fetch_add(1, Ordering::Relaxed);
            self.last_reload_us.store(self.clock.now_us(), Ordering::Relaxed);
        } else {
            self.reloads_failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records the hash of the configuration in force.
    pub(crate) fn set_config_hash(&self, hash: &str) {
        hash.clone_into(&mut self.config_hash.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sets the counter of dropped log lines, once.
    pub(crate) fn set_dropped_log_lines(&self, counter: Arc<AtomicU64>) {
        self.dropped_log_lines.get_or_init(|| counter);
    }

    /// Whether the last reload succeeded.
    pub(crate) fn last_reload_ok(&self) -> bool {
        !self.last_reload_failed.load(Ordering::Relaxed)
    }

    pub(crate) fn connection_opened(&self) {
        self.connections_opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_closed(&self) {
        self.connections_closed.fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics, as text of the type [`CONTENT_TYPE`](super::CONTENT_TYPE).
    pub(crate) fn expose(&self, rules: &RuleSet, figures: &StoreFigures) -> String {
        for rule in rules.iter() {
            self.decisions.register(rule.name());
        }
        let mut to = Exposition::default();
        self.decisions.expose(&mut to);
        self.expose_limits(&mut to, rules);
        let name = "slidegate_decision_duration_seconds";
        to.family(name, "histogram", "How long a decision took, from the request read to the answer ready.");
        for ((_, transport), durations) in Transport::ALL.iter().zip(&self.decision_durations) {
            durations.expose(&mut to, &[("transport", transport), ("store", self.store)]);
        }
        self.operations.expose(&mut to, self.store);
        self.expose_guard(&mut to, figures);
        self.outage_answers.expose(&mut to);
        if let Some(stats) = &figures.stats {
            self.expose_stats(&mut to, stats);
        }
        self.expose_configuration(&mut to);
        self.expose_server(&mut to);
        process::expose(&mut to);
        to.text
    }

    fn expose_limits(&self, to: &mut Exposition, rules: &RuleSet) {
        to.family("slidegate_limit_units", "gauge", "Units that a rule allows in a window, after headroom.");
        for rule in rules.iter().filter(|rule| self.decisions.has_label(rule.name())) {
            for limit in rule.limits() {
                let window = seconds(limit.window_us());
                to.sample("", &[("rule", rule.name()), ("window_seconds", &window)], limit.units());
            }
        }
    }

    fn expose_guard(&self, to: &mut Exposition, figures: &StoreFigures) {
        let store = ("store", self.store);
        let help =
            "Whether the circuit breaker is open: the store is asked by one call at a time, after pauses.";
        to.family("slidegate_breaker_open", "gauge", help);
        to.sample("", &[store], u8::from(figures.breaker_is_open));
        let help = "Requests that the deny cache denied without asking the store.";
        to.family("slidegate_deny_cache_hits_total", "counter", help);
        to.sample("", &[store], figures.cached_denials);
    }

    fn expose_stats(&self, to: &mut Exposition, stats: &Stats) {
        let store = ("store", self.store);
        for (name, help, value) in [
            ("slidegate_keys", "Keys that have a state, each once per rule.", stats.keys),
            ("slidegate_store_bytes", "Memory that states and spent receipts take.", stats.bytes),
            ("slidegate_store_budget_bytes", "Memory that they may take.", stats.budget_bytes),
            (
                "slidegate_spent_receipts",
                "Refunded and settled receipts on record, until they expire.",
                stats.spent_receipts,
            ),
        ] {
            to.family(name, "gauge", help);
            to.sample("", &[store], value);
        }
        to.family("slidegate_keys_evicted_total", "counter", "Keys that were removed, by reason.");
        to.sample("", &[store, ("reason", "expired")], stats.swept);
        to.sample("", &[store, ("reason", "capacity")], stats.evicted);
        to.family(
            "slidegate_store_full_total",
            "counter",
            "Charges refused because the memory budget was spent.",
        );
        to.sample("", &[store], stats.full);
    }

    fn expose_configuration(&self, to: &mut Exposition) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        to.family("slidegate_config_reloads_total", "counter", "Attempts to replace the configuration.");
        to.sample("", &[("result", "ok")], read(&self.reloads_ok));
        to.sample("", &[("result", "failed")], read(&self.reloads_failed));
        let help = "Whether the last reload of the configuration succeeded.";
        let successful = u8::from(self.last_reload_ok());
        to.single("slidegate_config_last_reload_successful", "gauge", help, successful);
        let name = "slidegate_config_last_reload_success_timestamp_seconds";
        let help = "When the configuration in force was read.";
        to.single(name, "gauge", help, seconds(read(&self.last_reload_us)));
        let hash = self.config_hash.lock().unwrap_or_else(PoisonError::into_inner);
        to.family(
            "slidegate_config_info",
            "gauge",
            "The hash of the configuration file in force; empty without one.",
        );
        to.sample("", &[("hash", &hash)], 1);
    }

    fn expose_server(&self, to: &mut Exposition) {
        // Closed first: a connection that opens and closes between the two loads must not make the gauge negative.
        let closed = self.connections_closed.load(Ordering::Relaxed);
        let opened = self.connections_opened.load(Ordering::Relaxed);
        to.single(
            "slidegate_connections",
            "gauge",
            "Connections that are open.",
            opened.saturating_sub(closed),
        );
        to.single("slidegate_connections_total", "counter", "Connections that were opened.", opened);
        let dropped = self.dropped_log_lines.get().map_or(0, |counter| counter.load(Ordering::Relaxed));
        let help = "Log lines that were dropped because stderr did not accept them in time.";
        to.single("slidegate_log_lines_dropped_total", "counter", help, dropped);
        to.family("slidegate_build_info", "gauge", "Version, revision and compiler of this program.");
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            // Set by package builds; unknown in a crate from the registry.
            ("revision", option_env!("SLIDEGATE_REVISION").unwrap_or("")),
            ("rustc", env!("BUILT_BY_RUSTC")),
        ];
        to.sample("", &labels, 1);
        let started = seconds(self.started_us);
        to.single("process_start_time_seconds", "gauge", "When the process started.", started);
    }
}
