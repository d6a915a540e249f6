//! Reloads while the server runs: every field under load, bad files, and every way to replace a file.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

use slidegate::store::MemoryStore;
use slidegate::time::{Clock, ManualClock};
use slidegate::{ChargeRequest, Key, Resolved};

use super::super::file_watch::watch;
use super::*;
use crate::config::Startup;

const NOW_US: u64 = 1_745_000_145_000_000;
const MINUTE_US: u64 = 60_000_000;
/// A test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

type TestStore = MemoryStore<ManualClock>;

/// A server's rules, store and reloader on a directory of its own.
struct Server {
    directory: PathBuf,
    live: Arc<LiveRules>,
    tokens: Arc<LiveTokens>,
    limiter: Arc<Limiter<TestStore>>,
    reloader: Arc<Reloader<TestStore>>,
    reports: Mutex<Receiver<ReloadReport>>,
}

impl Server {
    fn start(name: &str, config: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("slidegate-reload-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("rules.yaml");
        fs::write(&path, config).unwrap();
        Self::on(directory, &path)
    }

    /// Starts on an existing file.
    fn on(directory: PathBuf, path: &Path) -> Self {
        let started = Startup::read(Some(path), &[], []).unwrap();
        let limiter = Arc::new(Limiter::with_clock(ManualClock::at_us(NOW_US)));
        let live = Arc::new(LiveRules::new(started.rules));
        let (sender, reports) = mpsc::channel();
        let on_reload = move |report: &ReloadReport| drop(sender.send(report.clone()));
        let file = started.file.expect("there is a file");
        let tokens = Arc::new(LiveTokens::new(file.settings.tokens()));
        let (rules, accepted) = (Arc::clone(&live), Arc::clone(&tokens));
        let mut reloader = Reloader::new(file, rules, accepted, Arc::clone(&limiter), on_reload);
        reloader.period_min = Duration::ZERO;
        Self { directory, live, tokens, limiter, reloader: Arc::new(reloader), reports: Mutex::new(reports) }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("rules.yaml")
    }

    fn write(&self, config: &str) {
        fs::write(self.path(), config).unwrap();
    }

    fn edit(&self, config: &str) -> ReloadReport {
        self.write(config);
        self.reload()
    }

    fn reload(&self) -> ReloadReport {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.reloader.reload_now())
    }

    fn limit(&self) -> u64 {
        self.live.load().get("api").unwrap().cost_max()
    }

    fn used(&self, key: &str) -> u64 {
        let rules = self.live.load();
        let usages = self.limiter.inspect(rules.get("api").unwrap(), key).unwrap();
        usages.iter().map(|usage| usage.used).max().unwrap()
    }

    /// The next report of the watch.
    fn next_report(&self) -> ReloadReport {
        self.reports.lock().unwrap().recv_timeout(TIMEOUT).expect("the change is seen")
    }
}

