//! The memory budget: it holds at every step, a charge that does not fit changes nothing, and ended keys make room.

use crate::common::*;
use slidegate::rule::{AtBudget, Buckets, Edge, OnStoreError};
use slidegate::store::{BUDGET_BYTES_MIN, BudgetError, MemoryStore, StoreError};
use slidegate::testing::Rng;
use slidegate::time::ManualClock;
use slidegate::{Algorithm, Charge, CheckError, Decision, Limiter, Receipt, Rule};

/// A flood ends after this many refusals in a row: shards do not fill up at the same time.
const REFUSED_IN_A_ROW: u64 = 2_000;

const FULL: StoreError = StoreError::Full { budget_bytes: BUDGET_BYTES_MIN };

pub type Charges<'a, 'b> = &'b [(&'a Rule, &'a str, u64)];

/// Which keys find room depends on the seed: a fixed seed makes every run the same.
pub fn small_store() -> MemoryStore {
    MemoryStore::with_budget(BUDGET_BYTES_MIN).unwrap().with_seed(1)
}

/// Checks, and asserts that the budget holds.
pub fn ask<'a>(
    store: &MemoryStore,
    now_us: u64,
    charges: Charges<'a, '_>,
) -> Result<Decision<'a>, StoreError> {
    let outcome = store.check(now_us, &admission(charges));
    let stats = store.stats();
    assert!(stats.bytes <= stats.budget_bytes, "{stats:?}");
    outcome
}

/// Adds new keys until none finds room; returns how many were admitted and how many refused.
pub fn flood(store: &MemoryStore, now_us: u64, rule: &Rule) -> (u64, u64) {
    let (mut admitted, mut refused, mut in_a_row) = (0, 0, 0);
    while in_a_row < REFUSED_IN_A_ROW {
        let name = format!("flood:{now_us}:{}", admitted + refused);
        match store.check(now_us, &admission(&[(rule, &name, 1)])) {
            Ok(outcome) => {
                assert!(outcome.allowed() && !outcome.degraded());
                (admitted, in_a_row) = (admitted + 1, 0);
            }
            Err(full) => {
                assert_eq!((&full, full.maybe_charged()), (&FULL, false));
                (refused, in_a_row) = (refused + 1, in_a_row + 1);
            }
        }
        // Not after every call, as it locks every shard.
        if (admitted + refused) % 64 == 0 {
            assert!(store.stats().bytes <= BUDGET_BYTES_MIN, "{:?}", store.stats());
            assert!(admitted < 100_000, "so many keys do not fit: some are forgotten");
        }
    }
    (admitted, refused)
}

/// Names of new keys that find no room.
fn without_room(store: &MemoryStore, now_us: u64, rule: &Rule, count: usize) -> Vec<String> {
    let names = (0..).map(|number| format!("without_room:{number}"));
    names.filter(|name| store.check(now_us, &admission(&[(rule, name, 1)])).is_err()).take(count).collect()
}

pub fn known_names() -> Vec<String> {
    (0..500).map(|number| format!("known:{number}")).collect()
}

pub fn used_by(store: &MemoryStore, now_us: u64, rule: &Rule, name: &str) -> u64 {
    store.inspect(now_us, rule, key(name)).iter().map(|limit| limit.used).max().unwrap()
}

/// Limits whose states fit the slot, and limits whose states need the heap.
fn rules() -> Vec<Rule> {
    let algorithms = every_algorithm().into_iter();
    algorithms
        .flat_map(|algorithm| {
            [&["3/1h"][..], &["1000000000000/1h"], &["3/1s", "3/1h", "3/24h"]]
                .map(|rates| rule("api", rates, algorithm))
        })
        .collect()
}

#[test]
fn at_the_budget_new_keys_are_refused_and_existing_ones_still_work() {
    for rule in rules() {
        let (store, known) = (small_store(), known_names());
        for name in &known {
            ask(&store, BOUNDARY_US, &[(&rule, name, 1)]).unwrap();
        }
        let (admitted, refused) = flood(&store, BOUNDARY_US, &rule);
        let stats = store.stats();
        assert_eq!((stats.keys, stats.full), (admitted + 500, refused), "{rule:?}");
        assert_eq!((stats.evicted, stats.swept), (0, 0), "{rule:?}");
        assert!(stats.bytes > BUDGET_BYTES_MIN / 2, "{rule:?}: {stats:?}");
        for name in &known {
            assert_eq!(used_by(&store, BOUNDARY_US, &rule, name), 1, "{rule:?}");
            for used in 2..=3 {
                let decision = ask(&store, BOUNDARY_US, &[(&rule, name, 1)]).unwrap();
                assert_eq!((decision.allowed(), decision.used()), (true, Some(used)), "{rule:?}");
            }
            if rule.cost_max() == 3 {
                let denied = ask(&store, BOUNDARY_US, &[(&rule, name, 1)]).unwrap();
                assert!(!denied.allowed() && denied.used() == Some(3), "{rule:?}: a denial needs no room");
            }
        }
    }
}

