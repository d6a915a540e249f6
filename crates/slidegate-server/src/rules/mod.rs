//! Rules as the server reads and swaps them: `json` and `algorithm` read what requests and files write, `live` holds the
//! set in force. What rules mean is the library's [`RuleSet`](slidegate::RuleSet).

mod algorithm;
mod json;
mod live;

pub(crate) use algorithm::AlgorithmText;
pub(crate) use json::{InlineError, charge_request, parse_rate};
pub(crate) use live::Live;
