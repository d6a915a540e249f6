//! The same requests to the store in memory, to a durable store by its asynchronous verbs, and to another by its plain
//! verbs: the answers are equal, field by field, although the durable stores are often closed and opened again.

use crate::common::*;
use slidegate::store::{Call, MemoryStore, Store, Update};
use slidegate::testing::{Rng, block_on, search_size, trace};
use slidegate::{Algorithm, Charge, Decision, Receipt, Rule, Verdict};

const NAMES: [&str; 3] = ["alice", "bob", "carol"];

/// The rules of one trace: a wide rule, a narrow one with several limits, and a shadow rule.
fn rules(rng: &mut Rng, algorithm: Algorithm) -> Vec<Rule> {
    let other = *rng.pick(&trace::algorithms());
    let shadow = Rule::builder("shadow").limit("4/2s".parse().unwrap()).shadow(true).algorithm(algorithm);
    vec![
        rule("wide", &["40/10s"], algorithm),
        rule("narrow", &["6/1s", "25/30s"], other),
        shadow.build().unwrap(),
    ]
}

/// Compares the answers of memory, of the asynchronous verb and of the plain one.
fn assert_same<T: PartialEq + std::fmt::Debug>(answers: &[T; 3], story: &str) {
    assert_eq!(answers[0], answers[1], "{story}: in memory and on the file");
    assert_eq!(answers[1], answers[2], "{story}: asynchronous and plain");
}

fn same_decisions(decisions: &[Decision<'_>; 3], story: &str) {
    let verdicts = |decision| Decision::verdicts(decision).collect::<Vec<Verdict<'_>>>();
    assert_same(&decisions.each_ref().map(verdicts), story);
    assert_same(&decisions.each_ref().map(Decision::binding), story);
    assert_same(&decisions.each_ref().map(Decision::is_charged), story);
    // Ids are random; the rest of a receipt is equal on two files.
    let charges = |decision: &Decision<'_>| decision.receipt().map(|receipt| receipt.charges().to_vec());
    assert_eq!(charges(&decisions[1]), charges(&decisions[2]), "{story}: asynchronous and plain");
}

fn trace_of(seed: u64, algorithm: Algorithm) {
    let directory = Directory::new();
    let mut rng = Rng::new(seed);
    let mut rules = rules(&mut rng, algorithm);
    let open_both = || (open(directory.file()), open(directory.path().join("plain.db")));
    let (memory, (mut durable, mut plain)) = (&MemoryStore::new(), open_both());
    let (mut now_us, mut receipts) = (BOUNDARY_US, Vec::<[Receipt; 3]>::new());
    for step in 0..250 {
        now_us += if rng.one_in(12) { rng.below(12 * SECOND_US) } else { rng.below(SECOND_US / 3) };
        let (call, story) = (Call::at_us(now_us), format!("seed {seed}, {algorithm}, step {step}"));
        let blocking = call.blocking();
        let rule = rng.pick(&rules).clone();
        let name = key(NAMES[usize::try_from(rng.below(3)).unwrap()]);
        if rng.one_in(5) {
            (durable, plain) = open_both();
        }
        let update = |updates: [Update<'_>; 3]| {
            [
                block_on(memory.update(call, updates[0])),
                block_on(durable.update(call, updates[1])),
                block_on(plain.update(blocking, updates[2])),
            ]
        };
        match rng.below(12) {
            0 if !receipts.is_empty() => {
                let refunded = update(rng.pick(&receipts).each_ref().map(Update::Refund));
                assert!(refunded[0].is_ok(), "{story}: {refunded:?}");
                assert_same(&refunded, &story);
            }
            1 if !receipts.is_empty() => {
                let actual = rng.below(12);
                // Receipts whose charges have different costs are refused by all stores.
                let receipts = rng.pick(&receipts).each_ref();
                assert_same(&update(receipts.map(|receipt| Update::Settle(receipt, actual))), &story);
            }
            2 => {
                let credited = update([Update::Credit(Charge::new(&rule, name, rng.between(1, 9))); 3]);
                assert!(credited[0].is_ok(), "{story}: {credited:?}");
                assert_same(&credited, &story);
            }
            3 if rng.one_in(3) => assert_same(&update([Update::Reset(&rule, name); 3]), &story),
            4 if rng.one_in(3) => {
                let rates: &[&str] = if rng.one_in(2) { &["30/10s"] } else { &["50/20s", "90/1m"] };
                let changed = crate::common::rule("wide", rates, *rng.pick(&trace::algorithms()));
                block_on(Store::change(memory, call, &changed)).unwrap();
                block_on(durable.change(call, &changed)).unwrap();
                block_on(Store::change(&plain, blocking, &changed)).unwrap();
                rules[0] = changed;
            }
            _ => {
                let count = rng.between(1, 3);
                let asks: Vec<_> =
                    (0..count).map(|_| (rng.pick(&rules), *rng.pick(&NAMES), rng.between(1, 3))).collect();
                let request = admission(&asks);
                if rng.one_in(4) {
                    let peeked = [
                        block_on(Store::peek(memory, call, &request)),
                        block_on(durable.peek(call, &request)),
                        block_on(Store::peek(&plain, blocking, &request)),
                    ];
                    same_decisions(&peeked.map(Result::unwrap), &story);
                    continue;
                }
                let decided = [
                    block_on(Store::check(memory, call, &request)),
                    block_on(durable.check(call, &request)),
                    block_on(Store::check(&plain, blocking, &request)),
                ];
                let decided = decided.map(Result::unwrap);
                same_decisions(&decided, &story);
                if decided[0].is_charged() {
                    receipts.push(decided.map(|decision| decision.receipt().unwrap()));
                }
            }
        }
        for rule in &rules {
            for name in NAMES.map(key) {
                let inspected = [
                    block_on(Store::inspect(memory, call, rule, name)),
                    block_on(durable.inspect(call, rule, name)),
                    block_on(Store::inspect(&plain, blocking, rule, name)),
                ];
                assert_same(&inspected.map(Result::unwrap), &story);
            }
        }
    }
}

fn answers_as_memory(name: &str) {
    for algorithm in trace::algorithms().into_iter().filter(|algorithm| algorithm.name() == name) {
        for seed in 0..search_size(2) {
            trace_of(seed, algorithm);
        }
    }
}

mod plain_and_asynchronous_verbs_answer_as_the_store_in_memory {
    crate::common::test_each_algorithm!(super::answers_as_memory);
}
