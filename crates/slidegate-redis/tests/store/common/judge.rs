//! The judge: calls the classical script.

use redis::{Connection, Script};

/// A sliding log as a sorted set, one member per unit.
pub const CLASSICAL: &str = include_str!("../judge/classical.lua");

/// The answer of the judge to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgeAnswer {
    pub allowed: bool,
    /// Units in use, this request included if it was admitted.
    pub used: u64,
}

/// Calls the classical script, at injected time.
pub struct Judge {
    connection: Connection,
    script: Script,
    asked: u64,
}

impl Judge {
    pub fn new(connection: Connection) -> Self {
        Self { connection, script: Script::new(CLASSICAL), asked: 0 }
    }

    pub fn ask(&mut self, key: &str, at_us: u64, window_us: u64, limit: u64, cost: u64) -> JudgeAnswer {
        self.asked += 1;
        let mut call = self.script.key(format!("classical:{key}"));
        call.arg(at_us).arg(window_us).arg(limit).arg(cost).arg(self.asked);
        let (allowed, used): (bool, u64) =
            call.invoke(&mut self.connection).expect("the judge answers every request");
        JudgeAnswer { allowed, used }
    }
}
