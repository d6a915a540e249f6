//! Configuration: a YAML file, environment variables and flags.
//!
//! A file is read in two stages. `yaml` parses the text into `node`s, each with its line and column. `file` and `rule`
//! interpret them (`token` the tokens), a `section` at a time. All mistakes are reported at once, each with its position and remedy
//! (`finding`). `startup` merges the sources, for commands `command_store`; `warning` lists what is legal but unwise.
//!
//! ```yaml
//! rules:
//!   api:        { limit: 60/1m, algorithm: sliding-log }
//!   yt-quota:   { limit: 10000/24h, headroom: 0.05, on_store_error: allow }
//! store: memory
//! ```

mod amount;
mod command_store;
mod file;
mod finding;
mod node;
mod rate_limiter_form;
mod rule;
mod rule_values;
mod schema;
mod section;
mod setting;
mod startup;
mod store_checks;
mod token;
mod warning;
mod yaml;

pub(crate) use command_store::command_store;
pub(crate) use file::Config;
pub(crate) use finding::{ConfigError, Finding, Source};
pub(crate) use rate_limiter_form::DEFAULT_RULE;
pub(crate) use schema::{RATE_PATTERN, schema};
pub(crate) use setting::GivenSettings;
pub(crate) use startup::{Startup, StartupFile};
pub(crate) use store_checks::shared_states_mistake;

/// A file that uses every field, with comments.
pub(crate) const EXAMPLE: &str = include_str!("example.yaml");