impl Server {
    /// The next report of a valid file. The watch may read a file that is still empty while it is written.
    fn next_good_report(&self) -> ReloadReport {
        std::iter::repeat_with(|| self.next_report())
            .find(ReloadReport::is_in_force)
            .expect("the iterator never ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Asks for one unit of rule `api`; returns whether a limit admitted it.
fn ask(rules: &RuleSet, limiter: &Limiter<TestStore>, now_us: u64, key: &str) -> bool {
    let request = ChargeRequest::named("api", key, 1);
    let Resolved::Limited(charge) = rules.resolve(&request).unwrap() else { return false };
    limiter.at_us(now_us).check_all(&[charge]).unwrap().allowed() && !charge.rule().shadow()
}

fn api(fields: &str) -> String {
    format!("rules: {{ api: {{ {fields} }} }}\n")
}

/// Other limiters lost their counters, let everything pass or panicked when a limit was edited under load.
#[test]
fn edits_of_every_field_under_load_never_exceed_the_limit() {
    const LIMIT_MAX: u64 = 50;
    let edits = [
        "limit: 40/1h",
        "limit: 50/1h",
        "limit: 30/1h",
        "limit: 50/2h",
        "limits: [50/1h, 45/2h]",
        "limits: [50/2h, 50/1h, 50/3h]",
        "limit: 50/1h, algorithm: compact-log",
        "limit: 50/1h, algorithm: compact-log, entries: 4",
        "limit: 50/1h, algorithm: sliding-buckets",
        "limit: 50/1h, algorithm: sliding-buckets, buckets: 30",
        "limit: 50/1h, algorithm: sliding-buckets, buckets: 30, edge: interpolated",
        "limit: 50/1h, algorithm: sliding-counter",
        "limit: 50/1h, algorithm: fixed-window",
        "limit: 50/1h, algorithm: gcra",
        "limit: 40/1h, algorithm: gcra",
        "limit: 50/1h, headroom: 0.5",
        "limit: 50/1h, shadow: true",
        "limit: 50/1h, on_store_error: allow",
        "limit: 50/1h, on_store_error: { local: 0.5 }",
        "limit: 50/1h, at_budget: evict-oldest",
        "limit: 50/1h, overrides: { k1: 20/1h, 'k2*': blocked, 'k3*': unlimited, 'k4*': [50/1h, 40/2h] }",
        "limit: 50/1h, overrides: { 'k*': 25/1h }",
    ];
    let server = Server::start("load", &api("limit: 50/1h"));
    let (asked, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let admitted: Vec<HashMap<u64, u64>> = std::thread::scope(|scope| {
        let caller = || {
            let mut admitted = HashMap::new();
            while !stop.load(Ordering::Relaxed) {
                // All callers share a key, and move on to a fresh one, so that every edit meets keys in use.
                let number = asked.fetch_add(1, Ordering::Relaxed) / 300;
                let passed = ask(&server.live.load(), &server.limiter, NOW_US, &format!("k{number}"));
                *admitted.entry(number).or_insert(0) += u64::from(passed);
            }
            admitted
        };
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(caller)).collect();
        for edit in edits.iter().cycle().take(edits.len() * 3) {
            let before = asked.load(Ordering::Relaxed);
            let report = server.edit(&api(edit));
            assert!(report.is_in_force(), "{edit}: {report}");
            while asked.load(Ordering::Relaxed) < before + 500 {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        callers.into_iter().map(|caller| caller.join().expect("no caller panics")).collect()
    });
    assert!(server.edit(&api("limit: 1000/3h")).is_in_force());
    let mut totals: HashMap<u64, u64> = HashMap::new();
    for (number, count) in admitted.into_iter().flatten() {
        *totals.entry(number).or_default() += count;
    }
    assert!(totals.len() > 50 && totals.values().any(|&total| total == LIMIT_MAX), "{}", totals.len());
    for (number, total) in totals {
        assert!(total <= LIMIT_MAX, "k{number}: {total} of {LIMIT_MAX}");
        let used = server.used(&format!("k{number}"));
        assert!(used >= total, "k{number}: {total} passed, {used} are in the state");
    }
}

#[test]
fn a_changed_limit_keeps_the_used_units() {
    let server = Server::start("limit", &api("limit: 5/1m"));
    assert!((0..5).all(|_| ask(&server.live.load(), &server.limiter, NOW_US, "alice")));
    assert!(!ask(&server.live.load(), &server.limiter, NOW_US, "alice"));
    let report = server.edit(&api("limit: 7/1m"));
    let expected = ReloadResult::Applied { added: vec![], changed: vec!["api".into()], removed: vec![] };
    assert_eq!(report.result, expected);
    assert_eq!(server.used("alice"), 5);
    assert_eq!(server.edit(&api("limit: 7/1m")).result, ReloadResult::Unchanged);
    assert!((0..2).all(|_| ask(&server.live.load(), &server.limiter, NOW_US, "alice")));
    assert!(!ask(&server.live.load(), &server.limiter, NOW_US, "alice"));
}

/// The used units of a key survive the window of an override that is added or removed, and a change that concerns
/// another key.
#[test]
fn used_units_survive_added_and_removed_overrides() {
    let with = |overrides: &str| api(&format!("limit: 5/1h, overrides: {{ {overrides} }}"));
    let edits = [
        ("removed", with("eve: 5/1s"), api("limit: 5/1h")),
        ("pattern", with("'e*': 5/1s"), with("eva: 5/1s")),
        ("added", api("limit: 5/1s"), api("limit: 5/1s, overrides: { eve: 5/1h }")),
        ("longer", with("eve: 5/1d"), api("limit: 6/1h, overrides: { eve: 5/1d }")),
    ];
    for (name, before, after) in edits {
        let server = Server::start(&format!("override-{name}"), &before);
        assert!((0..5).all(|_| ask(&server.live.load(), &server.limiter, NOW_US, "eve")), "{name}");
        assert!(server.edit(&after).is_in_force(), "{name}");
        server.limiter.clock().advance(Duration::from_micros(MINUTE_US));
        let now_us = server.limiter.clock().now_us();
        server.limiter.store().sweep(now_us);
        assert!(
            !ask(&server.live.load(), &server.limiter, now_us, "eve"),
            "{name}: the sixth within its window"
        );
        // Then change only the rule's own limit.
        assert!(
            server
                .edit(&after.replacen("limit: 5", "limit: 7", 1).replacen("limit: 6", "limit: 8", 1))
                .is_in_force()
        );
        server.limiter.store().sweep(now_us);
        let used =
            server.limiter.store().state(server.live.load().get("api").unwrap(), Key::new("eve").unwrap());
        assert!(used.is_some_and(|state| state.usages(now_us).any(|(_, usage)| usage.used == 5)), "{name}");
    }
}

/// The announced wait of a key does not grow when the rule's own limit is edited.
#[test]
fn an_unchanged_override_keeps_its_stamps() {
    let server = Server::start("stays", &api("limit: 5/1h, overrides: { dan: 5/3s }"));
    assert!((0..5).all(|_| ask(&server.live.load(), &server.limiter, NOW_US, "dan")));
    server.limiter.clock().advance(Duration::from_secs(2));
    assert!(server.edit(&api("limit: 6/1h, overrides: { dan: 5/3s }")).is_in_force());
    assert!(
        ask(&server.live.load(), &server.limiter, NOW_US + 3_000_000, "dan"),
        "three seconds after the first"
    );
}

/// A request that loaded the old rules may charge under them after the first migration. Its charge, and all before it,
/// must not expire with the old window if the new window is longer.
#[test]
fn charges_of_requests_in_flight_are_migrated_too() {
    let server = Server::start("in-flight", &api("limit: 5/1m"));
    assert!((0..3).all(|_| ask(&server.live.load(), &server.limiter, NOW_US, "alice")));
    let in_flight = server.live.load();
    server.write(&api("limit: 5/1h"));
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| server.reload());
        let new = |rules: &RuleSet| rules.get("api").unwrap().limits()[0].window_us() > MINUTE_US;
        while !new(&server.live.load()) {
            std::thread::yield_now();
        }
        assert!(ask(&in_flight, &server.limiter, NOW_US, "alice"), "the fourth, under the old rule");
        assert!(!reload.is_finished(), "requests in flight are waited for");
        drop(in_flight);
        assert!(reload.join().unwrap().is_in_force());
    });
    server.limiter.clock().advance(Duration::from_micros(2 * MINUTE_US));
    let now_us = server.limiter.clock().now_us();
    server.limiter.store().sweep(now_us);
    assert_eq!(server.used("alice"), 4);
    assert!(ask(&server.live.load(), &server.limiter, now_us, "alice"));
    assert!(!ask(&server.live.load(), &server.limiter, now_us, "alice"), "the sixth within the hour");
}

#[test]
fn an_invalid_file_keeps_the_old_rules_and_is_reported() {
    let server = Server::start("bad", &api("limit: 5/1m"));
    for (config, words) in [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("rules: {}\n", "expected rules by name, found none"),
        (
            "rules: { api: { limit: 6 } }\n",
            "rules.yaml:1:24: rule `api`: limit: expected LIMIT/WINDOW, found `6`",
        ),
        ("rules: {{{\n", "is not YAML"),
        ("rules: { api: { limit: 6/1m } }\nstore: mysql://x\n", "store: `mysql:...` is not available"),
    ] {
        let report = server.edit(config);
        let ReloadResult::Refused(mistakes) = &report.result else { panic!("{config}: {report}") };
        assert!(mistakes[0].contains(words), "{config}: {report}");
        assert!(
            report.to_string().starts_with("configuration refused, the old rules stay in force: "),
            "{report}"
        );
        assert!(!report.is_in_force() && server.next_report() == report);
        assert_eq!(server.limit(), 5, "{config}");
    }
    fs::remove_file(server.path()).unwrap();
    let report = server.reload();
    assert!(report.to_string().contains("cannot be read"), "{report}");
    assert_eq!(server.limit(), 5);
    assert!(server.edit(&api("limit: 6/1m")).is_in_force());
    assert_eq!(server.limit(), 6);
}

#[test]
fn rules_are_added_and_removed_and_settings_need_a_restart() {
    let server = Server::start("settings", "rules: { api: { limit: 5/1m }, old: { limit: 5/1m } }\n");
    let edit = "rules: { api: { limit: 5/1m }, new: { limit: 20000/1m } }\nhttp: 127.0.0.1:1\ninline_rules: true\n\
                bounds: { idle_time: 1s }\n";
    let report = server.edit(edit);
    let expected =
        ReloadResult::Applied { added: vec!["new".into()], changed: vec![], removed: vec!["old".into()] };
    assert_eq!(report.result, expected);
    assert_eq!(report.needs_restart, ["http", "bounds.idle_time"]);
    assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
    let logged = "configuration reloaded, added new, removed old; needs a restart: http bounds.idle_time";
    assert_eq!(report.to_string(), logged);
    assert!(server.live.load().allows_inline());
    assert!(server.live.load().get("old").is_err());
    let report = server.edit("rules: { api: { limit: 5/1m }, new: { limit: 20000/1m } }\n");
    assert_eq!(report.needs_restart, [""; 0], "the settings in force are back in the file");
    assert!(!server.live.load().allows_inline());
}

#[test]
fn the_watch_detects_writes_renames_and_removal() {
    let server = Server::start("watch", &api("limit: 5/1m"));
    let _watch = watch(&server.reloader).unwrap();
    server.write(&api("limit: 6/1m"));
    server.next_good_report();
    assert_eq!(server.limit(), 6);

    let beside = server.directory.join("rules.yaml.new");
    fs::write(&beside, api("limit: 7/1m")).unwrap();
    fs::rename(&beside, server.path()).unwrap();
    server.next_good_report();
    assert_eq!(server.limit(), 7);

    fs::remove_file(server.path()).unwrap();
    assert!(!server.next_report().is_in_force());
    assert_eq!(server.limit(), 7);

    server.write(&api("limit: 8/1m"));
    server.next_good_report();
    assert_eq!(server.limit(), 8);
}

/// Kubernetes keeps `rules.yaml -> ..data/rules.yaml` and `..data -> ..1`, and renames another `..data` over it.
#[cfg(unix)]
#[test]
fn the_watch_detects_a_swapped_link() {
    use std::os::unix::fs::symlink;

    let directory = std::env::temp_dir().join(format!("slidegate-reload-{}-links", std::process::id()));
    fs::remove_dir_all(&directory).ok();
    for (version, limit) in [("..1", "5/1m"), ("..2", "6/1m"), ("..3", "7/1m")] {
        fs::create_dir_all(directory.join(version)).unwrap();
        fs::write(directory.join(version).join("rules.yaml"), api(&format!("limit: {limit}"))).unwrap();
    }
    symlink("..1", directory.join("..data")).unwrap();
    symlink("..data/rules.yaml", directory.join("rules.yaml")).unwrap();
    let server = Server::on(directory.clone(), &directory.join("rules.yaml"));
    let _watch = watch(&server.reloader).unwrap();
    for (version, limit) in [("..2", 6), ("..3", 7)] {
        symlink(version, directory.join("..data_tmp")).unwrap();
        fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
        server.next_good_report();
        assert_eq!(server.limit(), limit);
    }
}

/// The links of Kubernetes stay inside the directory; a link to another directory is followed too.
#[cfg(unix)]
#[test]
fn the_watch_detects_changes_behind_a_link() {
    let server = Server::start("behind", &api("limit: 5/1m"));
    let elsewhere = server.directory.join("mount");
    fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(server.path(), elsewhere.join("linked.yaml")).unwrap();
    let linked = Server::on(elsewhere.clone(), &elsewhere.join("linked.yaml"));
    let _watch = watch(&linked.reloader).unwrap();
    server.write(&api("limit: 9/1m"));
    linked.next_good_report();
    assert_eq!(linked.limit(), 9);
}

/// Each link of a chain may be swapped repeatedly.
#[cfg(unix)]
#[test]
fn the_watch_detects_every_swap_in_a_chain_of_links() {
    use std::os::unix::fs::symlink;

    let directory = std::env::temp_dir().join(format!("slidegate-reload-{}-hops", std::process::id()));
    fs::remove_dir_all(&directory).ok();
    let (near, far) = (directory.join("near"), directory.join("far"));
    fs::create_dir_all(&near).unwrap();
    for version in 1..=4 {
        fs::create_dir_all(far.join(format!("..{version}"))).unwrap();
        let file = far.join(format!("..{version}/rules.yaml"));
        fs::write(file, api(&format!("limit: {version}/1m"))).unwrap();
    }
    symlink("..1", far.join("..data")).unwrap();
    symlink("..data/rules.yaml", far.join("rules.yaml")).unwrap();
    symlink("../far/rules.yaml", near.join("rules.yaml")).unwrap();
    let server = Server::on(directory.clone(), &near.join("rules.yaml"));
    let _watch = watch(&server.reloader).unwrap();
    for version in 2..=4 {
        symlink(format!("..{version}"), far.join("..data_tmp")).unwrap();
        fs::rename(far.join("..data_tmp"), far.join("..data")).unwrap();
        server.next_good_report();
        assert_eq!(server.limit(), version);
    }
}

/// The token of a file is read again although the text that names it is the same.
#[test]
fn tokens_come_into_force_with_the_rules_of_their_file() {
    let server = Server::start("tokens", &api("limit: 5/1m"));
    let (first, second) = ("correct-horse-battery", "staple-battery-horse");
    let accepted = || [first, second].map(|token| server.tokens.load().scopes_of(token.as_bytes()).is_some());
    let token_file = server.directory.join("token");
    let named = format!("token_file: {}\n", token_file.display());
    let applied = ReloadResult::Applied { added: vec![], changed: vec![], removed: vec![] };
    for (token, expected) in [(first, [true, false]), (second, [false, true])] {
        fs::write(&token_file, token).unwrap();
        let report = server.edit(&format!("{}{named}", api("limit: 5/1m")));
        assert_eq!((&report.result, report.needs_restart.len()), (&applied, 0), "{report}");
        assert_eq!(accepted(), expected);
    }
    assert_eq!(server.reload().result, ReloadResult::Unchanged);
    assert!(!server.edit(&format!("{}tokens: 5\n", api("limit: 5/1m"))).is_in_force());
    assert_eq!(accepted(), [false, true], "a refused file changes no token");
    assert_eq!(server.edit(&api("limit: 5/1m")).result, applied);
    assert!(server.tokens.load().is_empty());
}

/// Events of other files in the directory cause no report.
#[test]
fn an_unchanged_file_is_not_reloaded() {
    let server = Server::start("beside", &api("limit: 5/1m"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(server.reloader.reload_if_changed()), None);
    server.write(&api("limit: 6/1m"));
    assert!(runtime.block_on(server.reloader.reload_if_changed()).is_some());
    assert_eq!(runtime.block_on(server.reloader.reload_if_changed()), None);
    assert_eq!(server.limit(), 6);
}

#[test]
fn a_request_to_the_watch_reloads_an_unchanged_file() {
    let server = Server::start("requested", &api("limit: 5/1m"));
    let watch = watch(&server.reloader).unwrap();
    watch.request_reload();
    assert_eq!(server.next_report().result, ReloadResult::Unchanged);
}

#[test]
fn the_watch_detects_a_change_before_it_began() {
    let server = Server::start("early", &api("limit: 5/1m"));
    server.write(&api("limit: 6/1m"));
    let _watch = watch(&server.reloader).unwrap();
    server.next_good_report();
    assert_eq!(server.limit(), 6);
}

/// A watch follows a moved directory, so events of the one that comes back would not reach it.
#[test]
fn the_watch_follows_a_directory_that_is_moved_away_and_back() {
    let server = Server::start("moved", &api("limit: 5/1m"));
    let inner = server.directory.join("config");
    let away = server.directory.join("away");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("rules.yaml"), api("limit: 5/1m")).unwrap();
    let server = Server::on(server.directory.clone(), &inner.join("rules.yaml"));
    let _watch = watch(&server.reloader).unwrap();
    for limit in [6, 7] {
        fs::rename(&inner, &away).unwrap();
        assert!(!server.next_report().is_in_force(), "the file is missing");
        fs::write(away.join("rules.yaml"), api("limit: 5/1m")).unwrap();
        fs::rename(&away, &inner).unwrap();
        server.next_good_report();
        fs::write(inner.join("rules.yaml"), api(&format!("limit: {limit}/1m"))).unwrap();
        server.next_good_report();
        assert_eq!(server.limit(), limit);
    }
}

#[test]
fn the_watch_follows_a_directory_that_is_created_again() {
    let server = Server::start("created", &api("limit: 5/1m"));
    let _watch = watch(&server.reloader).unwrap();
    for limit in [6, 7] {
        fs::remove_dir_all(&server.directory).unwrap();
        assert!(!server.next_report().is_in_force(), "the file is missing");
        fs::create_dir(&server.directory).unwrap();
        server.write(&api(&format!("limit: {limit}/1m")));
        server.next_good_report();
        assert_eq!(server.limit(), limit);
    }
}

#[test]
fn two_thousand_requests_are_a_few_reloads() {
    const REQUESTS: usize = 2_000;
    let mut server = Server::start("storm", &api("limit: 5/1m"));
    Arc::get_mut(&mut server.reloader).expect("no watch holds it").period_min = PERIOD_MIN;
    server.write(&api("limit: 6/1m"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..REQUESTS {
            let reloader = Arc::clone(&server.reloader);
            requests.spawn(async move { reloader.reload_now().await });
        }
        let reports = requests.join_all().await;
        assert!(reports.len() == REQUESTS && reports.iter().all(ReloadReport::is_in_force));
    });
    assert_eq!(server.limit(), 6);
    let reloads = server.reports.lock().unwrap().try_iter().count();
    assert!((1..=3).contains(&reloads), "{reloads}");
}

/// A request that arrives during a reload is answered by the next one, because the file may have changed after it was
/// read.
#[test]
fn a_request_is_answered_by_a_reload_that_began_after_it() {
    let server = Server::start("after", &api("limit: 5/1m"));
    let in_flight = server.live.load();
    server.write(&api("limit: 6/1m"));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| server.reload());
        while server.limit() == 5 {
            std::thread::yield_now();
        }
        // The first reload has read the file and waits for the request in flight.
        server.write(&api("limit: banana"));
        let second = scope.spawn(|| server.reload());
        while server.reloader.requests.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        assert!(!first.is_finished());
        drop(in_flight);
        assert!(first.join().unwrap().is_in_force());
        assert!(!second.join().unwrap().is_in_force(), "the second one read the new file");
    });
}
