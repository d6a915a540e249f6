//! Live reload: a changed file comes into force as a whole, or not at all.
//!
//! What happens to states, and why in this order, stands at [`Reloader::put_in_force`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use slidegate::store::{BoxStore, Store};
use slidegate::{Limiter, Rule, RuleSet};
use tokio::sync::Mutex;

use super::difference::{Difference, with_windows_of};
use crate::config::{Config, ConfigError, Found, StartupFile};
use crate::rules::LiveRules;

/// How long requests in flight may keep the old rules before states are changed regardless.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(5);
/// How often it is looked whether they have ended.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How a reload ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reloaded {
    /// The file says what it said before.
    Unchanged,
    /// The new rules are in force. By name: those that are new, mean something else, or are gone.
    Applied { added: Vec<String>, changed: Vec<String>, removed: Vec<String> },
    /// The file is not good: the old rules stay in force.
    Refused(Vec<String>),
    /// The file is good, but the store did not follow: the old rules stay in force until it does.
    StoreFailed(String),
}

/// What a reload did: for the log, a metric and the answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReloadReport {
    pub(crate) result: Reloaded,
    /// That of the file in force, if it is this one.
    pub(crate) hash: Option<String>,
    /// Settings of the file that differ from those the server started with and wait for a restart.
    pub(crate) needs_restart: Vec<&'static str>,
    /// What is legal but unwise.
    pub(crate) warnings: Vec<String>,
}

impl ReloadReport {
    /// Whether the file is good and in force.
    pub(crate) fn is_good(&self) -> bool {
        !matches!(self.result, Reloaded::Refused(_) | Reloaded::StoreFailed(_))
    }
}

/// One line for the log.
impl fmt::Display for ReloadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Reloaded::Unchanged => f.write_str("configuration unchanged")?,
            Reloaded::Applied { added, changed, removed } => {
                f.write_str("configuration reloaded")?;
                for (what, names) in [("added", added), ("changed", changed), ("removed", removed)] {
                    if !names.is_empty() {
                        write!(f, ", {what} {}", names.join(" "))?;
                    }
                }
            }
            Reloaded::Refused(mistakes) => {
                write!(f, "configuration refused, the old rules stay in force: {}", mistakes.join("; "))?;
            }
            Reloaded::StoreFailed(text) => {
                write!(f, "configuration waits for the store, the old rules stay in force: {text}")?;
            }
        }
        if !self.needs_restart.is_empty() {
            write!(f, "; needs a restart: {}", self.needs_restart.join(" "))?;
        }
        Ok(())
    }
}

/// That of a server, on any store.
pub(crate) type FileReloader = Reloader<BoxStore>;

/// Reads the configuration again and puts it in force.
pub(crate) struct Reloader<S> {
    /// What the file said at the start: settings are compared with these, as these are in force.
    started: StartupFile,
    live: Arc<LiveRules>,
    limiter: Arc<Limiter<S>>,
    /// One reload at a time.
    last: Mutex<Last>,
    told: Box<dyn Fn(&ReloadReport) + Send + Sync>,
}

/// What the last reload found.
struct Last {
    /// The text of the file, if it could be read.
    text: Option<String>,
    is_good: bool,
    /// Whether a good file waits for a store that did not follow.
    is_waiting: bool,
}

impl<S> fmt::Debug for Reloader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("path", &self.started.path).finish_non_exhaustive()
    }
}

impl<S: Store> Reloader<S> {
    /// A reloader of the file that a server started with. Its rules are in `live`, and `told` hears of every reload.
    pub(crate) fn new(
        started: StartupFile,
        live: Arc<LiveRules>,
        limiter: Arc<Limiter<S>>,
        told: impl Fn(&ReloadReport) + Send + Sync + 'static,
    ) -> Self {
        let last = Last { text: Some(started.config.text.clone()), is_good: true, is_waiting: false };
        Self { started, live, limiter, last: Mutex::new(last), told: Box::new(told) }
    }

    /// The file that it reads.
    pub(crate) fn path(&self) -> &Path {
        &self.started.path
    }

    /// Whether a good file waits for a store that did not follow.
    pub(crate) async fn is_waiting(&self) -> bool {
        self.last.lock().await.is_waiting
    }

