//! Live reload: a changed file is applied as a whole, or not at all.
//!
//! [`Reloader::put_in_force`] explains the order in which states are migrated and rules are swapped.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slidegate::store::{BoxStore, Store};
use slidegate::{Limiter, Rule, RuleSet};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::difference::{Difference, with_override_windows};
use crate::config::{Config, ConfigError, Finding, StartupFile};
use crate::rules::LiveRules;
use crate::tokens::{LiveTokens, Tokens};

/// How long requests in flight may hold the old rules before states are migrated regardless.
const IN_FLIGHT_TIME_MAX: Duration = Duration::from_secs(5);
/// Shortest time from the beginning of a reload to the next one. Requests that arrive meanwhile share that one.
const PERIOD_MIN: Duration = Duration::from_millis(100);
/// Poll period while requests in flight hold the old rules.
const POLL_PERIOD: Duration = Duration::from_millis(1);

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReloadResult {
    /// The rules are the same as before.
    Unchanged,
    /// The new rules are in force; the names of those that differ.
    Applied { added: Vec<String>, changed: Vec<String>, removed: Vec<String> },
    /// The file has mistakes: the old rules stay in force.
    Refused(Vec<String>),
    /// The file is valid, but the store could not migrate its states: the old rules stay in force until it can.
    StoreFailed(String),
}

/// The report of a reload, for the log, the metrics and the answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReloadReport {
    pub(crate) result: ReloadResult,
    /// The hash of the file, if it is in force now.
    pub(crate) hash: Option<String>,
    /// Settings of the file that differ from the start of the server and need a restart.
    pub(crate) needs_restart: Vec<&'static str>,
    /// Warnings: legal but unwise rules and settings.
    pub(crate) warnings: Vec<String>,
}

impl ReloadReport {
    /// Whether the file is valid and in force.
    pub(crate) fn is_in_force(&self) -> bool {
        !matches!(self.result, ReloadResult::Refused(_) | ReloadResult::StoreFailed(_))
    }
}

/// One line for the log.
impl fmt::Display for ReloadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            ReloadResult::Unchanged => f.write_str("configuration unchanged")?,
            ReloadResult::Applied { added, changed, removed } => {
                f.write_str("configuration reloaded")?;
                for (what, names) in [("added", added), ("changed", changed), ("removed", removed)] {
                    if !names.is_empty() {
                        write!(f, ", {what} {}", names.join(" "))?;
                    }
                }
            }
            ReloadResult::Refused(mistakes) => {
                write!(f, "configuration refused, the old rules stay in force: {}", mistakes.join("; "))?;
            }
            ReloadResult::StoreFailed(text) => {
                write!(f, "configuration waits for the store, the old rules stay in force: {text}")?;
            }
        }
        if !self.needs_restart.is_empty() {
            write!(f, "; needs a restart: {}", self.needs_restart.join(" "))?;
        }
        Ok(())
    }
}

/// The reloader of a server, on any store.
pub(crate) type FileReloader = Reloader<BoxStore>;

/// Reads the configuration file again and puts it in force.
pub(crate) struct Reloader<S> {
    /// The file at the start of the server. Its settings stay in force, so new settings are compared with them.
    started: StartupFile,
    live: Arc<LiveRules>,
    tokens: Arc<LiveTokens>,
    limiter: Arc<Limiter<S>>,
    /// One reload at a time.
    last: Mutex<LastReload>,
    /// How many requests for a reload have arrived; the number of a request is the count at its arrival.
    requests: AtomicU64,
    period_min: Duration,
    on_reload: Box<dyn Fn(&ReloadReport) + Send + Sync>,
}

/// The result of the last reload.
struct LastReload {
    /// When it began.
    began: Option<Instant>,
    /// Its report, which answers every request up to this number: those that arrived before it began.
    answered: Option<(u64, ReloadReport)>,
    /// The text of the file, if it could be read.
    text: Option<String>,
    /// Whether its file came into force.
    is_in_force: bool,
    /// Whether a valid file waits for a store that could not migrate its states.
    is_waiting: bool,
}

impl LastReload {
    /// Waits until the next reload may begin.
    async fn begin(&mut self, period_min: Duration) {
        if let Some(began) = self.began {
            sleep_until(began + period_min).await;
        }
        self.began = Some(Instant::now());
    }
}

impl<S> fmt::Debug for Reloader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("path", &self.started.path).finish_non_exhaustive()
    }
}

impl<S: Store> Reloader<S> {
    /// A reloader of the file that a server started with. Its rules are in `live`, its tokens in `tokens`; `on_reload`
    /// is called after every reload.
    pub(crate) fn new(
        started: StartupFile,
        live: Arc<LiveRules>,
        tokens: Arc<LiveTokens>,
        limiter: Arc<Limiter<S>>,
        on_reload: impl Fn(&ReloadReport) + Send + Sync + 'static,
    ) -> Self {
        let last = LastReload {
            began: None,
            answered: None,
            text: Some(started.config.text.clone()),
            is_in_force: true,
            is_waiting: false,
        };
        Self {
            started,
            live,
            tokens,
            limiter,
            last: Mutex::new(last),
            requests: AtomicU64::new(0),
            period_min: PERIOD_MIN,
            on_reload: Box::new(on_reload),
        }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.started.path
    }

    /// Whether a valid file waits for a store that could not migrate its states. False while a reload runs.
    pub(crate) fn is_waiting(&self) -> bool {
        self.last.try_lock().is_ok_and(|last| last.is_waiting)
    }

