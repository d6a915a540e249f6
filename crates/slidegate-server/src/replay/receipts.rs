//! The receipts of a trace, by the line that earned them.
//!
//! Receipts whose charges have all expired change nothing and are forgotten, so that memory follows what is alive and not
//! the length of the trace; what remains of an old line is one byte.

use std::collections::HashMap;

use slidegate::Receipt;

use super::failure::Failure;
use super::request::Returned;
use crate::text::excerpt;

/// What became of a line, as far as receipts go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing was written on it.
    Blank,
    /// It could not be executed.
    Failed,
    /// Its cost was above a limit.
    Never,
    /// An override blocks one of its keys.
    Blocked,
    /// It was no check.
    NoCheck,
    /// Its check was denied.
    Denied,
    /// Its check was allowed, but only by shadow rules that would have denied it.
    Uncharged,
    /// Its check was allowed by overrides alone.
    Unlimited,
    /// Its check was charged.
    Charged,
}

/// The line that `#3` names: 3.
pub(super) fn line_of(text: &str) -> Result<u64, Failure> {
    let digits = text.strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let line = digits.and_then(|digits| digits.parse().ok()).filter(|&line| line > 0);
    line.ok_or_else(|| {
        let remedy = "write \"#3\" for the receipt of line 3";
        Failure::new("receipt", &format!("receipt: `{}` does not name a line; {remedy}", excerpt(text)))
    })
}

/// A receipt, and when it is worth nothing any more.
#[derive(Debug)]
struct Kept {
    receipt: Receipt,
    expires_us: u64,
}

/// What became of every line so far.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    fates: Vec<Fate>,
    alive: HashMap<u64, Kept>,
    /// How many receipts may gather before the expired ones are looked for again.
    tolerated: usize,
}

/// Receipts below which it is not worth looking for expired ones.
const TOLERATED_MIN: usize = 1_024;

impl Receipts {
    /// Records what became of the next line.
    pub(super) fn record(&mut self, fate: Fate) {
        self.fates.push(fate);
    }

    /// Records that the next line was charged at `now_us`; at `expires_us` its charges will have expired.
    pub(super) fn record_charged(&mut self, now_us: u64, expires_us: u64, receipt: Receipt) {
        if self.alive.len() >= self.tolerated.max(TOLERATED_MIN) {
            self.alive.retain(|_, kept| kept.expires_us > now_us);
            // Looking again only after as many more came keeps the work per line constant.
            self.tolerated = 2 * self.alive.len();
        }
        self.record(Fate::Charged);
        self.alive.insert(self.fates.len() as u64, Kept { receipt, expires_us });
    }

    /// The receipt that is presented, if it is still worth something.
    pub(super) fn presented(&self, now_us: u64, returned: &Returned) -> Result<Option<&Receipt>, Failure> {
        let receipt = self.get(returned.line, now_us)?;
        if let (Some(receipt), Some(rule)) = (receipt, &returned.rule) {
            receipt.expect_rule(rule)?;
        }
        Ok(receipt)
    }

    /// The receipt of a line, counted from 1; `None` if its charges have expired by `now_us`.
    fn get(&self, line: u64, now_us: u64) -> Result<Option<&Receipt>, Failure> {
        let fate = usize::try_from(line - 1).ok().and_then(|index| self.fates.get(index));
        let said = match fate {
            Some(Fate::Charged) => {
                let kept = self.alive.get(&line).filter(|kept| kept.expires_us > now_us);
                return Ok(kept.map(|kept| &kept.receipt));
            }
            None => "lies ahead",
            Some(Fate::Blank) => "is blank",
            Some(Fate::Failed) => "failed",
            Some(Fate::Never) => "could never pass",
            Some(Fate::Blocked) => "was blocked by an override",
            Some(Fate::NoCheck) => "is not a check",
            Some(Fate::Denied) => "was denied",
            Some(Fate::Uncharged) => "was not charged, because its shadow rules would have denied it",
            Some(Fate::Unlimited) => "was not charged, because overrides make its keys unlimited",
        };
        let remedy = "name an earlier line whose check was allowed";
        Err(Failure::new("receipt", &format!("receipt: line {line} {said}; {remedy}")))
    }
}

#[cfg(test)]
mod tests {
    use slidegate::{Algorithm, Limiter, Rule};

    use super::*;

    #[test]
    fn references_are_a_hash_and_a_line() {
        assert_eq!(line_of("#3"), Ok(3));
        for text in ["", "#", "3", "#0", "#-1", "#+1", "# 3", "#3 ", "#99999999999999999999999", "receipt"] {
            assert!(line_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn memory_follows_what_is_alive() {
        let rule = Rule::inline("1000000/1ms".parse().unwrap(), Algorithm::FixedWindow);
        let (limiter, mut receipts) = (Limiter::in_memory(), Receipts::default());
        for now_us in 0..100_000 {
            let receipt = limiter.at_us(now_us).check(&rule, "alice").unwrap().receipt().unwrap();
            receipts.record_charged(now_us, (now_us / 1_000 + 1) * 1_000, receipt);
        }
        assert!(receipts.alive.len() <= 2_048 + 1, "{} kept of 1,000 alive", receipts.alive.len());
        assert_eq!(receipts.get(1, 99_999), Ok(None), "expired, and forgotten");
        assert_eq!(receipts.get(98_000, 99_999), Ok(None), "expired");
        assert!(receipts.get(100_000, 99_999).unwrap().is_some());
        assert!(receipts.get(100_001, 99_999).unwrap_err().text.contains("lies ahead"));
    }
}
