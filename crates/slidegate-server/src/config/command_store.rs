//! The store of a command that starts no server: `check`, `peek`, `reset`, `run`, `replay`.
//!
//! Its URL comes from a flag or from wherever the command looks for it. The settings of a Redis that the URL does not give
//! come from environment variables and the configuration file, as for a server, so that all use the same names.

use std::ffi::OsString;

use slidegate_stores::StoreUrl;

use super::file::Config;
use super::finding::{ConfigError, Finding, Source};
use super::setting::GivenSettings;
use super::startup::{Environment, give};
use super::store_checks::parameter_mistakes;
use crate::service::{STORE_FIELD, Settings};

const DEADLINE: &str = "deadline";

/// Completes `url` by environment variables and the file. The default deadline of a server does not apply, but one that
/// was given does, to a Redis.
pub(crate) fn command_store(
    url: StoreUrl,
    config: Option<&Config>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<StoreUrl, ConfigError> {
    let mut settings = config.map_or_else(Settings::default, |config| config.settings.clone());
    let texts = Environment::of(variables).texts;
    let of_store = texts.into_iter().filter(|(name, ..)| *name == DEADLINE || name.starts_with(STORE_FIELD));
    let mut given = GivenSettings::default();
    let mistakes = give(&mut given, &mut settings, of_store);
    if !mistakes.is_empty() {
        return Err(ConfigError { mistakes });
    }
    let given = config.map_or(given.clone(), |config| given.layered_over(&config.given));
    let mistakes = parameter_mistakes(&url, &given, &settings);
    if !mistakes.is_empty() {
        return Err(ConfigError { mistakes });
    }
    let deadline = given.texts(DEADLINE).and_then(<[String]>::first);
    let completed = settings.completed(url).and_then(|url| match deadline {
        Some(deadline) => url.parameter_unless_given(DEADLINE, deadline),
        None => Ok(url),
    });
    completed.map_err(|error| ConfigError {
        mistakes: vec![Finding::new(Source::Name("store".to_owned()), &error.to_string())],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(url: &str, config: Option<&str>, variables: &[(&str, &str)]) -> Result<String, String> {
        let config = config.map(|text| Config::parse("FILE", text).unwrap());
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let url = command_store(url.parse().unwrap(), config.as_ref(), variables);
        url.map(|url| format!("{url:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_url_comes_before_the_environment_and_the_file() {
        let file =
            "rules: { a: { limit: 5/1m } }\ndeadline: 3s\nstore: { key_prefix: file, connections: 3 }\n";
        let shown = |url, variables: &[_]| completed(url, Some(file), variables).unwrap();
        let of_file = shown("redis://localhost", &[]);
        assert!(of_file.contains("file:") && of_file.contains("connections: 3"), "{of_file}");
        assert!(of_file.contains("deadline: 3s"), "{of_file}");
        let environment =
            [("SLIDEGATE_STORE_KEY_PREFIX", "env"), ("SLIDEGATE_DEADLINE", "2s"), ("SLIDEGATE_HTTP", "x")];
        let of_environment = shown("redis://localhost", &environment);
        assert!(
            of_environment.contains("env:") && of_environment.contains("connections: 3"),
            "{of_environment}"
        );
        assert!(of_environment.contains("deadline: 2s"), "{of_environment}");
        let of_url = shown("redis://localhost?key_prefix=url&deadline=1s", &environment);
        assert!(of_url.contains("url:") && of_url.contains("deadline: 1s"), "{of_url}");
    }

    #[test]
    fn without_settings_the_url_is_as_it_was() {
        for url in ["redis://localhost", "sqlite:quota.db"] {
            let parsed: StoreUrl = url.parse().unwrap();
            assert_eq!(completed(url, None, &[]), Ok(format!("{parsed:?}")));
        }
        let error =
            completed("redis://localhost", None, &[("SLIDEGATE_STORE_CONNECTIONS", "0")]).unwrap_err();
        assert!(error.starts_with("SLIDEGATE_STORE_CONNECTIONS: 0 is out of range; "), "{error}");
    }
}
