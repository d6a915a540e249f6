//! The settings and rules that a server starts with. Flags take precedence over environment variables
//! (`SLIDEGATE_HTTP`), then the file, then the defaults. All are read together, so that one run reports every mistake.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use slidegate::{Rate, Rule, RuleSet};

use super::file::Config;
use super::finding::{ConfigError, Finding, Source};
use super::rate_limiter_form::DEFAULT_RULE;
use super::setting::{GivenSettings, LISTS, SETTINGS, variable};
use super::{store_checks, warning};
use crate::service::Settings;
use crate::text::{did_you_mean, excerpt};

/// The prefix of slidegate's environment variables.
const PREFIX: &str = "SLIDEGATE_";
/// The variable that names the configuration file.
const CONFIG: &str = "SLIDEGATE_CONFIG";

/// The settings and rules that a server starts with.
#[derive(Debug)]
pub(crate) struct Startup {
    pub(crate) settings: Settings,
    pub(crate) rules: RuleSet,
    /// Warnings: legal but unwise rules and settings.
    pub(crate) warnings: Vec<Finding>,
    /// The configuration file, if any, for a [`FileReloader`](crate::reload::FileReloader).
    pub(crate) file: Option<StartupFile>,
}

/// The configuration file of a server at its start.
#[derive(Debug)]
pub(crate) struct StartupFile {
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
    /// The settings given by flags and environment, which take precedence over the file.
    pub(crate) flags_and_env: GivenSettings,
    pub(crate) settings: Settings,
}

impl Startup {
    /// Reads all sources, or returns all mistakes. `flags` are settings by name (`http`, `bounds.idle_time`) with their
    /// texts; a `file` given by flag takes precedence over `SLIDEGATE_CONFIG`.
    pub(crate) fn read(
        file: Option<&Path>,
        flags: &[(&'static str, Option<&str>)],
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let Environment { config, texts, mut warnings } = Environment::of(variables);
        let path = file.map(Path::to_owned).or(config);
        let (config, of_file) = match path.as_deref().map(Config::load).transpose() {
            Ok(config) => (config, Vec::new()),
            Err(error) => (None, error.mistakes),
        };
        let mut settings = config.as_ref().map_or_else(Settings::default, |config| config.settings.clone());
        let mut flags_and_env = GivenSettings::default();
        let of_environment = give(&mut flags_and_env, &mut settings, texts);
        let flags = flags.iter().filter_map(|(setting, text)| {
            let name = format!("--{}", setting.replace(['.', '_'], "-"));
            Some((*setting, OsString::from((*text)?), Source::Name(name)))
        });
        let of_flags = give(&mut flags_and_env, &mut settings, flags);
        let mistakes = [of_flags, of_environment, of_file].concat();
        if !mistakes.is_empty() {
            return Err(ConfigError { mistakes });
        }
        let Some((path, config)) = path.zip(config) else {
            let rules = without_file(&flags_and_env);
            store_checks::check(&rules, &flags_and_env, &settings)?;
            warnings.append(&mut warning::find("", &[], &flags_and_env, &settings));
            return Ok(Self { rules, settings, warnings, file: None });
        };
        config.check_together(&flags_and_env, &settings)?;
        warnings.append(&mut config.warnings(&flags_and_env, &settings));
        let rules = config.rules(&flags_and_env);
        let file = StartupFile { path, config, flags_and_env, settings: settings.clone() };
        Ok(Self { settings, rules, warnings, file: Some(file) })
    }
}

/// A setting given by a flag or a variable: name, text, source.
pub(super) type GivenText = (&'static str, OsString, Source);

/// Reads texts into `settings`; returns the mistakes.
pub(super) fn give(
    given: &mut GivenSettings,
    settings: &mut Settings,
    texts: impl IntoIterator<Item = GivenText>,
) -> Vec<Finding> {
    let mut mistakes = Vec::new();
    for (setting, text, source) in texts {
        let read = text.into_string().map_err(|_| "is not UTF-8; write it as UTF-8".to_owned());
        let read = read.and_then(|text| {
            let texts = if LISTS.contains(&setting) {
                text.split(',').map(|part| part.trim().to_owned()).collect()
            } else {
                vec![text]
            };
            given.set(settings, setting, texts, &source).map_err(|(_, text)| text)
        });
        mistakes.extend(read.err().map(|text| Finding::new(source, &text)));
    }
    mistakes
}

/// The environment variables of slidegate. An empty variable counts as unset.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// The configuration file.
    config: Option<PathBuf>,
    pub(super) texts: Vec<GivenText>,
    /// Unknown variables with the prefix [`PREFIX`].
    warnings: Vec<Finding>,
}

impl Environment {
    pub(super) fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut read = Self::default();
        let ours = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut ours: Vec<(String, OsString)> =
            ours.filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty()).collect();
        ours.sort();
        let known = SETTINGS.map(|(setting, _)| variable(setting));
        for (name, value) in ours {
            if name == CONFIG {
                read.config = Some(value.into());
            } else if let Some(index) = known.iter().position(|known| *known == name) {
                read.texts.push((SETTINGS[index].0, value, Source::Name(name)));
            } else {
                let known: Vec<&str> = known.iter().map(String::as_str).chain([CONFIG]).collect();
                let remedy = did_you_mean(&name, &known);
                let text = format!("is not a setting of `slidegate serve` and has no effect here; {remedy}");
                read.warnings.push(Finding::new(Source::Name(excerpt(&name)), &text));
            }
        }
        read
    }
}

