//! The same requests to the store in memory and to the durable one: the answers are equal, field by field, while the
//! durable one is closed and opened again at every turn.

use crate::common::*;
use slidegate::store::{MemoryStore, Store, When};
use slidegate::testing::{Rng, block_on, trace};
use slidegate::{Algorithm, Rule};

const NAMES: [&str; 3] = ["alice", "bob", "carol"];

/// The rules of one trace: a wide one, a narrow one with several limits, and one in the shadow.
fn rules(rng: &mut Rng, algorithm: Algorithm) -> Vec<Rule> {
    let other = *rng.pick(&trace::algorithms());
    let shadow = Rule::builder("shadow").limit("4/2s".parse().unwrap()).shadow(true).algorithm(algorithm);
    vec![
        rule("wide", &["40/10s"], algorithm),
        rule("narrow", &["6/1s", "25/30s"], other),
        shadow.build().unwrap(),
    ]
}

/// Both answers to one question.
fn same<T: PartialEq + std::fmt::Debug>(of_memory: &T, of_file: &T, story: &str) {
    assert_eq!(of_memory, of_file, "{story}");
}

fn trace_of(seed: u64, algorithm: Algorithm) {
    let directory = Directory::new();
    let mut rng = Rng::new(seed);
    let mut rules = rules(&mut rng, algorithm);
    let (memory, mut durable) = (&MemoryStore::new(), open(directory.file()));
    let (mut now_us, mut receipts) = (BOUNDARY_US, Vec::new());
    for step in 0..250 {
        now_us += if rng.one_in(12) { rng.below(12 * SECOND_US) } else { rng.below(SECOND_US / 3) };
        let (when, story) = (When::AtUs(now_us), format!("seed {seed}, {algorithm}, step {step}"));
        let rule = rng.pick(&rules).clone();
        let name = key(NAMES[usize::try_from(rng.below(3)).unwrap()]);
        if rng.one_in(5) {
            durable = open(directory.file());
        }
        match rng.below(12) {
            0 if !receipts.is_empty() => {
                let (of_memory, of_file) = rng.pick(&receipts);
                let refunded = block_on(Store::refund(memory, when, of_memory));
                assert!(refunded.is_ok(), "{story}: {refunded:?}");
                same(&refunded, &block_on(durable.refund(when, of_file)), &story);
            }
            1 if !receipts.is_empty() => {
                let actual = rng.below(12);
                let (of_memory, of_file) = rng.pick(&receipts);
                // Whether the charges of a receipt are of one cost is the same in both, and so is the refusal.
                let settled = block_on(Store::settle(memory, when, of_memory, actual));
                same(&settled, &block_on(durable.settle(when, of_file, actual)), &story);
            }
            2 => {
                let units = rng.between(1, 9);
                let credited = block_on(Store::credit(memory, when, &rule, name, units));
                assert!(credited.is_ok(), "{story}: {credited:?}");
                same(&credited, &block_on(durable.credit(when, &rule, name, units)), &story);
            }
            3 if rng.one_in(3) => {
                let reset = block_on(Store::reset(memory, when, &rule, name));
                same(&reset, &block_on(durable.reset(when, &rule, name)), &story);
            }
            4 if rng.one_in(3) => {
                let rates: &[&str] = if rng.one_in(2) { &["30/10s"] } else { &["50/20s", "90/1m"] };
                let changed = crate::common::rule("wide", rates, *rng.pick(&trace::algorithms()));
                block_on(Store::change(memory, when, &changed)).unwrap();
                block_on(durable.change(when, &changed)).unwrap();
                rules[0] = changed;
            }
            _ => {
                let count = rng.between(1, 3);
                let asks: Vec<_> =
                    (0..count).map(|_| (rng.pick(&rules), *rng.pick(&NAMES), rng.between(1, 3))).collect();
                let request = admission(&asks);
                if rng.one_in(4) {
                    let peeked = block_on(Store::peek(memory, when, &request)).unwrap();
                    same(&peeked, &block_on(durable.peek(when, &request)).unwrap(), &story);
                    continue;
                }
                let of_memory = block_on(Store::check(memory, when, &request)).unwrap();
                let of_file = block_on(durable.check(when, &request)).unwrap();
                same(&of_memory.decision, &of_file.decision, &story);
                same(&of_memory.receipt.is_some(), &of_file.receipt.is_some(), &story);
                let both = of_memory.receipt.zip(of_file.receipt);
                receipts.extend(both.map(|(one, other)| (one.into_owned(), other.into_owned())));
            }
        }
        for rule in &rules {
            for name in NAMES {
                let inspected = block_on(Store::inspect(memory, when, rule, key(name))).unwrap();
                same(&inspected, &block_on(durable.inspect(when, rule, key(name))).unwrap(), &story);
            }
        }
    }
}

#[test]
fn the_durable_store_answers_as_the_one_in_memory() {
    for algorithm in trace::algorithms() {
        for seed in 0..6 {
            trace_of(seed, algorithm);
        }
    }
}
