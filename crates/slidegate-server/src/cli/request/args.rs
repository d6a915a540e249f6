//! What was typed.

use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use slidegate::rule::OnStoreError;
use slidegate::{Algorithm, Rate};

use super::location::Location;
use super::values::{self, Also};

/// Who asks for what, and where it is counted.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Asked {
    /// Who is limited: a client, a credential, an address
    #[arg(value_parser = values::key)]
    pub(super) key: String,

    /// The limit, as LIMIT/WINDOW: 60/1m, 9500/24h, 5/minute
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, conflicts_with = "rule")]
    #[arg(required_unless_present = "rule")]
    pub(super) limit: Option<Rate>,

    /// Another limit that must admit too, all or none; give it again for more
    ///
    /// It asks for as many units as --cost says, or for COST of them. --algorithm is for all limits.
    #[arg(long, value_name = "KEY=RATE[@COST]", value_parser = values::also)]
    pub(super) also: Vec<Also>,

    /// Units asked for
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::cost, allow_hyphen_values = true)]
    pub(super) cost: u64,

    /// How the window is kept [default: sliding-log]; `slidegate help algorithms` explains the choice
    #[arg(long, value_name = "NAME", conflicts_with = "rule", value_parser = algorithms(), hide_possible_values = true)]
    pub(super) algorithm: Option<Algorithm>,

    /// A rule of the configuration, or of the server, in place of --limit
    #[arg(long, value_name = "NAME")]
    pub(super) rule: Option<String>,

    /// Rules by name (YAML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) config: Option<PathBuf>,

    /// Where states live: sqlite:PATH, redis://HOST:PORT, or http://HOST:PORT of a server
    ///
    /// Without it: what `SLIDEGATE_STORE` says, else what the configuration says, else a file of this user,
    /// `slidegate/state.db` under `$XDG_STATE_HOME` or `~/.local/state`. A server that wants a token is shown that of
    /// `SLIDEGATE_TOKEN`.
    #[arg(long, value_name = "URL", value_parser = Location::read)]
    pub(super) store: Option<Location>,

    /// What to answer when the store does not [default: what the rule says, else deny]
    #[arg(long, value_name = "POLICY", value_parser = policies())]
    pub(super) on_store_error: Option<OnStoreError>,
}

/// How much is printed.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(in crate::cli) struct Shown {
    /// Print the whole answer as JSON; a mistake is printed as {"error":"..."}
    #[arg(long, conflicts_with = "quiet")]
    pub(in crate::cli) json: bool,

    /// Print nothing but errors: the exit status is the answer
    #[arg(long, short)]
    pub(in crate::cli) quiet: bool,
}

fn policies() -> impl TypedValueParser<Value = OnStoreError> {
    let deny = PossibleValue::new("deny").help("Without an answer nothing passes: an error");
    let allow = PossibleValue::new("allow").help("Without an answer everything passes, marked as degraded");
    PossibleValuesParser::new([deny, allow]).map(|name| match name.as_str() {
        "allow" => OnStoreError::Allow,
        _ => OnStoreError::Deny,
    })
}

/// The six names, so that shells can complete them.
fn algorithms() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name)).try_map(|name| name.parse::<Algorithm>())
}
