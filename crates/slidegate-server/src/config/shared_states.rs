//! A template of key names without `{rule}` gives the states of all rules the same names, so only one rule may use such a
//! store. The overrides of that rule may: a key has one state, whichever limits apply to it.

use slidegate::{Rule, RuleSet};

use super::finding::{Finding, Source};
use super::setting::GivenSettings;
use crate::service::Settings;
use crate::text::excerpt;

/// The mistake that several rules use such a store; names the template and the rules.
pub(super) fn find(rules: &RuleSet, given: &GivenSettings, settings: &Settings) -> Option<Finding> {
    let template = settings.store_url().ok()?.template_without_rule()?;
    let text = mistake(&template, rules.iter().map(Rule::name), rules.allows_inline())?;
    let in_url = settings.store.has_parameter("key_template");
    let setting = if in_url { "store" } else { "store.key_template" };
    let source = given.source(setting).unwrap_or_else(|| Source::Name(setting.to_owned()));
    Some(Finding::new(source, &text))
}

/// The text of the mistake, if there is more than one rule. `inline`: whether requests may bring rules of their own.
pub(crate) fn mistake<'r>(
    template: &str,
    names: impl Iterator<Item = &'r str>,
    inline: bool,
) -> Option<String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let (who, remedy) = match names[..] {
        [one, other, ..] => (format!("rules `{one}` and `{other}`"), "or keep one rule"),
        [one] if inline => (
            format!("rule `{one}` and inline rules"),
            "or set inline_rules to false, in a file or by SLIDEGATE_INLINE_RULES",
        ),
        _ => return None,
    };
    let template = excerpt(template);
    Some(format!(
        "key_template: `{template}` has no {{rule}}, so {who} would share their states; write {{rule}} into it, for \
         example `{template}:{{rule}}`, {remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_may_have_the_store_to_itself() {
        let text = |names: &[&'static str], inline| mistake("rlaas:{key}", names.iter().copied(), inline);
        assert_eq!(text(&["a"], false), None);
        assert_eq!(text(&["a", "a"], false), None);
        assert_eq!(text(&[], true), None);
        let two = text(&["b", "a", "c"], false).unwrap();
        assert!(
            two.starts_with("key_template: `rlaas:{key}` has no {rule}, so rules `a` and `b` would share"),
            "{two}"
        );
        let inline = text(&["default"], true).unwrap();
        assert!(
            inline.contains("rule `default` and inline rules") && inline.contains("inline_rules to false"),
            "{inline}"
        );
    }
}
