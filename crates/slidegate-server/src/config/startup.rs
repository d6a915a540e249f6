//! What a server starts with: flags, environment and file read together, so that one run names every mistake.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use slidegate::{Algorithm, Rate, Rule, RuleSet};

use super::environment::Environment;
use super::file::Config;
use super::layer::Layer;
use super::mistake::{ConfigError, Found, Source};
use super::small::DEFAULT_RULE;
use super::{setting, warning};
use crate::service::Settings;

/// What a server starts with.
#[derive(Debug)]
pub(crate) struct Startup {
    pub(crate) settings: Settings,
    pub(crate) rules: RuleSet,
    /// What is legal but unwise.
    pub(crate) warnings: Vec<Found>,
    /// The file that was read, for a [`FileReloader`](crate::reload::FileReloader); without one there is nothing to reload.
    pub(crate) file: Option<StartupFile>,
}

/// The configuration file of a server, and what it was read with.
#[derive(Debug)]
pub(crate) struct StartupFile {
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
    /// What flags and environment say, which goes over it.
    pub(crate) over: Layer,
    pub(crate) settings: Settings,
}

impl Startup {
    /// Reads everything, or says everything that is wrong. `flags` are settings by name (`http`, `bounds.idle_time`)
    /// with their texts; a file named by a flag goes over one named by the environment.
    pub(crate) fn read(
        file: Option<&Path>,
        flags: &[(&str, Option<&str>)],
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut mistakes = Vec::new();
        let flags = of_flags(flags, &mut mistakes);
        let environment = good(Environment::read(variables), &mut mistakes).unwrap_or_default();
        let path = file.map(Path::to_owned).or(environment.config);
        let config = path.as_ref().and_then(|path| good(Config::load(path), &mut mistakes));
        if !mistakes.is_empty() {
            return Err(ConfigError::of(mistakes));
        }
        let of_file = config.as_ref().map(Config::layer).unwrap_or_default();
        let over = flags.over(environment.layer);
        let layer = over.clone().over(of_file);
        let settings = Settings::layered(layer.clone(), Layer::default(), Layer::default());
        let mut warnings = environment.warnings;
        let Some((path, config)) = path.zip(config) else {
            warnings.append(&mut warning::find("", &[], &layer, &settings));
            let rules = without_file(&layer);
            return Ok(Self { settings, rules, warnings, file: None });
        };
        warnings.append(&mut config.warnings(&layer, &settings));
        let rules = config.rules_under(&layer);
        let file = StartupFile { path, config, over, settings: settings.clone() };
        Ok(Self { settings, rules, warnings, file: Some(file) })
    }
}

/// Without a file: rule `default`, five a minute, so that the small-service route answers at once.
fn without_file(layer: &Layer) -> RuleSet {
    let rate = Rate::new(5, Duration::from_secs(60));
    let rule = rate.ok().and_then(|rate| {
        Rule::builder(DEFAULT_RULE).limit(rate).algorithm(Algorithm::default()).build().ok()
    });
    let mut rules: RuleSet = rule.into_iter().collect();
    if let Some(given) = layer.inline_rules.as_ref().filter(|given| !given.value) {
        rules.forbid_inline(&given.source.to_string());
    }
    rules
}

fn of_flags(flags: &[(&str, Option<&str>)], mistakes: &mut Vec<Found>) -> Layer {
    let mut layer = Layer::default();
    for (setting, text) in flags {
        let Some(text) = text else { continue };
        let source = Source::Flag(format!("--{}", setting.replace(['.', '_'], "-")));
        let texts = setting::texts(setting, text);
        if let Err((_, text)) = setting::set(&mut layer, setting, &texts, &source) {
            mistakes.push(Found::new(source, &text));
        }
    }
    layer
}

fn good<T>(read: Result<T, ConfigError>, mistakes: &mut Vec<Found>) -> Option<T> {
    read.map_err(|error| mistakes.extend(error.mistakes().iter().cloned())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(given: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn without_anything_there_is_a_default() {
        let started = Startup::read(None, &[("http", None)], []).unwrap();
        assert_eq!(started.settings.http.to_string(), "127.0.0.1:8080");
        let rule = started.rules.get("default").unwrap();
        assert_eq!((rule.cost_max(), rule.limits()[0].window_us()), (5, 60_000_000));
        assert!(started.rules.allows_inline() && started.file.is_none());
        assert_eq!(started.warnings, []);
    }

    #[test]
    fn mistakes_of_all_sources_are_named_at_once() {
        let missing = Path::new("no-such-file.yaml");
        let environment = variables(&[("SLIDEGATE_DEADLINE", "soon")]);
        let flags = [("http", Some("x")), ("memory_budget", Some("y"))];
        let error = Startup::read(Some(missing), &flags, environment).unwrap_err().to_string();
        let starts = [
            "--http: `x` ",
            "--memory-budget: `y` ",
            "SLIDEGATE_DEADLINE: `soon` ",
            "no-such-file.yaml: cannot",
        ];
        assert_eq!(error.lines().count(), starts.len(), "{error}");
        for (line, start) in error.lines().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }

    #[test]
    fn a_flag_goes_over_a_variable_and_both_are_warned_about_by_name() {
        let environment = variables(&[("SLIDEGATE_HTTP", "0.0.0.0:1"), ("SLIDEGATE_HOST", "x")]);
        let started = Startup::read(None, &[("http", Some("0.0.0.0:2"))], environment).unwrap();
        assert_eq!(started.settings.http.port(), 2);
        let warnings: Vec<String> = started.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings[0].ends_with("did you mean `SLIDEGATE_HOSTS`?"), "{warnings:?}");
        assert!(warnings[1].starts_with("--http: http: anybody who reaches 0.0.0.0:2 may"), "{warnings:?}");
        let forbidden = Startup::read(None, &[], variables(&[("SLIDEGATE_INLINE_RULES", "false")])).unwrap();
        assert!(!forbidden.rules.allows_inline());
    }
}
