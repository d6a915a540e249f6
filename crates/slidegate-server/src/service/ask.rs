//! What a request asks for, and what the rules make of it.

use slidegate::charge::CHARGES_MAX;
use slidegate::rule::OnStoreError;
use slidegate::{Admission, Charge, ChargeError, Key, Rule};

use super::failure::{Failure, Kind};
use crate::rules::{Resolved, Rules};
use crate::text::shown;

/// So many units of a rule for a key, as asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) rule: RuleAsked<'a>,
    pub(crate) key: &'a str,
    pub(crate) units: u64,
}

/// The rule of an ask.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RuleAsked<'a> {
    Named(&'a str),
    /// Came with the request.
    Inline(&'a Rule),
}

impl<'a> RuleAsked<'a> {
    /// The name of the rule.
    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Named(name) => name,
            Self::Inline(rule) => rule.name(),
        }
    }
}

/// What the caller says about a store that does not answer; it wins over the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Allow,
    Deny,
}

impl<'a> Ask<'a> {
    /// What the rules make of it.
    pub(super) fn resolve(&self, rules: &'a Rules) -> Result<(Resolved<'a>, Key<'a>), Failure> {
        let resolved = match self.rule {
            RuleAsked::Named(name) => rules.resolve(name, self.key)?,
            RuleAsked::Inline(rule) => {
                rules.check_inline()?;
                Resolved::Limited(rule)
            }
        };
        Ok((resolved, Key::new(self.key)?))
    }

    /// The charge to make; `None` where an override lets the key pass for free.
    pub(super) fn charge(&self, rules: &'a Rules) -> Result<Result<Charge<'a>, &'a Rule>, Failure> {
        match self.resolve(rules)? {
            (Resolved::Limited(rule), key) => Ok(Ok(Charge { rule, key, cost: self.units })),
            (Resolved::Unlimited(rule), _) if self.units == 0 => {
                Err(ChargeError::Zero { rule: rule.name().to_owned() }.into())
            }
            (Resolved::Unlimited(rule), _) => Ok(Err(rule)),
            (Resolved::Blocked(rule), _) => {
                let (key, rule) = (shown(self.key), rule.name());
                let text =
                    format!("key: `{key}` is blocked by an override of rule `{rule}`; remove the override");
                Err(Failure::new(Kind::Blocked, text))
            }
        }
    }
}

/// The charges of a request that are made, as one admission.
#[derive(Debug)]
pub(super) struct Resolution<'a> {
    /// `None` if every charge is free.
    pub(super) admission: Option<Admission<'a>>,
    /// The rule of the first charge that is free.
    pub(super) free: Option<&'a Rule>,
    /// For every charge whether it is free; empty if none is.
    pub(super) is_free: Vec<bool>,
}

impl<'a> Resolution<'a> {
    pub(super) fn new(rules: &'a Rules, asks: &[Ask<'a>]) -> Result<Self, Failure> {
        if let [ask] = asks {
            return Ok(match ask.charge(rules)? {
                Ok(charge) => {
                    Self { admission: Some(Admission::new(&[charge])?), free: None, is_free: Vec::new() }
                }
                Err(rule) => Self { admission: None, free: Some(rule), is_free: vec![true] },
            });
        }
        Self::of_several(rules, asks)
    }

    fn of_several(rules: &'a Rules, asks: &[Ask<'a>]) -> Result<Self, Failure> {
        if asks.len() > CHARGES_MAX {
            return Err(ChargeError::Count { count: asks.len() }.into());
        }
        let mut charges = Vec::with_capacity(asks.len());
        let mut is_free = Vec::new();
        let mut free = None;
        for (index, ask) in asks.iter().enumerate() {
            match ask.charge(rules).map_err(|failure| failure.at(Some(index)))? {
                Ok(charge) => charges.push(charge),
                Err(rule) => {
                    free.get_or_insert(rule);
                    is_free.resize(asks.len(), false);
                    is_free[index] = true;
                }
            }
        }
        if charges.is_empty() && !asks.is_empty() {
            return Ok(Self { admission: None, free, is_free });
        }
        let admission = Admission::new(&charges).map_err(|error| {
            let guilty = |ask: &Ask<'_>| match &error {
                ChargeError::Zero { .. } => ask.units == 0,
                ChargeError::Never { rule, limit, .. } => ask.rule.name() == rule && ask.units > *limit,
                _ => false,
            };
            let at = asks.iter().position(guilty);
            Failure::from(error.clone()).at(at)
        })?;
        Ok(Self { admission: Some(admission), free, is_free })
    }
}

