//! How many connections the system lets us have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::service::Bounds;

/// Files that are open besides connections: standard ones, listeners, runtimes, the store.
const OTHERS: u64 = 128;

/// Raises the limit of open files as far as it goes, and the bound on connections fits in. Says so where that is less
/// than was asked for.
pub(super) fn raise_limit(bounds: &mut Bounds) -> Option<String> {
    let wanted = bounds.connections as u64 + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is no limit.
    if current.is_none_or(|current| current >= wanted) {
        return None;
    }
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = Rlimit { current: Some(raised), maximum };
    let has = if setrlimit(Resource::Nofile, limit).is_ok() { Some(raised) } else { current };
    let has = has.unwrap_or(wanted);
    if has >= wanted {
        return None;
    }
    let fit = usize::try_from(has.saturating_sub(OTHERS)).unwrap_or(usize::MAX).max(1);
    let asked = std::mem::replace(&mut bounds.connections, fit);
    Some(format!(
        "connections: {asked} need {wanted} open files and the system allows {has}, so {fit} are served; raise it with ulimit -n {wanted}"
    ))
}
