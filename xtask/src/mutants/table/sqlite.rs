//! Bugs of the SQLite store.

use crate::mutants::mutant::Class::{
    Atomicity, ChargeOnDeny, Expiry, LiveChange, LostRefund, OffByOne, RoundingToMs, WrongState,
};
use crate::mutants::mutant::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    in "crates/slidegate-sqlite/src/engine.rs" {
        Atomicity "sqlite/admission/a-denied-admission-is-charged-in-part":
            "if !passes || !verdicts.iter().any(Verdict::allowed) {"
            => "if !passes && !verdicts.iter().any(Verdict::allowed) {";
        ChargeOnDeny "sqlite/admission/a-shadow-rule-is-charged-on-deny":
            "        if !verdict.allowed() {"
            => "        if !verdict.allowed() && !verdict.shadow() {";
        RoundingToMs "sqlite/admission/time-in-ms":
            "step(connection, &mut meta, now_us)?"
            => "step(connection, &mut meta, now_us / 1_000 * 1_000)?";
        Expiry "sqlite/admission/sweeps-keys-of-a-clock-set-back":
            "rows::sweep_some(connection, now_us.min(meta.noted_us))?;"
            => "rows::sweep_some(connection, meta.noted_us)?;";
        LiveChange "sqlite/change/a-changed-limit-is-ignored":
            "if changed != row.record {"
            => "if changed != row.record && wrote {";
        LostRefund "sqlite/credit/forgotten":
            "            rows::save(connection, meta, rule, key, &after, before)?;\n"
            => "            let _ = before;\n";
        LostRefund "sqlite/reset/forgotten":
            "            rows::delete(connection, rule, key)?;\n"
            => "";
    }
    in "crates/slidegate-sqlite/src/clock_steps.rs" {
        ChargeOnDeny "sqlite/clock/every-denial-records-a-step":
            "    (meta.noted_us, meta.presented_us) = (now_us, meta.presented_us.min(now_us));\n"
            => "";
        OffByOne "sqlite/clock/a-second-is-a-step":
            "if from_us <= now_us.saturating_add(TOLERANCE_US) {"
            => "if from_us < now_us.saturating_add(TOLERANCE_US) {";
        Expiry "sqlite/clock/no-state-is-moved":
            "    if epoch >= meta.epoch {"
            => "    if epoch <= meta.epoch {";
        LostRefund "sqlite/clock/a-moved-state-keeps-its-receipts":
            "record.set_back(meta.order + 1, from_us, to_us)"
            => "record.set_back(0, from_us, to_us)";
        Atomicity "sqlite/clock/a-receipt-from-before-a-step-works-twice":
            "FILTER (WHERE ord >= ?1)"
            => "FILTER (WHERE ord < ?1)";
    }
    in "crates/slidegate-sqlite/src/store_file.rs" {
        WrongState "sqlite/file/a-replaced-file-is-not-noticed":
            "            id if id != database.id => Some("
            => "            id if id.is_none() && database.id.is_some() => Some(";
        Atomicity "sqlite/file/the-log-of-the-old-file-stays":
            "                let _ = fs::remove_file(&file.path);\n"
            => "";
    }
    in "crates/slidegate-sqlite/src/receipts.rs" {
        LostRefund "sqlite/receipt/refund-forgotten":
            "    if given > 0 {\n        rows::save("
            => "    if given > u64::MAX / 2 {\n        rows::save(";
        LostRefund "sqlite/receipt/only-the-first-charge-is-refunded":
            "for charge in receipt.charges() {\n                units += refund("
            => "for charge in receipt.charges().iter().take(1) {\n                units += refund(";
        LostRefund "sqlite/receipt/settled-above-cost-forgotten":
            "Some(excess) => charge_excess(connection, meta, now_us, charge, excess)?,"
            => "Some(excess) => excess,";
        Atomicity "sqlite/receipt/works-twice":
            "if expires_us <= expired_by_us || is_spent(connection, receipt.id())? {"
            => "if expires_us <= expired_by_us {";
        OffByOne "sqlite/receipt/works-at-its-expiry":
            "if expires_us <= expired_by_us || is_spent("
            => "if expires_us < expired_by_us || is_spent(";
        Expiry "sqlite/receipt/an-expired-one-revives-when-the-clock-is-set-back":
            "            meta.presented_us = latest_us;\n"
            => "";
    }
    in "crates/slidegate-sqlite/src/rows.rs" {
        WrongState "sqlite/rows/another-rule-of-the-key-is-overwritten":
            "UPDATE state SET bytes = ?3, epoch = ?4 WHERE rule = ?1 AND key = ?2"
            => "UPDATE state SET bytes = ?3, epoch = ?4 WHERE rule >= ?1 AND key = ?2";
        Expiry "sqlite/rows/a-charge-does-not-extend-the-expiry":
            "Some(before) if before == signed(expires_us) => {"
            => "Some(before) if before <= signed(expires_us) => {";
        Expiry "sqlite/rows/sweeps-live-keys":
            "sweep.execute(params![signed(until_us), SWEPT_MAX])"
            => "sweep.execute(params![signed(until_us + 2_000_000), SWEPT_MAX])";
    }
    in "crates/slidegate-sqlite/src/transaction.rs" {
        Atomicity "sqlite/transaction/a-denial-keeps-the-transaction-open":
            "            let _ = execute(self.0, \"ROLLBACK\");\n"
            => "";
        Atomicity "sqlite/transaction/each-statement-alone":
            "LockMode::Deferred => \"BEGIN\","
            => "LockMode::Deferred => \"PRAGMA query_only\",";
    }
};
