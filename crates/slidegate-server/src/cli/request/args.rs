//! The arguments that `check`, `peek`, `reset` and `run` share.

use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use slidegate::rule::OnStoreError;
use slidegate::{Algorithm, Rate};

use super::location::StoreLocation;
use super::values::{self, Also};

/// The key, the limits, the cost and the store of a request.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RequestArgs {
    /// Who is limited: a client, a credential, an address
    #[arg(value_parser = values::key)]
    pub(super) key: String,

    /// The limit, as LIMIT/WINDOW: 60/1m, 9500/24h, 5/minute
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, conflicts_with = "rule")]
    #[arg(required_unless_present = "rule")]
    pub(super) limit: Option<Rate>,

    /// Another limit that must admit too, all or none; repeatable
    ///
    /// It is charged --cost units, or COST if given. --algorithm applies to all limits.
    #[arg(long, value_name = "KEY=RATE[@COST]", value_parser = values::also)]
    pub(super) also: Vec<Also>,

    /// Units to charge
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::cost, allow_hyphen_values = true)]
    pub(super) cost: u64,

    /// Counts apart from other tags; on Redis Cluster keys of one tag share a slot
    ///
    /// It applies to the key and to those of --also: limits on different keys can then be charged in one step.
    #[arg(long, value_name = "TAG", value_parser = values::tag, allow_hyphen_values = true)]
    pub(super) tag: Option<String>,

    /// The algorithm [default: sliding-log]; see `slidegate help algorithms`
    #[arg(long, value_name = "NAME", conflicts_with = "rule", value_parser = algorithms(), hide_possible_values = true)]
    pub(super) algorithm: Option<Algorithm>,

    /// A rule of the configuration or of the server, instead of --limit
    #[arg(long, value_name = "NAME")]
    pub(super) rule: Option<String>,

    /// The configuration file with the rules (YAML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) config: Option<PathBuf>,

    /// Where states live: sqlite:PATH, redis://HOST:PORT, or http://HOST:PORT of a server
    ///
    /// Default: the variable `SLIDEGATE_STORE`, else the store of the configuration, else the user's own file
    /// `slidegate/state.db` under `$XDG_STATE_HOME` or `~/.local/state`. For a server that requires a token, set
    /// `SLIDEGATE_TOKEN`. A Redis has parameters: `redis://HOST/2?key_prefix=app&deadline=20ms`, also `key_template`,
    /// `log_layout`, `connections`, `connect_timeout` and `deny_cache`.
    #[arg(long, value_name = "URL", value_parser = StoreLocation::read)]
    pub(super) store: Option<StoreLocation>,

    /// The answer when the store fails [default: the policy of the rule, else deny]
    #[arg(long, value_name = "POLICY", value_parser = policies())]
    pub(super) on_store_error: Option<OnStoreError>,
}

/// The output format.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(in crate::cli) struct OutputArgs {
    /// Print the whole answer as JSON; an error is printed as {"error":"..."}
    #[arg(long, conflicts_with = "quiet")]
    pub(in crate::cli) json: bool,

    /// Print nothing but errors: the exit status is the answer
    #[arg(long, short)]
    pub(in crate::cli) quiet: bool,
}

fn policies() -> impl TypedValueParser<Value = OnStoreError> {
    let deny = PossibleValue::new("deny").help("Nothing passes; the request is an error");
    let allow = PossibleValue::new("allow").help("Everything passes, marked as degraded");
    PossibleValuesParser::new([deny, allow]).map(|name| match name.as_str() {
        "allow" => OnStoreError::Allow,
        _ => OnStoreError::Deny,
    })
}

/// Listed, so that shells can complete them.
fn algorithms() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name)).try_map(|name| name.parse::<Algorithm>())
}