/// If the second charge has no room, the first is rolled back.
#[test]
fn an_admission_that_does_not_fit_charges_nothing_in_any_order() {
    for rule in rules() {
        let store = small_store();
        let other = crate::common::rule("other", &["9/1h"], Algorithm::SlidingCounter);
        for name in known_names() {
            ask(&store, BOUNDARY_US, &[(&rule, &name, 1), (&other, &name, 1)]).unwrap();
        }
        flood(&store, BOUNDARY_US, &rule);
        let without_room = without_room(&store, BOUNDARY_US, &rule, 20);
        let before = store.stats();
        for (name, without_room) in known_names().iter().zip(&without_room) {
            let states = || [&rule, &other].map(|rule| store.state(rule, key(name)));
            let states_before = states();
            let mut charges =
                [(&rule, name.as_str(), 1), (&rule, without_room.as_str(), 1), (&other, name, 1)];
            for _ in 0..3 {
                charges.rotate_left(1);
                assert_eq!(ask(&store, BOUNDARY_US, &charges).unwrap_err(), FULL, "{rule:?}");
                charges.reverse();
                assert_eq!(ask(&store, BOUNDARY_US, &charges).unwrap_err(), FULL, "{rule:?}");
            }
            assert_eq!(states(), states_before, "{rule:?}");
            assert_eq!(store.state(&rule, key(without_room)), None, "{rule:?}");
            let decision = ask(&store, BOUNDARY_US, &[(&rule, name, 1), (&other, name, 1)]).unwrap();
            assert!(decision.allowed() && decision.verdicts().all(|it| it.used() == Some(2)), "{rule:?}");
        }
        let after = store.stats();
        assert_eq!(
            (after.keys, after.bytes, after.full),
            (before.keys, before.bytes, before.full + 120),
            "{rule:?}"
        );
    }
}

/// Keys of one admission often share a table: making room for one must not evict another.
#[test]
fn an_admission_makes_room_for_all_its_keys() {
    for algorithm in every_algorithm() {
        let plain = rule("api", &["3/10s"], algorithm);
        let evicting = Rule::builder("api").limit("3/10s".parse().unwrap()).algorithm(algorithm);
        let evicting = evicting.at_budget(AtBudget::EvictOldest).build().unwrap();
        for rule in [plain, evicting] {
            let store: MemoryStore = MemoryStore::with_locks(1, 100_000);
            let mut admitted = 0;
            for round in 0..400 {
                // The keys of the round before the last have ended, and are charged again with new ones.
                let now_us = BOUNDARY_US + round * 15 * SECOND_US;
                let known = (0..8).map(|number| format!("{}:{number}", round.saturating_sub(2)));
                let names: Vec<String> =
                    known.chain((0..24).map(|number| format!("{round}:{number}"))).collect();
                let charges: Vec<_> = names.iter().map(|name| (&rule, name.as_str(), 1)).collect();
                let unique = if round < 2 { &charges[8..] } else { &charges[..] };
                if let Ok(outcome) = ask(&store, now_us, unique) {
                    assert!(outcome.allowed(), "{rule:?}");
                    for (rule, name, _) in unique {
                        assert_eq!(used_by(&store, now_us, rule, name), 1, "{rule:?}: {name}");
                    }
                    admitted += 1;
                }
            }
            assert!(admitted > 100, "{rule:?}: {admitted}");
        }
    }
}

