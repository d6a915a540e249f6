//! Rule files: YAML, in two stages.
//!
//! `yaml` reads the text into `node`s: what was written, with the place of every value. `file` and `rule`
//! say what it means.
//! All mistakes of a file are found at once, each with its place and the remedy.
//!
//! ```yaml
//! rules:
//!   api:        { limit: 60/1m, algorithm: sliding-log }
//!   yt-quota:   { limit: 10000/24h, headroom: 0.05, on_store_error: allow }
//! store: memory
//! ```

mod file;
mod mistake;
mod node;
mod policy;
mod rule;
mod scalar;
mod yaml;

pub(crate) use file::Config;
