//! The receipts of a trace, by the line that earned them.
//!
//! A receipt whose charges have all expired is worth nothing: presenting it changes nothing and is
//! answered so. Such receipts are forgotten, so that memory follows what is alive, not the length of the
//! trace; what remains of an old line is one byte.

use std::collections::HashMap;
use std::str::FromStr;

use slidegate::Receipt;
use thiserror::Error;

use super::failure::Failure;
use super::request::Returned;
use crate::text::shown;

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

/// `#3`: the receipt of line 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineReference(u64);

impl FromStr for LineReference {
    type Err = NoReceipt;

    fn from_str(text: &str) -> Result<Self, NoReceipt> {
        let digits = text.strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let line = digits.and_then(|digits| digits.parse().ok()).filter(|&line| line > 0);
        line.map(Self).ok_or_else(|| NoReceipt::NotALine { text: shown(text) })
    }
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

    /// The receipt of a line; `None` if its charges have expired by `now_us`.
    fn get(&self, line: LineReference, now_us: u64) -> Result<Option<&Receipt>, NoReceipt> {
        let LineReference(line) = line;
        let fate = usize::try_from(line - 1).ok().and_then(|index| self.fates.get(index));
        match fate {
            Some(Fate::Charged) => {
                let kept = self.alive.get(&line).filter(|kept| kept.expires_us > now_us);
                Ok(kept.map(|kept| &kept.receipt))
            }
            Some(&fate) => Err(NoReceipt::OfFate { line, fate: said(fate) }),
            None => Err(NoReceipt::OfFate { line, fate: "lies ahead" }),
        }
    }
}

fn said(fate: Fate) -> &'static str {
    match fate {
        Fate::Blank => "is blank",
        Fate::Failed => "failed",
        Fate::Never => "could never pass",
        Fate::Blocked => "was blocked by an override",
        Fate::NoCheck => "is not a check",
        Fate::Denied => "was denied",
        Fate::Uncharged => "was not charged, because its shadow rules would have denied it",
        Fate::Unlimited => "was not charged, because overrides make its keys unlimited",
        Fate::Charged => unreachable!("a charged line has a receipt"),
    }
}

/// Why a line has no receipt to present.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum NoReceipt {
    /// The text does not name a line.
    #[error("receipt: `{text}` does not name a line; write \"#3\" for the receipt of line 3")]
    NotALine {
        /// What was written.
        text: String,
    },
    /// The line earned no receipt.
    #[error("receipt: line {line} {fate}; name an earlier line whose check was allowed")]
    OfFate {
        /// The line.
        line: u64,
        /// What became of it.
        fate: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use slidegate::{Algorithm, Limiter, Rule};

    use super::*;

    #[test]
    fn references_are_a_hash_and_a_line() {
        assert_eq!("#3".parse(), Ok(LineReference(3)));
        for text in ["", "#", "3", "#0", "#-1", "#+1", "# 3", "#3 ", "#99999999999999999999999", "receipt"] {
            assert!(text.parse::<LineReference>().is_err(), "{text}");
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
        assert_eq!(receipts.get(LineReference(1), 99_999), Ok(None), "expired, and forgotten");
        assert_eq!(receipts.get(LineReference(98_000), 99_999), Ok(None), "expired");
        assert!(receipts.get(LineReference(100_000), 99_999).unwrap().is_some());
        assert!(receipts.get(LineReference(100_001), 99_999).unwrap_err().to_string().contains("lies ahead"));
    }
}