    /// Reads the file and puts it in force if it is valid, whether or not it has changed.
    ///
    /// Requests are coalesced: one reload answers all requests that arrived before it began.
    pub(crate) async fn reload_now(&self) -> ReloadReport {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut last = self.last.lock().await;
        if let Some((answered, report)) = &last.answered
            && number <= *answered
        {
            return report.clone();
        }
        last.begin(self.period_min).await;
        let answered = self.requests.load(Ordering::SeqCst);
        let report = self.reload(&mut last, Config::read(self.path())).await;
        last.answered = Some((answered, report.clone()));
        report
    }

    /// Reloads if the text of the file differs from the last reload. Events of the directory may concern other files.
    pub(crate) async fn reload_if_changed(&self) -> Option<ReloadReport> {
        let mut last = self.last.lock().await;
        last.begin(self.period_min).await;
        let text = Config::read(self.path());
        let known = text.as_ref().ok() == last.text.as_ref();
        // A missing file is reported once. A file that waits for the store is retried.
        if known && !last.is_waiting && (text.is_ok() || !last.is_in_force) {
            return None;
        }
        Some(self.reload(&mut last, text).await)
    }

    async fn reload(&self, last: &mut LastReload, text: Result<String, ConfigError>) -> ReloadReport {
        last.text = text.clone().ok();
        let file = self.path().display().to_string();
        let StartupFile { config: started, flags_and_env, settings, .. } = &self.started;
        // The settings of the store are those of the start, so the new rules must fit them.
        let read = text.and_then(|text| Config::parse(&file, &text)).and_then(|config| {
            config.check_together(flags_and_env, settings)?;
            Ok(config)
        });
        let report = match read {
            Err(error) => {
                let result = ReloadResult::Refused(texts(&error.mistakes));
                ReloadReport { result, hash: None, needs_restart: Vec::new(), warnings: Vec::new() }
            }
            Ok(config) => {
                let settings = config.settings_in_force(flags_and_env, settings);
                let applied = self.put_in_force(config.rules(flags_and_env)).await;
                let applied = applied.map(|result| self.replace_tokens(settings.tokens(), result));
                ReloadReport {
                    hash: applied.is_ok().then(|| config.hash()),
                    result: applied.unwrap_or_else(ReloadResult::StoreFailed),
                    needs_restart: config.changed_settings(started),
                    warnings: texts(&config.warnings(flags_and_env, &settings)),
                }
            }
        };
        last.is_in_force = report.is_in_force();
        last.is_waiting = matches!(report.result, ReloadResult::StoreFailed(_));
        (self.on_reload)(&report);
        report
    }

    /// Swaps the tokens, after the rules of the same file came into force.
    fn replace_tokens(&self, tokens: Tokens, result: ReloadResult) -> ReloadResult {
        match (self.tokens.replace(tokens), result) {
            (true, ReloadResult::Unchanged) => {
                ReloadResult::Applied { added: Vec::new(), changed: Vec::new(), removed: Vec::new() }
            }
            (_, result) => result,
        }
    }

    /// Migrates the states and swaps the rules.
    ///
    /// 1. Migrate the states of every rule whose limits differ, its own or those of its overrides. If the store fails
    ///    here, the old rules stay.
    /// 2. Swap the rules. Requests that begin from now on use the new ones.
    /// 3. Wait for the requests in flight, which still hold the old ones.
    /// 4. Migrate the states again, for the charges that those requests made under the old rules since step 1.
    ///
    /// Without step 4, a key that was charged between steps 1 and 2 would be back in the old geometry and would expire
    /// with the old window even if the new one is longer: over the limit. Without step 1, a store failure would be
    /// noticed only after the swap. A request that finds a state of the other geometry keeps all that was used.
    async fn put_in_force(&self, rules: RuleSet) -> Result<ReloadResult, String> {
        let before = Arc::clone(&self.live.load());
        let difference = Difference::between(&before, &rules);
        if difference.is_empty() && before.inline_forbidden_by() == rules.inline_forbidden_by() {
            return Ok(ReloadResult::Unchanged);
        }
        for (done, rule) in difference.rules_to_migrate.iter().enumerate() {
            if let Err(error) = self.limiter.change_async(rule).await {
                self.roll_back(&before, &difference.rules_to_migrate[..=done]).await;
                return Err(format!("rule `{}`: its states could not be migrated: {error}", rule.name()));
            }
        }
        drop(before);
        let old = self.live.replace(rules);
        if !difference.rules_to_migrate.is_empty() {
            wait_until_released(&old).await;
            for rule in &difference.rules_to_migrate {
                // A failure here is harmless: the new rules migrate each state at its next charge.
                self.limiter.change_async(rule).await.ok();
            }
        }
        let Difference { added, changed, removed, .. } = difference;
        Ok(ReloadResult::Applied { added, changed, removed })
    }

    /// Migrates states back to the old rules, as far as the store answers.
    async fn roll_back(&self, before: &RuleSet, rules: &[Rule]) {
        for rule in rules {
            if let (Ok(old), Some(overrides)) = (before.get(rule.name()), before.overrides(rule.name())) {
                let old = with_override_windows(old, overrides);
                self.limiter.change_async(&old).await.ok();
            }
        }
    }
}

/// Waits until no request holds `rules`, up to a time limit.
async fn wait_until_released(rules: &Arc<RuleSet>) {
    let all_ended = async {
        while Arc::strong_count(rules) > 1 {
            tokio::time::sleep(POLL_PERIOD).await;
        }
    };
    tokio::time::timeout(IN_FLIGHT_TIME_MAX, all_ended).await.ok();
}

fn texts(found: &[Finding]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
