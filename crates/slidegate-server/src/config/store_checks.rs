//! Mistakes of the store that show only beside the other settings and the rules.
//!
//! - A setting that this kind of Redis does not allow, such as a template that puts the keys of a cluster anywhere.
//! - A template of key names without `{rule}`: it gives the states of all rules the same names, so only one rule may use
//!   such a store. Its overrides may: they are other limits of the same state.

use slidegate::{Rule, RuleSet};
use slidegate_stores::StoreUrl;

use super::finding::{ConfigError, Finding, Source};
use super::setting::GivenSettings;
use crate::service::{STORE_FIELD, Settings};
use crate::text::excerpt;

/// The mistakes of a server with these rules and settings.
pub(super) fn check(rules: &RuleSet, given: &GivenSettings, settings: &Settings) -> Result<(), ConfigError> {
    let mut mistakes = parameter_mistakes(&settings.store, given, settings);
    mistakes.extend(shared_states(rules, given, settings));
    if mistakes.is_empty() { Ok(()) } else { Err(ConfigError { mistakes }) }
}

/// The settings of a Redis that the one at `url` does not allow.
pub(super) fn parameter_mistakes(url: &StoreUrl, given: &GivenSettings, settings: &Settings) -> Vec<Finding> {
    let mistake = |(name, text): (&&str, &String)| {
        let error = url.clone().parameter_unless_given(name, text).err()?.to_string();
        let setting = format!("{STORE_FIELD}{name}");
        let text = error.strip_prefix("store: ").unwrap_or(&error);
        let text = text.strip_prefix(&format!("{name}: ")).unwrap_or(text);
        let source = given.source(&setting).unwrap_or_else(|| Source::Name("store".to_owned()));
        Some(Finding::new(source, &format!("{setting}: {text}")))
    };
    settings.store_parameters.iter().filter_map(mistake).collect()
}

/// The mistake that several rules share their states; names the template and the rules.
fn shared_states(rules: &RuleSet, given: &GivenSettings, settings: &Settings) -> Option<Finding> {
    let template = settings.store_url().ok()?.template_without_rule()?;
    let text = shared_states_mistake(&template, rules.iter().map(Rule::name), rules.allows_inline())?;
    let in_url = settings.store.has_parameter("key_template");
    let setting = if in_url { "store" } else { "store.key_template" };
    let source = given.source(setting).unwrap_or_else(|| Source::Name(setting.to_owned()));
    Some(Finding::new(source, &text))
}

/// The text of that mistake, if there is more than one rule. `inline`: whether requests may bring rules of their own.
pub(crate) fn shared_states_mistake<'r>(
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
        let text = |names: &[&'static str], inline| {
            shared_states_mistake("rlaas:{key}", names.iter().copied(), inline)
        };
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
