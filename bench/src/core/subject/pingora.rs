//! pingora-limits: an estimate in a sketch of fixed size, so a million keys share its four thousand cells. It is here
//! for its speed; its guarantee is weaker.

use std::time::Duration;

use pingora_limits::rate::Rate;

use super::{SharedLimiter, Worker};

const LIMIT: isize = 4_000_000_000;

pub(crate) struct Pingora(Rate);

impl Pingora {
    pub(crate) fn new() -> Self {
        Self(Rate::new(Duration::from_hours(1)))
    }
}

impl SharedLimiter for Pingora {
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
