//! Where a request goes.

use super::problem::{Problem, UNKNOWN_ROUTE};
use crate::text::nearest;

/// What a request is for. Parts of paths are still percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Check,
    CheckBatch,
    Peek,
    Explain,
    Refund,
    Settle,
    Credit,
    Reset,
    Rules,
    Key { rule: &'a str, key: &'a str },
    Rlaas { user: &'a str },
    Top,
    Reload,
    Metrics,
    Livez,
    Readyz,
    OpenApi,
}

/// Paths without parts, with their method.
pub(super) const PATHS: &[(&str, &str, Route<'static>)] = &[
    ("/v1/check", "POST", Route::Check),
    ("/v1/check-batch", "POST", Route::CheckBatch),
    ("/v1/peek", "POST", Route::Peek),
    ("/v1/explain", "POST", Route::Explain),
    ("/v1/refund", "POST", Route::Refund),
    ("/v1/settle", "POST", Route::Settle),
    ("/v1/credit", "POST", Route::Credit),
    ("/v1/reset", "POST", Route::Reset),
    ("/v1/rules", "GET", Route::Rules),
    ("/v1/top", "GET", Route::Top),
    ("/v1/admin/reload", "POST", Route::Reload),
    ("/metrics", "GET", Route::Metrics),
    ("/livez", "GET", Route::Livez),
    ("/healthz", "GET", Route::Livez),
    ("/readyz", "GET", Route::Readyz),
    ("/openapi.json", "GET", Route::OpenApi),
];

/// Paths with parts, as people write them.
pub(super) const TEMPLATES: &[(&str, &str, Route<'static>)] = &[
    ("/v1/keys/{rule}/{key}", "GET", Route::Key { rule: "{rule}", key: "{key}" }),
    ("/v1/rlaas/{userId}", "GET", Route::Rlaas { user: "{userId}" }),
];

impl<'a> Route<'a> {
    /// The route of a method and a path.
    pub(super) fn find(method: &str, path: &'a str) -> Result<Self, Problem> {
        let (allowed, route) = Self::at(path)?;
        // Asking for the head alone is refused where asking is spending.
        let is_head = method == "HEAD" && allowed == "GET" && !matches!(route, Self::Rlaas { .. });
        if method == allowed || is_head { Ok(route) } else { Err(Problem::method(allowed)) }
    }

    fn at(path: &'a str) -> Result<(&'static str, Self), Problem> {
        if let Some(&(_, method, route)) = PATHS.iter().find(|(known, ..)| *known == path) {
            return Ok((method, route));
        }
        if let Some(user) = path.strip_prefix("/v1/rlaas/").filter(|user| !user.contains('/')) {
            return Ok(("GET", Self::Rlaas { user }));
        }
        // What follows the rule is the key, slashes and all.
        if let Some((rule, key)) = path.strip_prefix("/v1/keys/").and_then(|rest| rest.split_once('/')) {
            return Ok(("GET", Self::Key { rule, key }));
        }
        let known = PATHS.iter().map(|(known, ..)| *known).chain(["/v1/keys/RULE/KEY", "/v1/rlaas/USER"]);
        let remedy = match nearest(path, known) {
            Some(meant) => format!("did you mean {meant}?"),
            None => "ask for units with POST /v1/check".to_owned(),
        };
        Err(Problem::new(UNKNOWN_ROUTE, &format!("path: is unknown; {remedy}")))
    }

    /// Whether it is asked with a JSON body.
    pub(super) fn has_body(self) -> bool {
        matches!(
            self,
            Self::Check
                | Self::CheckBatch
                | Self::Peek
                | Self::Explain
                | Self::Refund
                | Self::Settle
                | Self::Credit
                | Self::Reset
        )
    }

    /// Whether it is answered without a token.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Livez | Self::Readyz | Self::OpenApi)
    }

    /// Whether its answer is a decision, whose time is counted.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::Check | Self::CheckBatch | Self::Peek | Self::Rlaas { .. })
    }
}
