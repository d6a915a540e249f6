//! How large the searches of a test run are.

use std::env;

/// The variable that scales every search: 100 percent without it, 500 in `cargo xtask search`.
const PERCENT: &str = "SLIDEGATE_SEARCH_PERCENT";

fn percent() -> u64 {
    match env::var(PERCENT) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{PERCENT}: `{text}` is not a whole number")),
        Err(_) => 100,
    }
}

/// So many seeds, traces or decisions at 100 percent, scaled by `SLIDEGATE_SEARCH_PERCENT`; at least one.
#[must_use]
pub fn search_size(normal: u64) -> u64 {
    (normal * percent()).div_ceil(100).max(1)
}

/// Whether searches have at least their normal size. Then they must cover every case.
#[must_use]
pub fn search_covers_all() -> bool {
    percent() >= 100
}
