//! Rules as the server reads and swaps them: `json` and `algorithm` parse them, `live` holds the set in force. The
//! library's [`RuleSet`](slidegate::RuleSet) resolves them.

mod algorithm;
mod json;
mod live;

pub(crate) use algorithm::AlgorithmFields;
pub(crate) use json::{InlineError, charge_request, parse_rate};
pub(crate) use live::LiveRules;
