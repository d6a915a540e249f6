//! Rules by name, overrides and inline rules.

use super::super::inline_table::INLINE_RULES_KEPT_MAX;
use super::*;
use crate::key::KeyError;
use crate::rule::Algorithm;

fn rule(name: &str, rate: &str) -> Rule {
    Rule::builder(name).limit(rate.parse().unwrap()).build().unwrap()
}

fn error(rules: &RuleSet, name: &str) -> String {
    rules.get(name).unwrap_err().to_string()
}

#[test]
fn the_last_rule_of_a_name_is_in_force() {
    let mut rules: RuleSet = [rule("api", "5/1m"), rule("costly", "1/1h")].into_iter().collect();
    rules.replace(rule("api", "7/1m"));
    assert_eq!(rules.get("api").unwrap().cost_max(), 7);
    assert_eq!(rules.get("costly").unwrap().cost_max(), 1);
}

#[test]
fn overrides_replace_the_rule_for_their_keys() {
    let mut overrides = Overrides::default();
    overrides.add("alice", Override::Limited(rule("api", "600/1m"))).unwrap();
    overrides.add("ci-*", Override::Unlimited).unwrap();
    overrides.add("mallory", Override::Blocked).unwrap();
    let mut rules = RuleSet::new();
    rules.insert_with(rule("api", "60/1m"), overrides);
    let [alice, bob, ci, mallory] =
        ["alice", "bob", "ci-7", "mallory"].map(|key| ChargeRequest::named("api", key, 2));
    let limit = |rules: &RuleSet, request: &ChargeRequest<'_>| match rules.resolve(request).unwrap() {
        Resolved::Limited(charge) => (charge.key.as_str().to_owned(), charge.rule.cost_max(), charge.cost),
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(&rules, &alice), ("alice".into(), 600, 2));
    assert_eq!(limit(&rules, &bob), ("bob".into(), 60, 2));
    assert!(
        matches!(rules.resolve(&ci).unwrap(), Resolved::Unlimited(charge) if charge.rule.name() == "api")
    );
    assert!(
        matches!(rules.resolve(&mallory).unwrap(), Resolved::Blocked(charge) if charge.rule.name() == "api")
    );
    assert!(rules.resolve(&ChargeRequest::named("apy", "alice", 1)).is_err());
    assert_eq!(rules.overridden_by("api", "ci-7"), Some("ci-*"));
    assert_eq!((rules.overridden_by("api", "bob"), rules.overridden_by("apy", "ci-7")), (None, None));

    rules.replace(rule("api", "70/1m"));
    assert_eq!(limit(&rules, &bob).1, 70);
    assert!(matches!(rules.resolve(&mallory).unwrap(), Resolved::Blocked(_)), "overrides stay");
    rules.insert(rule("api", "80/1m"));
    assert_eq!(limit(&rules, &mallory).1, 80, "a new rule has no overrides");
}

#[test]
fn a_bad_key_does_not_resolve() {
    let rules: RuleSet = [rule("api", "5/1m")].into_iter().collect();
    let error = |request: &ChargeRequest<'_>| rules.resolve(request).unwrap_err();
    assert_eq!(error(&ChargeRequest::named("api", "", 1)), ResolveError::Key(KeyError::Empty));
    let inline = ChargeRequest::inline("5/1m".parse().unwrap(), Algorithm::Gcra, "a\nb", 1);
    assert!(error(&inline).to_string().starts_with("key: has the control character"));
}

#[test]
fn an_inline_rule_is_cached_by_the_set_or_else_by_its_request() {
    let rules = RuleSet::new();
    let inline = |limit: usize| {
        let rate = format!("{limit}/1m").parse().unwrap();
        ChargeRequest::inline(rate, Algorithm::SlidingLog, "alice", 1)
    };
    let (first, again) = (inline(5), inline(5));
    let rule = |request| -> *const Rule { rules.resolve(request).unwrap().rule() };
    assert_eq!(rule(&first), rule(&again));
    for limit in 1..=4 * INLINE_RULES_KEPT_MAX {
        let request = inline(limit);
        let Resolved::Limited(charge) = rules.resolve(&request).unwrap() else { panic!("{limit}") };
        assert_eq!((charge.rule.cost_max(), charge.rule.name()), (limit as u64, "sliding-log/60s"));
    }
    let without_room = inline(5 * INLINE_RULES_KEPT_MAX);
    assert_eq!(rule(&without_room), rule(&without_room), "made once per request");
}

#[test]
fn an_unknown_rule_comes_with_a_remedy() {
    let rules: RuleSet = [rule("api", "5/1m"), rule("login", "5/1m")].into_iter().collect();
    assert_eq!(error(&rules, "apy"), "rule: `apy` is unknown; did you mean `api`?");
    assert_eq!(error(&rules, "search"), "rule: `search` is unknown; choose from: api, login");
    assert!(error(&RuleSet::default(), "api").ends_with("give one, or write the rule inline"));
}

#[test]
fn many_rules_are_neither_listed_nor_searched() {
    let rules = |count| -> RuleSet { (0..count).map(|n| rule(&format!("rule-{n:04}"), "5/1m")).collect() };
    let listed = "choose from: rule-0000, rule-0001, rule-0002, rule-0003, rule-0004";
    assert_eq!(error(&rules(5), "x"), format!("rule: `x` is unknown; {listed}"));
    assert_eq!(error(&rules(6), "x"), format!("rule: `x` is unknown; {listed} and 1 more"));
    assert!(error(&rules(SEARCHED_MAX), "rule-077").ends_with("did you mean `rule-0077`?"));
    assert!(error(&rules(1_001), "rule-077").ends_with("and 996 more"));
}

#[test]
fn a_file_may_forbid_inline_rules() {
    let mut rules: RuleSet = [rule("api", "5/1m")].into_iter().collect();
    let request = ChargeRequest::inline("5/1m".parse().unwrap(), Algorithm::SlidingLog, "alice", 1);
    assert!(rules.allows_inline() && rules.resolve(&request).is_ok());
    rules.forbid_inline("rules.yaml");
    assert_eq!((rules.allows_inline(), rules.inline_forbidden_by()), (false, Some("rules.yaml")));
    let error = rules.resolve(&request).unwrap_err().to_string();
    assert!(error.ends_with("add `inline_rules: true` to rules.yaml or name a rule of it"), "{error}");
    rules.allow_inline();
    assert!(rules.resolve(&request).is_ok());
}