/// Whether a request passes while the store does not answer: by the caller's word, else by the strictest rule.
/// Shadow rules take no part, unless there are no others.
pub(crate) fn passes_without_store(policy: Option<Policy>, admission: &Admission<'_>) -> bool {
    if let Some(policy) = policy {
        return policy == Policy::Allow;
    }
    let mut enforced = admission.asks().iter().filter(|ask| !ask.rule.shadow());
    enforced.all(|ask| ask.rule.on_store_error() == OnStoreError::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, policy: OnStoreError, shadow: bool) -> Rule {
        let rule = Rule::builder(name).limit("5/1m".parse().unwrap()).shadow(shadow);
        rule.on_store_error(policy).build().unwrap()
    }

    #[test]
    fn the_caller_s_word_wins_and_then_the_strictest_rule() {
        let allow = rule("allow", OnStoreError::Allow, false);
        let deny = rule("deny", OnStoreError::Deny, false);
        let local = rule("local", OnStoreError::Local("0.25".parse().unwrap()), false);
        let shadow = rule("shadow", OnStoreError::Deny, true);
        let key = Key::new("alice").unwrap();
        for (rules, passes) in [
            (&[&allow][..], true),
            (&[&deny], false),
            (&[&local], false),
            (&[&allow, &deny], false),
            (&[&deny, &allow], false),
            (&[&allow, &shadow], true),
            (&[&shadow], true),
        ] {
            let charges: Vec<_> = rules.iter().map(|&rule| Charge { rule, key, cost: 1 }).collect();
            let admission = Admission::new(&charges).unwrap();
            assert_eq!(passes_without_store(None, &admission), passes, "{rules:?}");
            assert!(passes_without_store(Some(Policy::Allow), &admission));
            assert!(!passes_without_store(Some(Policy::Deny), &admission));
        }
    }

    #[test]
    fn mistakes_name_the_charge() {
        let rules: Rules = [rule("api", OnStoreError::Deny, false)].into_iter().collect();
        let ask = |rule, key, units| Ask { rule: RuleAsked::Named(rule), key, units };
        let failure = |asks: &[Ask<'static>]| Resolution::new(&rules, asks).unwrap_err();
        let good = ask("api", "alice", 1);
        for (bad, kind) in [
            (ask("apy", "alice", 1), Kind::UnknownRule),
            (ask("api", "", 1), Kind::Malformed),
            (ask("api", "bob", 0), Kind::Malformed),
            (ask("api", "bob", 6), Kind::Never),
        ] {
            assert_eq!((failure(&[bad]).kind, failure(&[bad]).at), (kind, None));
            assert_eq!((failure(&[good, bad]).kind, failure(&[good, bad]).at), (kind, Some(1)));
        }
        assert!(failure(&[]).text.starts_with("checks: 0 given"));
        let forbidding = Rules::default().forbidding_inline("rules.yaml");
        let inline = Rule::inline("5/1m".parse().unwrap(), slidegate::Algorithm::default());
        let ask = [Ask { rule: RuleAsked::Inline(&inline), key: "alice", units: 1 }];
        assert_eq!(Resolution::new(&forbidding, &ask).unwrap_err().kind, Kind::InlineForbidden);
    }
}