    /// Reads the file and puts it in force if it is good, whether or not it has changed.
    pub(crate) async fn reload_now(&self) -> ReloadReport {
        let mut last = self.last.lock().await;
        self.reload(&mut last, Config::read(self.path())).await
    }

    /// The same, if the file says something else than at the last reload: a directory has other files too.
    pub(crate) async fn reload_if_changed(&self) -> Option<ReloadReport> {
        let mut last = self.last.lock().await;
        let text = Config::read(self.path());
        let known = text.as_ref().ok() == last.text.as_ref();
        // A file that is gone is told of once. One that waits for the store is tried again.
        if known && !last.is_waiting && (text.is_ok() || !last.is_good) {
            return None;
        }
        Some(self.reload(&mut last, text).await)
    }

    async fn reload(&self, last: &mut Last, text: Result<String, ConfigError>) -> ReloadReport {
        last.text = text.clone().ok();
        let file = self.path().display().to_string();
        let report = match text.and_then(|text| Config::parse(&file, &text)) {
            Err(error) => {
                let result = Reloaded::Refused(texts(&error.mistakes));
                ReloadReport { result, hash: None, needs_restart: Vec::new(), warnings: Vec::new() }
            }
            Ok(config) => {
                let StartupFile { config: started, over, settings, .. } = &self.started;
                let done = self.put_in_force(config.rules(over)).await;
                ReloadReport {
                    hash: done.is_ok().then(|| config.hash()),
                    result: done.unwrap_or_else(Reloaded::StoreFailed),
                    needs_restart: config.changed_settings(started),
                    warnings: texts(&config.warnings(over, settings)),
                }
            }
        };
        last.is_good = report.is_good();
        last.is_waiting = matches!(report.result, Reloaded::StoreFailed(_));
        (self.told)(&report);
        report
    }

    /// Carries states over and swaps the rules.
    ///
    /// 1. A live change of the states for every rule of which limits differ, its own or those of its overrides. If the
    ///    store fails here, the old rules stay.
    /// 2. The rules are swapped. Requests that begin from now on go by the new ones.
    /// 3. Requests in flight still hold the old ones; they are waited for.
    /// 4. A live change of the states again, for what they charged under the old rules since 1.
    ///
    /// Without 4, a key that was charged between 1 and 2 would be back in the old geometry, and could be forgotten when
    /// the old window ends although the new one is longer: over. Without 1, a store that does not answer would be found
    /// out after the swap. A request that meets a state of the other geometry goes on with all that was used.
    async fn put_in_force(&self, rules: RuleSet) -> Result<Reloaded, String> {
        let before = Arc::clone(&self.live.load());
        let difference = Difference::between(&before, &rules);
        if difference.is_empty() && before.inline_forbidden_by() == rules.inline_forbidden_by() {
            return Ok(Reloaded::Unchanged);
        }
        for (done, rule) in difference.to_carry_over.iter().enumerate() {
            if let Err(error) = self.limiter.change_async(rule).await {
                self.take_back(&before, &difference.to_carry_over[..=done]).await;
                return Err(format!("rule `{}`: its states could not be carried over: {error}", rule.name()));
            }
        }
        drop(before);
        let old = self.live.replace(rules);
        if !difference.to_carry_over.is_empty() {
            released(&old).await;
            for rule in &difference.to_carry_over {
                // The new rules are in force, and states go on under them as they are met.
                self.limiter.change_async(rule).await.ok();
            }
        }
        let Difference { added, changed, removed, .. } = difference;
        Ok(Reloaded::Applied { added, changed, removed })
    }

    /// States that were carried over go on under the old rules; a store that does not answer does not follow.
    async fn take_back(&self, before: &RuleSet, rules: &[Rule]) {
        for rule in rules {
            if let (Ok(old), Some(overrides)) = (before.get(rule.name()), before.overrides(rule.name())) {
                let old = with_windows_of(old, overrides);
                self.limiter.change_async(&old).await.ok();
            }
        }
    }
}

/// Waits until no request goes by `rules` any more, but not for ever.
async fn released(rules: &Arc<RuleSet>) {
    let all_ended = async {
        while Arc::strong_count(rules) > 1 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(IN_FLIGHT_MAX, all_ended).await.ok();
}

fn texts(found: &[Found]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
