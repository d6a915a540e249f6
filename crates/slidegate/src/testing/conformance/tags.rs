//! A key with a tag has states of its own.

use super::subject::{BOUNDARY_US, Subject, rule};
use crate::charge::{Admission, Charge};
use crate::key::{Key, OwnedKey};
use crate::store::{Call, Store, Update};
use crate::testing::trace;

const LIMIT: u64 = 3;

/// The same key under two tags and without one, and keys whose text could be taken for one of them.
fn keys() -> Vec<OwnedKey> {
    let tagged =
        [("alice", "t"), ("alice", "u"), ("t", "alice"), ("a", "licet"), ("alice", "}{"), ("%s1", "t")];
    let tagged =
        tagged.map(|(key, tag)| OwnedKey::tagged(key, tag).expect("the keys of the suite are valid"));
    let plain = ["alice", "t", "alice/t", "t/alice", "t}{alice", "{t}{alice}", "alicet", "t:alice"];
    let plain = plain.map(|key| Key::new(key).expect("the keys of the suite are valid").into());
    tagged.into_iter().chain(plain).collect()
}

/// States of a key with a tag, of the same key with another tag or without one, and of keys that look like it are
/// separate: charges, denials, refunds, credits and resets of one leave the others as they were.
pub async fn tags_are_states_of_their_own<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in trace::algorithms() {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["3/10s"], algorithm));
        let (keys, call) = (keys(), Call::at_us(BOUNDARY_US));
        let mut receipts = Vec::new();
        for owned in &keys {
            let charge = [Charge::new(&rule, owned.key(), 2)];
            let decision = subject.0.check(call, &admission(&charge)?).await.map_err(text)?;
            let verdict = decision.binding();
            ensure_eq!((verdict.allowed(), verdict.used()), (true, Some(2)), "{algorithm}: {owned:?} is new");
            ensure_eq!(
                (verdict.key(), verdict.tag()),
                (owned.key().as_str(), owned.key().tag()),
                "{algorithm}"
            );
            let receipt = decision.receipt().ok_or("an admission has no receipt")?;
            ensure_eq!(receipt.charges()[0].key(), owned.key(), "{algorithm}: the receipt names the state");
            receipts.push(receipt);
        }
        // All of them in one admission are as many states.
        let all: Vec<_> = keys.iter().map(|owned| Charge::new(&rule, owned.key(), 1)).collect();
        let together = subject.0.check(call, &admission(&all)?).await.map_err(text)?;
        ensure!(together.allowed(), "{algorithm}: one unit is left of each");
        ensure_eq!(
            together.receipt().map(|receipt| receipt.charges().len()),
            Some(keys.len()),
            "{algorithm}"
        );
        let again = subject.0.check(call, &admission(&all[..1])?).await.map_err(text)?;
        ensure!(!again.allowed(), "{algorithm}: nothing is left");

        let mut promised = vec![LIMIT; keys.len()];
        for index in [0, 7] {
            let refunded = subject.0.update(call, Update::Refund(&receipts[index])).await.map_err(text)?;
            ensure_eq!(
                (refunded.applied, refunded.units),
                (true, 2),
                "{algorithm}: refund of {:?}",
                keys[index]
            );
            promised[index] -= 2;
        }
        let credit = Update::Credit(Charge::new(&rule, keys[1].key(), 1));
        ensure_eq!(subject.0.update(call, credit).await.map_err(text)?.units, 1, "{algorithm}: credit");
        promised[1] -= 1;
        let reset = Update::Reset(&rule, keys[2].key());
        ensure_eq!(subject.0.update(call, reset).await.map_err(text)?.units, LIMIT, "{algorithm}: reset");
        promised[2] = 0;
        for (owned, used) in keys.iter().zip(promised) {
            let usages = subject.0.inspect(call, &rule, owned.key()).await.map_err(text)?;
            ensure_eq!(usages[0].used, used, "{algorithm}: used of {owned:?}");
        }
    }
    Ok(())
}

fn admission<'a>(charges: &[Charge<'a>]) -> Result<Admission<'a>, String> {
    Admission::new(charges).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
