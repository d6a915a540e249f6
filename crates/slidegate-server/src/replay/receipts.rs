//! The receipts of a trace, by line number.
//!
//! Expired receipts are dropped, so that memory grows with the live receipts and not with the length of the trace; an
//! old line takes one byte.

use std::collections::HashMap;

use slidegate::Receipt;

use super::line_error::LineError;
use super::operation::ReceiptReturn;
use crate::text::excerpt;

/// Whether a line has a receipt, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiptStatus {
    /// The line is blank.
    Blank,
    /// The line was not executed.
    Failed,
    /// The cost was above a limit.
    Never,
    /// An override blocks one of the keys.
    Blocked,
    /// The operation was not a check.
    NoCheck,
    /// The check was denied.
    Denied,
    /// The check was allowed only because all its rules are shadow rules.
    Uncharged,
    /// The check was allowed by overrides alone.
    Unlimited,
    /// The check was charged.
    Charged,
}

/// The line number of a reference: 3 for `#3`.
pub(super) fn line_of(text: &str) -> Result<u64, LineError> {
    let digits = text.strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let line = digits.and_then(|digits| digits.parse().ok()).filter(|&line| line > 0);
    line.ok_or_else(|| {
        let remedy = "write \"#3\" for the receipt of line 3";
        LineError::new("receipt", &format!("receipt: `{}` does not name a line; {remedy}", excerpt(text)))
    })
}

/// A receipt and the time when its charges expire.
#[derive(Debug)]
struct LiveReceipt {
    receipt: Receipt,
    expires_us: u64,
}

/// The receipt status of every line so far, and the live receipts.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    statuses: Vec<ReceiptStatus>,
    alive: HashMap<u64, LiveReceipt>,
    /// The number of receipts at which the next sweep drops the expired ones.
    sweep_at: usize,
}

/// No sweep below this number of receipts.
const SWEEP_AT_MIN: usize = 1_024;

impl Receipts {
    /// Records the status of the next line.
    pub(super) fn record(&mut self, receipt_status: ReceiptStatus) {
        self.statuses.push(receipt_status);
    }

    /// Records that the next line was charged at `now_us`; its charges expire at `expires_us`.
    pub(super) fn record_charged(&mut self, now_us: u64, expires_us: u64, receipt: Receipt) {
        if self.alive.len() >= self.sweep_at.max(SWEEP_AT_MIN) {
            self.alive.retain(|_, live| live.expires_us > now_us);
            // Doubling keeps the work per line constant (amortised).
            self.sweep_at = 2 * self.alive.len();
        }
        self.record(ReceiptStatus::Charged);
        self.alive.insert(self.statuses.len() as u64, LiveReceipt { receipt, expires_us });
    }

    /// The receipt that is returned; `None` if its charges have expired.
    pub(super) fn returned_receipt(
        &self,
        now_us: u64,
        returned: &ReceiptReturn,
    ) -> Result<Option<&Receipt>, LineError> {
        let receipt = self.get(returned.line, now_us)?;
        if let (Some(receipt), Some(rule)) = (receipt, &returned.rule) {
            receipt.expect_rule(rule)?;
        }
        Ok(receipt)
    }

    /// The receipt of a line, counted from 1; `None` if its charges have expired by `now_us`.
    fn get(&self, line: u64, now_us: u64) -> Result<Option<&Receipt>, LineError> {
        let receipt_status = usize::try_from(line - 1).ok().and_then(|index| self.statuses.get(index));
        let reason = match receipt_status {
            Some(ReceiptStatus::Charged) => {
                let unexpired = self.alive.get(&line).filter(|live| live.expires_us > now_us);
                return Ok(unexpired.map(|live| &live.receipt));
            }
            None => "is not before this line",
            Some(ReceiptStatus::Blank) => "is blank",
            Some(ReceiptStatus::Failed) => "failed",
            Some(ReceiptStatus::Never) => "could never pass",
            Some(ReceiptStatus::Blocked) => "was blocked by an override",
            Some(ReceiptStatus::NoCheck) => "is not a check",
            Some(ReceiptStatus::Denied) => "was denied",
            Some(ReceiptStatus::Uncharged) => {
                "was not charged, because its shadow rules would have denied it"
            }
            Some(ReceiptStatus::Unlimited) => "was not charged, because overrides make its keys unlimited",
        };
        let remedy = "name an earlier line whose check was allowed";
        Err(LineError::new("receipt", &format!("receipt: line {line} {reason}; {remedy}")))
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
    fn expired_receipts_are_dropped() {
        let rule = Rule::inline("1000000/1ms".parse().unwrap(), Algorithm::FixedWindow);
        let (limiter, mut receipts) = (Limiter::in_memory(), Receipts::default());
        for now_us in 0..100_000 {
            let receipt = limiter.at_us(now_us).check(&rule, "alice").unwrap().receipt().unwrap();
            receipts.record_charged(now_us, (now_us / 1_000 + 1) * 1_000, receipt);
        }
        assert!(receipts.alive.len() <= 2_048 + 1, "{} kept of 1,000 live", receipts.alive.len());
        assert_eq!(receipts.get(1, 99_999), Ok(None), "expired, and forgotten");
        assert_eq!(receipts.get(98_000, 99_999), Ok(None), "expired");
        assert!(receipts.get(100_000, 99_999).unwrap().is_some());
        assert!(receipts.get(100_001, 99_999).unwrap_err().text.contains("is not before this line"));
    }
}