/// No admission succeeds that could raise the watermark or sweep: refused requests must do it.
#[test]
fn after_the_windows_have_passed_new_keys_are_admitted_without_an_explicit_sweep() {
    for rule in rules() {
        let other = crate::common::rule("other", &["9/1h"], Algorithm::Gcra);
        for asked in [&rule, &other] {
            let (store, empty) = (small_store(), small_store());
            flood(&store, BOUNDARY_US, &rule);
            let (admitted, refused) = flood(&store, BOUNDARY_US + 3 * DAY_US, asked);
            let (admitted_by_empty, refused_by_empty) = flood(&empty, BOUNDARY_US, asked);
            assert!(admitted * 10 > admitted_by_empty * 7, "{asked:?}: {admitted} of {admitted_by_empty}");
            assert!(refused < refused_by_empty + 15_000, "{asked:?}: {refused}, not {refused_by_empty}");
        }
    }
}

fn rule_with(name: &str, policy: OnStoreError, shadow: bool) -> Rule {
    let rule = Rule::builder(name).limit("9/1h".parse().unwrap()).algorithm(Algorithm::FixedWindow);
    rule.on_store_error(policy).shadow(shadow).build().unwrap()
}

/// A limiter without room for new keys, and the name of one.
fn flooded(rule: &Rule) -> (Limiter<MemoryStore<ManualClock>>, String) {
    let store = small_store();
    ask(&store, BOUNDARY_US, &[(rule, "known", 1)]).unwrap();
    flood(&store, BOUNDARY_US, rule);
    // The rest is too small for a larger table, but not for a new table of another rule.
    flood(&store, BOUNDARY_US, &rule_with("filler", OnStoreError::Deny, false));
    let without_room = without_room(&store, BOUNDARY_US, rule, 1).remove(0);
    (Limiter::new(store.on_clock(ManualClock::at_us(BOUNDARY_US))), without_room)
}

#[test]
fn the_strictest_rule_answers_for_a_full_store() {
    let (deny, local) = (OnStoreError::Deny, OnStoreError::Local("0.5".parse().unwrap()));
    let denying = rule_with("api", deny, false);
    let (limiter, name) = flooded(&denying);
    let rules = |policies: &[(OnStoreError, bool)]| -> Vec<Rule> {
        let numbered = policies.iter().enumerate();
        numbered.map(|(n, &(policy, shadow))| rule_with(&format!("api:{n}"), policy, shadow)).collect()
    };
    let (allow, shadow_deny, shadow_allow) =
        ((OnStoreError::Allow, false), (deny, true), (OnStoreError::Allow, true));
    for (policies, admitted) in [
        (&[(deny, false)][..], false),
        (&[(local, false)], true),
        (&[(local, false), allow], true),
        (&[(local, false), (deny, false)], false),
        (&[allow], true),
        (&[allow, allow], true),
        (&[allow, (deny, false)], false),
        (&[(deny, false), allow], false),
        (&[allow, shadow_deny], true),
        (&[shadow_deny, allow], true),
        (&[shadow_allow, (deny, false)], false),
    ] {
        let (rules, keys_before) = (rules(policies), limiter.stats().store.unwrap().keys);
        let charges: Vec<_> = rules.iter().map(|rule| Charge::new(rule, key(&name), 1)).collect();
        let outcome = limiter.check_all(&charges);
        if admitted {
            let decision = outcome.unwrap();
            assert!(decision.allowed() && decision.degraded(), "{policies:?}");
            assert_eq!(
                (decision.receipt(), decision.verdicts().count()),
                (None, rules.len()),
                "{policies:?}"
            );
        } else {
            assert_eq!(outcome.unwrap_err(), CheckError::Store(FULL), "{policies:?}");
        }
        assert_eq!(limiter.stats().store.unwrap().keys, keys_before, "{policies:?}");
    }
}

#[test]
fn a_shadow_rule_without_room_never_fails_an_admission() {
    let (enforced, shadow) =
        (rule_with("api", OnStoreError::Deny, false), rule_with("shadow", OnStoreError::Deny, true));
    let (limiter, _) = flooded(&enforced);
    let both = [&shadow, &enforced].map(|rule| Charge::new(rule, key("known"), 1));
    let decision = limiter.check_all(&both).unwrap();
    assert!(decision.allowed() && !decision.degraded());
    assert_eq!(decision.receipt().unwrap().charges().len(), 1, "the enforced one alone was charged");
    assert_eq!(limiter.inspect(&enforced, "known").unwrap()[0].used, 2);
    let alone = limiter.check_all(&both[..1]).unwrap();
    assert!(alone.allowed() && alone.receipt().is_none());
    assert_eq!(limiter.inspect(&shadow, "known").unwrap()[0].used, 0);
}

