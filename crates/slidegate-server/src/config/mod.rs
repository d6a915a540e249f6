//! Configuration: a YAML file, variables of the environment and flags.
//!
//! A file is read in two stages. `yaml` reads the text into `node`s: what was written, with the place of every value.
//! `file` and `rule` say what it means, a `section` at a time. All mistakes are found at once, each with its place and the
//! remedy. `startup` puts the sources over each other; `warning` names what is legal but unwise.
//!
//! ```yaml
//! rules:
//!   api:        { limit: 60/1m, algorithm: sliding-log }
//!   yt-quota:   { limit: 10000/24h, headroom: 0.05, on_store_error: allow }
//! store: memory
//! ```

mod amount;
mod file;
mod mistake;
mod node;
mod rule;
mod schema;
mod section;
mod setting;
mod small;
mod startup;
mod values;
mod warning;
mod yaml;

pub(crate) use file::Config;
pub(crate) use mistake::{ConfigError, Found, Source};
pub(crate) use schema::{RATE_PATTERN, schema};
pub(crate) use setting::Given;
pub(crate) use startup::{Startup, StartupFile};

/// A file that uses every field, with comments.
pub(crate) const EXAMPLE: &str = include_str!("example.yaml");