/// The rules without a file: rule `default`, five per minute, so that the small-service route works at once.
fn without_file(given: &GivenSettings) -> RuleSet {
    let rate = Rate::new(5, Duration::from_secs(60)).ok();
    let rule = rate.and_then(|rate| Rule::builder(DEFAULT_RULE).limit(rate).build().ok());
    let mut rules: RuleSet = rule.into_iter().collect();
    if let (Some(false), Some(source)) = (given.inline_rules(), given.source("inline_rules")) {
        rules.forbid_inline(&source.to_string());
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::HeaderSet;

    fn variables(given: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn without_file_flags_and_variables_there_is_a_default_rule() {
        let started = Startup::read(None, &[("http", None)], []).unwrap();
        assert_eq!(started.settings.http.to_string(), "127.0.0.1:8080");
        let rule = started.rules.get("default").unwrap();
        assert_eq!((rule.cost_max(), rule.limits()[0].window_us()), (5, 60_000_000));
        assert!(started.rules.allows_inline() && started.file.is_none());
        assert_eq!(started.warnings, []);
    }

    #[test]
    fn mistakes_of_all_sources_are_reported_at_once() {
        let missing = Path::new("no-such-file.yaml");
        let environment = variables(&[("SLIDEGATE_HTTP", "8080"), ("SLIDEGATE_DEADLINE", "50")]);
        let flags = [("http", Some("x")), ("memory_budget", Some("y"))];
        let error = Startup::read(Some(missing), &flags, environment).unwrap_err().to_string();
        let starts = [
            "--http: `x` ",
            "--memory-budget: `y` ",
            "SLIDEGATE_DEADLINE: `50` is not a duration; ",
            "SLIDEGATE_HTTP: `8080` is not an address and a port; ",
            "no-such-file.yaml: cannot",
        ];
        assert_eq!(error.lines().count(), starts.len(), "{error}");
        for (line, start) in error.lines().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }

    #[test]
    fn a_flag_takes_precedence_and_warnings_name_their_source() {
        let environment = variables(&[
            ("SLIDEGATE_HTTP", "0.0.0.0:1"),
            ("SLIDEGATE_HOST", "x"),
            ("SLIDEGATE_COLOUR_OF_BIKESHED", "x"),
        ]);
        let started = Startup::read(None, &[("http", Some("0.0.0.0:2"))], environment).unwrap();
        assert_eq!(started.settings.http.port(), 2);
        let warnings: Vec<String> = started.warnings.iter().map(ToString::to_string).collect();
        assert!(
            warnings[0].contains("SLIDEGATE_COLOUR_OF_BIKESHED: is not a setting of `slidegate serve`"),
            "{warnings:?}"
        );
        assert!(warnings[1].ends_with("did you mean `SLIDEGATE_HOSTS`?"), "{warnings:?}");
        assert!(warnings[2].starts_with("--http: http: anybody who can reach 0.0.0.0:2 can"), "{warnings:?}");
        let forbidden = Startup::read(None, &[], variables(&[("SLIDEGATE_INLINE_RULES", "false")])).unwrap();
        assert!(!forbidden.rules.allows_inline());
    }

    #[test]
    fn a_token_file_given_by_a_variable_stays_in_force() {
        let directory = std::env::temp_dir().join(format!("slidegate-tokens-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (config, token) = (directory.join("rules.yaml"), directory.join("token"));
        std::fs::write(&config, "rules: { api: { limit: 5/1m } }\n").unwrap();
        std::fs::write(&token, "correct-horse-battery").unwrap();
        let environment = variables(&[("SLIDEGATE_TOKEN_FILE", token.to_str().unwrap())]);
        let file = Startup::read(Some(&config), &[], environment).unwrap().file.unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let settings = file.config.settings_in_force(&file.flags_and_env, &file.settings);
        assert!(settings.tokens().scopes_of(b"correct-horse-battery").is_some());
    }

    #[test]
    fn precedence_is_flags_then_environment_then_file_then_defaults() {
        let path = std::env::temp_dir().join(format!("slidegate-startup-{}.yaml", std::process::id()));
        let text = "rules: { api: { limit: 5/1m } }\nhttp: 127.0.0.1:3\ndeadline: 30ms\nbounds: { connections: 7 }\n";
        std::fs::write(&path, text).unwrap();
        let environment = [
            ("SLIDEGATE_CONFIG", path.to_str().unwrap()),
            ("SLIDEGATE_HTTP", "127.0.0.1:2"),
            ("SLIDEGATE_DEADLINE", "20ms"),
            ("SLIDEGATE_STORE", ""),
            ("SLIDEGATE_HEADERS", "draft-11, github"),
            ("SLIDEGATE_BOUNDS_IDLE_TIME", "5s"),
            ("HTTP", "x"),
        ];
        let started = Startup::read(None, &[("http", Some("127.0.0.1:1"))], variables(&environment)).unwrap();
        std::fs::remove_file(&path).unwrap();
        let settings = started.settings;
        assert_eq!((settings.http.port(), settings.deadline), (1, Duration::from_millis(20)));
        assert_eq!(settings.bounds.connections, 7);
        assert_eq!(settings.bounds.body_bytes, Settings::default().bounds.body_bytes);
        assert_eq!(settings.store.kind(), "memory", "an empty variable counts as unset");
        assert_eq!(settings.headers, [HeaderSet::Draft11, HeaderSet::GitHub]);
        assert_eq!(settings.bounds.idle_time, Duration::from_secs(5));
        assert_eq!((started.file.unwrap().path, started.warnings), (path, vec![]));
    }
}