#[test]
fn the_error_of_a_small_budget_names_the_minimum() {
    let error = MemoryStore::with_budget(BUDGET_BYTES_MIN - 1).unwrap_err();
    assert_eq!(error, BudgetError::TooSmall { bytes: BUDGET_BYTES_MIN - 1 });
    assert_eq!(error.to_string(), "budget: 1048575 bytes are too few to work with; give at least 1048576");
    assert_eq!(Limiter::with_budget(0).unwrap_err(), BudgetError::TooSmall { bytes: 0 });
    assert!(FULL.to_string().contains("raise the budget") && FULL.to_string().contains("evict-oldest"));
}

pub fn evicting(rates: &[&str], algorithm: Algorithm) -> Rule {
    let rule = rates.iter().fold(Rule::builder("api"), |rule, rate| rule.limit(rate.parse().unwrap()));
    rule.algorithm(algorithm).at_budget(AtBudget::EvictOldest).build().unwrap()
}

/// A log with at most as many units as a narrow slot has places never needs the heap.
#[test]
fn at_the_budget_a_short_log_still_works() {
    let (store, rule) = (small_store(), rule("api", &["5/10s"], Algorithm::SlidingLog));
    let other = crate::common::rule("other", &["9/1h"], Algorithm::SlidingCounter);
    for name in known_names() {
        ask(&store, BOUNDARY_US, &[(&rule, &name, 1)]).unwrap();
    }
    flood(&store, BOUNDARY_US, &rule);
    flood(&store, BOUNDARY_US, &other);
    for (second, used) in (1..9).zip([2, 3, 4, 5, 5, 5]) {
        let now_us = BOUNDARY_US + second * SECOND_US;
        for name in known_names() {
            let decision = store.check(now_us, &admission(&[(&rule, &name, 1)])).unwrap();
            assert_eq!(
                (decision.allowed(), decision.used()),
                (second < 5, Some(used)),
                "{name} after {second} s"
            );
        }
    }
    // All five have expired, and stay in the slot until the next charge.
    let now_us = BOUNDARY_US + 30 * SECOND_US;
    for name in known_names() {
        assert_eq!(store.check(now_us, &admission(&[(&rule, &name, 1)])).unwrap().used(), Some(1), "{name}");
    }
}

/// Rules of all kinds: several limits, growing logs, widening buckets, inline rules of one name with other
/// geometries, many windows.
fn many_rules(algorithm: Algorithm) -> Vec<Rule> {
    let inline = (1..=20).map(|seconds| Rule::inline(format!("50/{seconds}s").parse().unwrap(), algorithm));
    let buckets =
        [3, 10, 300].map(|count| Algorithm::SlidingBuckets(Buckets::new(count).unwrap(), Edge::Full));
    let same_name = buckets.map(|buckets| Rule::inline("100000/7s".parse().unwrap(), buckets));
    let named = [
        rule("one", &["20/10s"], algorithm),
        rule("wide", &["1000000000000/10s"], algorithm),
        rule("three", &["20/1s", "30/10s", "40/20s"], algorithm),
        evicting(&["20/10s"], algorithm),
        evicting(&["20/10s", "30/15s"], algorithm),
    ];
    inline.chain(named).chain(same_name).collect()
}

/// A random operation. With `beyond` also operations that may exceed the budget: settlements above the cost, live
/// changes and other geometries of existing keys, whose used units must not be lost.
fn step(
    store: &MemoryStore,
    rng: &mut Rng,
    now_us: u64,
    rules: &[Rule],
    receipts: &mut Vec<Receipt>,
    beyond: bool,
) {
    let rules = if beyond { rules } else { &rules[..rules.len() - 4] };
    let rule = rng.pick(rules);
    let names: Vec<String> =
        (0..rng.between(2, 6)).map(|number| format!("key:{}", number * 500 + rng.below(500))).collect();
    let name = key(&names[0]);
    let drawn = if receipts.is_empty() { None } else { Some(rng.pick(receipts).clone()) };
    match (rng.below(32), drawn) {
        (0, Some(receipt)) => drop(store.refund(now_us, &receipt)),
        (1, Some(receipt)) => drop(store.settle(now_us, &receipt, if beyond { rng.below(60) } else { 0 })),
        (2, _) => drop(store.credit(now_us, &Charge::new(rule, name, rng.between(1, 30)))),
        (3, _) => drop(store.reset(now_us, rule, name)),
        (4, _) if beyond && rng.one_in(20) => store.change(now_us, rule),
        (5, _) if rng.one_in(200) => drop(store.sweep(now_us)),
        (what, _) => {
            let count = if what < 10 { names.len() } else { 1 };
            let charges =
                names[..count].iter().map(|name| (rng.pick(rules), name.as_str(), rng.between(1, 20)));
            let charges: Vec<_> = charges.collect();
            let receipt =
                store.check(now_us, &admission(&charges)).ok().and_then(|outcome| outcome.receipt());
            receipts.extend(receipt);
            if receipts.len() > 300 {
                receipts.swap_remove(usize::try_from(rng.below(300)).unwrap());
            }
        }
    }
}

