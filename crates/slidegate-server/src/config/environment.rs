//! What the environment says: `SLIDEGATE_HTTP` and its like.

use std::ffi::OsString;
use std::path::PathBuf;

use super::layer::Layer;
use super::mistake::{ConfigError, Found, Source};
use super::setting::{self, SETTINGS, variable};
use crate::text::{did_you_mean, shown};

/// What all our variables begin with.
const PREFIX: &str = "SLIDEGATE_";
/// The variable that names the configuration file.
const CONFIG: &str = "SLIDEGATE_CONFIG";

/// What the environment says.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// The configuration file.
    pub(crate) config: Option<PathBuf>,
    pub(crate) layer: Layer,
    /// Variables that look like ours and are not.
    pub(crate) warnings: Vec<Found>,
}

impl Environment {
    /// Reads variables, or says everything that is wrong with them. An empty one is as good as none.
    pub(crate) fn read(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut read = Self::default();
        let mut mistakes = Vec::new();
        let ours = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut ours: Vec<(String, OsString)> =
            ours.filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty()).collect();
        ours.sort();
        for (name, value) in ours {
            if name == CONFIG {
                read.config = Some(value.into());
            } else if let Some(setting) = SETTINGS.iter().find(|setting| variable(setting) == name) {
                if let Err(text) = read.set(setting, &name, value) {
                    mistakes.push(Found::new(Source::Variable(name), &text));
                }
            } else {
                read.warn(&name);
            }
        }
        if mistakes.is_empty() { Ok(read) } else { Err(ConfigError::of(mistakes)) }
    }

    fn set(&mut self, setting: &str, name: &str, value: OsString) -> Result<(), String> {
        let text = value.into_string().map_err(|_| "is not UTF-8; write it as UTF-8".to_owned())?;
        let texts = setting::texts(setting, &text);
        let source = Source::Variable(name.to_owned());
        setting::set(&mut self.layer, setting, &texts, &source).map_err(|(_, text)| text)
    }

    fn warn(&mut self, name: &str) {
        let known: Vec<String> = SETTINGS.iter().map(|setting| variable(setting)).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).chain([CONFIG]).collect();
        let text = format!("is not a variable of ours and has no effect; {}", did_you_mean(name, &known));
        self.warnings.push(Found::new(Source::Variable(shown(name)), &text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::HeaderSet;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, ConfigError> {
        Environment::read(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn every_setting_has_a_variable() {
        let read = read(&[
            ("SLIDEGATE_CONFIG", "rules.yaml"),
            ("SLIDEGATE_HTTP", "0.0.0.0:80"),
            ("SLIDEGATE_STORE", ""),
            ("SLIDEGATE_HEADERS", "draft-11, github"),
            ("SLIDEGATE_BOUNDS_CONNECTIONS", "5"),
            ("HTTP", "x"),
        ])
        .unwrap();
        assert_eq!(read.config, Some("rules.yaml".into()));
        assert_eq!(read.layer.http.unwrap().value.port(), 80);
        assert!(read.layer.store.is_none(), "an empty variable says nothing");
        assert_eq!(read.layer.headers.unwrap().value, [HeaderSet::Draft11, HeaderSet::GitHub]);
        assert_eq!(read.layer.connections.unwrap().value, 5);
        assert_eq!(read.warnings, []);
    }

    #[test]
    fn all_mistakes_name_their_variable() {
        let error =
            read(&[("SLIDEGATE_HTTP", "8080"), ("SLIDEGATE_DEADLINE", "50")]).unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert!(lines[0].starts_with("SLIDEGATE_DEADLINE: `50` is not a duration; "), "{error}");
        assert!(lines[1].starts_with("SLIDEGATE_HTTP: `8080` is not an address and a port; "), "{error}");
    }

    #[test]
    fn unknown_variables_are_named_with_the_nearest() {
        let warnings =
            read(&[("SLIDEGATE_HTPP", "x"), ("SLIDEGATE_COLOUR_OF_BIKESHED", "x")]).unwrap().warnings;
        assert!(warnings[0].to_string().contains("SLIDEGATE_COLOUR_OF_BIKESHED: is not a variable of ours"));
        assert!(warnings[1].to_string().ends_with("did you mean `SLIDEGATE_HTTP`?"), "{warnings:?}");
    }
}
