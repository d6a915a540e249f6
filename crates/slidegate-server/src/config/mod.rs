//! Configuration: a YAML file, variables of the environment and flags.
//!
//! A file is read in two stages. `yaml` reads the text into `node`s: what was written, with the place of every value.
//! `file`, `rule` and `settings` say what it means. All mistakes are found at once, each with its place and the
//! remedy. `layer` puts the sources over each other; `warning` names what is legal but unwise.
//!
//! ```yaml
//! rules:
//!   api:        { limit: 60/1m, algorithm: sliding-log }
//!   yt-quota:   { limit: 10000/24h, headroom: 0.05, on_store_error: allow }
//! store: memory
//! ```

mod amount;
mod environment;
mod file;
mod layer;
mod mistake;
mod node;
mod overrides;
mod policy;
mod rule;
mod scalar;
mod schema;
mod setting;
mod settings;
mod small;
mod startup;
mod token;
mod warning;
mod yaml;

pub(crate) use file::Config;
pub(crate) use layer::Layer;
pub(crate) use mistake::{ConfigError, Found, Source};
pub(crate) use schema::{RATE_PATTERN, schema};
pub(crate) use startup::{Startup, StartupFile};

/// A file that uses every field, with comments.
pub(crate) const EXAMPLE: &str = include_str!("example.yaml");