#[test]
fn the_budget_holds_at_every_step_and_all_memory_is_released() {
    for algorithm in every_algorithm() {
        let rules = many_rules(algorithm);
        for seed in 0..2 {
            let mut rng = Rng::new(seed);
            let store: MemoryStore = MemoryStore::with_locks(4, 120_000).with_seed(seed);
            let (mut receipts, mut now_us, mut full) = (Vec::new(), BOUNDARY_US, 0);
            for step in 0..8_000 {
                now_us += if rng.one_in(1_000) { rng.below(30 * SECOND_US) } else { rng.below(2_000) };
                self::step(&store, &mut rng, now_us, &rules, &mut receipts, false);
                let stats = store.stats();
                // A refund never waits for room: its record of 128 bytes is made within a share of its own.
                let bytes = stats.bytes - 128 * stats.spent_receipts;
                assert!(bytes <= stats.budget_bytes, "{algorithm}, seed {seed}, step {step}: {stats:?}");
                full = stats.full;
            }
            assert!(full > 20, "{algorithm}, seed {seed}: the budget was hardly met, {full} times");
            store.sweep(now_us + DAY_US);
            let stats = store.stats();
            assert_eq!((stats.keys, stats.bytes), (0, 0), "{algorithm}, seed {seed}");
        }
    }
}

#[test]
fn memory_beyond_the_budget_is_released_too() {
    for algorithm in every_algorithm() {
        let rules = many_rules(algorithm);
        for seed in 0..3 {
            let mut rng = Rng::new(seed);
            let store: MemoryStore = MemoryStore::with_locks(4, 400_000).with_seed(seed);
            let (mut receipts, mut now_us) = (Vec::new(), BOUNDARY_US);
            for _ in 0..8_000 {
                now_us += if rng.one_in(1_000) { rng.below(30 * SECOND_US) } else { rng.below(2_000) };
                step(&store, &mut rng, now_us, &rules, &mut receipts, true);
            }
            store.sweep(now_us + DAY_US);
            let stats = store.stats();
            assert_eq!((stats.keys, stats.bytes), (0, 0), "{algorithm}, seed {seed}");
        }
    }
}

/// Entries in place lie within 71 minutes of each other. Where they do, a longer window takes no memory either.
#[test]
fn a_known_key_of_a_long_window_is_counted_to_its_limit_at_a_spent_budget() {
    let (store, daily) = (small_store(), rule("daily", &["5/1d"], Algorithm::SlidingLog));
    let growing = rule("growing", &["1000000/1d"], Algorithm::SlidingLog);
    let names = known_names();
    for name in &names {
        assert!(ask(&store, 1_000_000, &[(&daily, name, 1), (&growing, name, 1)]).unwrap().allowed());
    }
    flood(&store, 1_000_000, &daily);
    // What is left is too little for an array of slots. Logs with costs take it, down to the last few bytes.
    let grow = |now_us, name: &String| ask(&store, now_us, &[(&growing, name, 2)]).is_ok();
    let spent = (1_000_001..1_100_000).position(|now_us| !names.iter().any(|name| grow(now_us, name)));
    assert!(spent.is_some(), "the logs grew without an end");
    for (now_us, used) in (2..=5).map(|used| (1_000_000 + used * 1_000_000, used)) {
        for name in &names {
            let decision = ask(&store, now_us, &[(&daily, name, 1)]).unwrap();
            assert_eq!((decision.allowed(), decision.used()), (true, Some(used)), "{name}");
        }
    }
    assert!(names.iter().all(|name| !ask(&store, 7_000_000, &[(&daily, name, 1)]).unwrap().allowed()));
}
