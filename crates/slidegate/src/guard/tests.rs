use super::*;
use crate::charge::Charge;
use crate::rule::Rule;
use crate::store::MemoryStore;
use crate::time::ManualClock;

fn rule(name: &str, policy: OnStoreError, shadow: bool) -> Rule {
    let rule = Rule::builder(name).limit("5/1m".parse().unwrap()).shadow(shadow);
    rule.on_store_error(policy).build().unwrap()
}

#[test]
fn the_policy_of_the_call_wins_and_then_the_strictest_rule() {
    let allow = rule("allow", OnStoreError::Allow, false);
    let deny = rule("deny", OnStoreError::Deny, false);
    let shadow = rule("shadow", OnStoreError::Deny, true);
    let guard = Guard::new(&MemoryStore::new(), GuardOptions::default());
    let clock = ManualClock::at_us(1_000);
    let call = |policy| GuardedCall { clock: &clock, at_us: None, policy, deadline: None, probes: false };
    let failed = || Err(StoreError::Unavailable { why: "connection refused".into() });
    for (rules, passes) in [
        (&[&allow][..], true),
        (&[&deny], false),
        (&[&allow, &deny], false),
        (&[&deny, &allow], false),
        (&[&allow, &shadow], true),
        (&[&shadow], true),
    ] {
        let charges: Vec<Charge<'_>> = rules.iter().map(|rule| rule.charge("alice", 1).unwrap()).collect();
        let admission = Admission::new(&charges).unwrap();
        let answer = |policy| guard.answer(call(policy), &admission, None, failed(), true);
        assert_eq!(answer(None).is_ok(), passes, "{rules:?}");
        let degraded = answer(Some(OnStoreError::Allow)).unwrap();
        assert!(degraded.allowed() && degraded.degraded() && degraded.receipt().is_none());
        assert_eq!((degraded.used(), degraded.remaining(), degraded.reset_after()), (None, None, None));
        assert_eq!(degraded.verdicts().count(), rules.len());
        assert!(answer(Some(OnStoreError::Deny)).is_err());
    }
    assert_eq!(guard.counts(), (18, 9));
}
