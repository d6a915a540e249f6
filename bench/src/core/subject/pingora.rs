//! pingora-limits: a sketch of fixed size that estimates, so a million keys share its four thousand
//! cells. It is here for its speed, not as an equal.

use std::time::Duration;

use pingora_limits::rate::Rate;

use super::{Shared, Worker};

const LIMIT: isize = 4_000_000_000;

pub(crate) struct Pingora(Rate);

impl Pingora {
    pub(crate) fn new() -> Self {
        Self(Rate::new(Duration::from_hours(1)))
    }
}

impl Shared for Pingora {
    fn worker(&self) -> impl Worker {
        self
    }
}

impl Worker for &Pingora {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        self.0.observe(&key, 1) <= LIMIT
    }
}
