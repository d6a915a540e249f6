//! Routes: paths and methods.

use super::problem::{Problem, UNKNOWN_ROUTE};
use super::query::parameter;
use crate::text::nearest;
use crate::tokens::Scope;

/// A route. Its path parameters are still percent-encoded.
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

/// Paths without parameters, and their methods.
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

/// Paths with parameters, and their methods.
pub(super) const TEMPLATES: &[(&str, &str, Route<'static>)] = &[
    ("/v1/keys/{rule}/{key}", "GET", Route::Key { rule: "{rule}", key: "{key}" }),
    ("/v1/rlaas/{userId}", "GET", Route::Rlaas { user: "{userId}" }),
];

impl<'a> Route<'a> {
    /// The route of a method and a path.
    pub(super) fn find(method: &str, path: &'a str) -> Result<Self, Problem> {
        let (allowed, route) = Self::at(path)?;
        // HEAD is refused where the request would charge.
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
        // The rest of the path is the key, which may contain slashes.
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

    /// Whether it needs a JSON body.
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

    /// The scope that a token needs for it; `None` if it needs no token.
    pub(super) fn scope(self, query: &str) -> Option<Scope> {
        match self {
            Self::Check
            | Self::CheckBatch
            | Self::Peek
            | Self::Refund
            | Self::Settle
            | Self::Rlaas { .. } => Some(Scope::Check),
            Self::Explain | Self::Rules | Self::Key { .. } | Self::Top | Self::Metrics => Some(Scope::Read),
            Self::Readyz => parameter(query, "verbose").map(|_| Scope::Read),
            Self::Credit | Self::Reset | Self::Reload => Some(Scope::Admin),
            Self::Livez | Self::OpenApi => None,
        }
    }

    /// Its query parameters.
    pub(super) fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Key { .. } => &["tag"],
            Self::Top => &["n"],
            Self::Readyz => &["verbose"],
            _ => &[],
        }
    }

    /// Whether it changes what is used, or the rules.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Check
                | Self::CheckBatch
                | Self::Refund
                | Self::Settle
                | Self::Credit
                | Self::Reset
                | Self::Reload
                | Self::Rlaas { .. }
        )
    }

    /// Whether its answer is a decision, whose duration is counted.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::Check | Self::CheckBatch | Self::Peek | Self::Rlaas { .. })
    }
}

const BAD_PERCENT: &str = "path: has a % without two hexadecimal digits; write % itself as %25";

/// Percent-decodes a path parameter.
pub(super) fn decoded(part: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let Some((&[high, low], after)) = rest.split_first_chunk() else {
            return Err(BAD_PERCENT);
        };
        let (Some(high), Some(low)) = (char::from(high).to_digit(16), char::from(low).to_digit(16)) else {
            return Err(BAD_PERCENT);
        };
        rest = after;
        bytes.push(u8::try_from(high << 4 | low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| "path: is not UTF-8; percent-encode UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_percent_decoded() {
        assert_eq!(decoded("alice"), Ok("alice".into()));
        assert_eq!(decoded("yt%3Aquota%2Fkey1%25"), Ok("yt:quota/key1%".into()));
        assert_eq!(decoded("k%c3%A4se+"), Ok("käse+".into()));
        for (part, start) in [
            ("%", "path: has a %"),
            ("a%4", "path: has a %"),
            ("%zz", "path: has a %"),
            ("%ff", "path: is not UTF-8"),
        ] {
            assert!(decoded(part).unwrap_err().starts_with(start), "{part}");
        }
    }
}
