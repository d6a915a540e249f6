//! Bugs of the Redis scripts: in the full and the fast copy of every algorithm, and in the parts that they share.

use crate::mutants::mutant::Class::{
    Atomicity, ChargeOnDeny, Expiry, LiveChange, LostRefund, NewestForOldest, OffByOne, RoundingToMs,
    WideNumbers,
};
use crate::mutants::mutant::Mutant;

pub(super) const MUTANTS: &[Mutant] = mutants! {
    in "crates/slidegate-redis/scripts/sliding-log.lua" {
        OffByOne "redis/sliding-log/a-stamp-at-the-far-end-counts":
            "if (newest_tick - tick) % CYCLE_US < cut_us then return 0, base end"
            => "if (newest_tick - tick) % CYCLE_US <= cut_us then return 0, base end";
        NewestForOldest "redis/sliding-log/waits-for-the-newest":
            "state.newest - age_us + limit.window_us - now_us"
            => "state.newest + limit.window_us - now_us";
        LostRefund "redis/sliding-log/refund-forgotten":
            "if units > 0 then lower(state, high, units) end"
            => "";
        LostRefund "redis/sliding-log/refund-forgotten-in-a-ring":
            "    state.last = (state.last - units) % modulus\n  else"
            => "  else";
        Expiry "redis/sliding-log/a-long-log-keeps-its-old-ttl":
            "    call('PEXPIRE', key, ttl)\n"
            => "";
    }
    in "crates/slidegate-redis/scripts/fast-sliding-log.lua" {
        OffByOne "redis/fast-sliding-log/a-stamp-at-the-far-end-counts":
            "if (newest_tick - tick) % CYCLE_US >= cut_us then"
            => "if (newest_tick - tick) % CYCLE_US > cut_us then";
        ChargeOnDeny "redis/fast-sliding-log/charges-what-it-denied":
            "  elseif missing > 0 then"
            => "  elseif missing > 0 and not charging then";
        RoundingToMs "redis/fast-sliding-log/stamps-in-ms":
            "local stamp_tick = stamp % CYCLE_US"
            => "local stamp_tick = floor(stamp / 1000) * 1000 % CYCLE_US";
    }
    in "crates/slidegate-redis/scripts/sorted-set.lua" {
        OffByOne "redis/sorted-set/a-stamp-at-the-far-end-counts":
            "format(ABOVE_FORMAT, above_us)"
            => "format(NUMBER_FORMAT, above_us)";
        LostRefund "redis/sorted-set/refund-forgotten":
            "state.remove_members, state.removed = members, units"
            => "state.removed = units";
        Expiry "redis/sorted-set/a-set-without-a-ttl":
            "call('PEXPIRE', state.set, ttl)"
            => "call('PERSIST', state.set)";
    }
    in "crates/slidegate-redis/scripts/fast-sorted-set.lua" {
        OffByOne "redis/fast-sorted-set/a-stamp-at-the-far-end-counts":
            "'ZCOUNT', key, '(' .. cut"
            => "'ZCOUNT', key, cut";
        NewestForOldest "redis/fast-sorted-set/waits-for-the-newest":
            "string.format('%d', cost - units - 1)"
            => "'-1'";
        ChargeOnDeny "redis/fast-sorted-set/charges-what-it-denied":
            "elseif used_before + cost > units then"
            => "elseif used_before + cost > units and not charging then";
        LiveChange "redis/fast-sorted-set/ignores-a-changed-window":
            "signature == SIGNATURE and stored_window_us == window_us and"
            => "signature == SIGNATURE and";
    }
    in "crates/slidegate-redis/scripts/other-units.lua" {
        RoundingToMs "redis/other-units/a-request-counts-from-the-beginning-of-its-unit":
            "local end_us = (floor(score) + 1) * state.unit_us - 1"
            => "local end_us = floor(score) * state.unit_us";
        OffByOne "redis/other-units/a-stamp-at-the-far-end-counts":
            "local next_us = at_us + 1"
            => "local next_us = at_us";
        NewestForOldest "redis/other-units/converts-the-oldest-first":
            "call('ZRANGE', set, first, count - 1, 'WITHSCORES')"
            => "call('ZRANGE', set, 0, count - 1 - first, 'WITHSCORES')";
    }
    in "crates/slidegate-redis/scripts/compact-log.lua" {
        NewestForOldest "redis/compact-log/merged-bears-the-older-stamp":
            "ages_us[kept], marks[kept] = ages_us[index], 2 * units + 1"
            => "marks[kept] = 2 * units + 1";
        LostRefund "redis/compact-log/a-credit-leaves-no-trace":
            "if stamp > state.credited then state.credited = stamp end"
            => "";
    }
    in "crates/slidegate-redis/scripts/fast-compact-log.lua" {
        OffByOne "redis/fast-compact-log/a-stamp-at-the-far-end-counts":
            "if (newest_tick - tick) % CYCLE_US < cut_us then break end"
            => "if (newest_tick - tick) % CYCLE_US <= cut_us then break end";
        ChargeOnDeny "redis/fast-compact-log/charges-what-it-denied":
            "  if missing > 0 or not charging then"
            => "  if not charging then";
    }
    in "crates/slidegate-redis/scripts/sliding-buckets.lua" {
        OffByOne "redis/sliding-buckets/the-edge-counts-too-long":
            "aligned(effective_us + 1 - window_us, bucket_us)"
            => "aligned(effective_us - window_us, bucket_us)";
        LostRefund "redis/sliding-buckets/refund-forgotten":
            "if units > 0 then set_units(state, index, held - units) end"
            => "";
        OffByOne "redis/sliding-buckets/a-counter-overflows":
            "units >= RANGE_1 ^ bytes then"
            => "units > RANGE_1 ^ bytes then";
    }
    in "crates/slidegate-redis/scripts/fast-sliding-buckets.lua" {
        ChargeOnDeny "redis/fast-sliding-buckets/charges-what-it-denied":
            "if missing > 0 or retry_after_us > 0 or not charging then"
            => "if not charging then";
        RoundingToMs "redis/fast-sliding-buckets/waits-in-ms":
            "retry_after_us = newest_us - (ring_len - from) * bucket_us + leaves_after_us - now_us"
            => "retry_after_us = floor((newest_us - (ring_len - from) * bucket_us + leaves_after_us - now_us) / 1000) * 1000";
    }
    in "crates/slidegate-redis/scripts/sliding-counter.lua" {
        OffByOne "redis/sliding-counter/a-full-estimate-is-refused":
            "    if room < 0 then"
            => "    if room <= 0 and current > 0 then";
        NewestForOldest "redis/sliding-counter/refunds-the-newest":
            "count = 'previous' end"
            => "count = 'current' end";
    }
    in "crates/slidegate-redis/scripts/fast-sliding-counter.lua" {
        ChargeOnDeny "redis/fast-sliding-counter/charges-what-it-denied":
            "  elseif charging then\n    current"
            => "  end\n  if charging then\n    current";
        RoundingToMs "redis/fast-sliding-counter/elapsed-in-ms":
            "overlap_us = window_us - (now_us - start_us) end"
            => "overlap_us = window_us - floor((now_us - start_us) / 1000) * 1000 end";
    }
    in "crates/slidegate-redis/scripts/fixed-window.lua" {
        OffByOne "redis/fixed-window/the-last-unit-is-refused":
            "if count + cost > limit.units then"
            => "if count + cost >= limit.units then";
        NewestForOldest "redis/fixed-window/refunds-the-newest":
            "if rolled(state, state, now_us) ~= charged.stamp then return 0 end"
            => "";
    }
    in "crates/slidegate-redis/scripts/fast-fixed-window.lua" {
        ChargeOnDeny "redis/fast-fixed-window/charges-what-it-denied":
            "  elseif charging then\n    count"
            => "  end\n  if charging then\n    count";
        LiveChange "redis/fast-fixed-window/ignores-a-changed-window":
            "signature == SIGNATURE and stored_window_us == window_us and"
            => "signature == SIGNATURE and";
    }
    in "crates/slidegate-redis/scripts/gcra.lua" {
        RoundingToMs "redis/gcra/time-in-ms":
            "state.as_of_s, state.as_of_part_us = stored_instant(now_us)"
            => "state.as_of_s, state.as_of_part_us = stored_instant(floor(now_us / 1000) * 1000)";
        LiveChange "redis/gcra/refunds-at-another-speed":
            "    state.given_back = (state.given_back + units_of(limit, backlog_high, backlog_low)) % EXACT\n"
            => "";
    }
    in "crates/slidegate-redis/scripts/fast-gcra.lua" {
        OffByOne "redis/fast-gcra/a-full-line-is-refused":
            "if excess > 0 then"
            => "if excess >= 0 then";
        LiveChange "redis/fast-gcra/ignores-a-changed-limit":
            "and drained_per_window == units and high"
            => "and high";
    }
    in "crates/slidegate-redis/scripts/fast-write.lua" {
        Expiry "redis/ttl/a-short-window-has-no-margin":
            "if window_us < MARGIN_MIN_US then life_us = reset_after_us + MARGIN_MIN_US end"
            => "";
        Expiry "redis/ttl/a-charge-does-not-extend-a-long-log":
            "if not text or value_key ~= key then"
            => "if value_key ~= key then";
        Expiry "redis/ttl/a-charge-does-not-extend-a-sorted-set":
            "if not text or value_key ~= key then"
            => "if not text then";
    }
    in "crates/slidegate-redis/scripts/fast-reply-text.lua" {
        WideNumbers "redis/text/a-place-loses-its-generation":
            "'%012x%010x%06x', generation, place_s"
            => "'%012x%010x%06x', 0, place_s";
    }
    in "crates/slidegate-redis/scripts/short/begin.lua" {
        OffByOne "redis/short/decides-a-cost-above-the-limit":
            "or cost > units or"
            => "or";
        LiveChange "redis/short/takes-a-set-for-a-new-key":
            "if type(value) == 'table' then return general end"
            => "if type(value) == 'table' then value = '' end";
    }
    in "crates/slidegate-redis/scripts/codec.lua" {
        Expiry "redis/ttl/the-window-is-not-added":
            "return reset_after_us + window_us"
            => "return reset_after_us";
        LiveChange "redis/change/another-window-begins-empty":
            "charge_excess(state, limit, at_us, used)"
            => "";
        Atomicity "redis/sorted-set/a-full-redis-loses-units":
            "    call('SET', algorithm(SORTED_SET).value_name(key), text, 'PX', ttl(life_us))\n    algorithm(SORTED_SET).flush(key, states, ttl(life_us))"
            => "    algorithm(SORTED_SET).flush(key, states, ttl(life_us))\n    call('SET', algorithm(SORTED_SET).value_name(key), text, 'PX', ttl(life_us))";
    }
    in "crates/slidegate-redis/scripts/wide.lua" {
        WideNumbers "redis/wide/a-sum-loses-its-carry":
            "if low >= WIDE_BASE then return ah + bh + 1, low - WIDE_BASE end"
            => "";
        WideNumbers "redis/wide/decimal-text-loses-its-zeros":
            "'%.0f%015.0f'"
            => "'%.0f%.0f'";
        WideNumbers "redis/wide/a-quotient-is-one-too-small":
            "while rest >= d do"
            => "while rest > d do";
        OffByOne "redis/wide/an-equal-product-is-larger":
            "return left <= right end"
            => "return left < right end";
    }
    in "crates/slidegate-redis/scripts/constants.lua" {
        WideNumbers "redis/wide/products-are-rounded":
            "local EXACT = 9007199254740992"
            => "local EXACT = 1e300";
    }
    in "crates/slidegate-redis/scripts/admission.lua" {
        Atomicity "redis/admission/a-denied-admission-is-charged-in-part":
            "charging and allowed == 1 and charge.passes"
            => "charging and charge.passes";
        ChargeOnDeny "redis/admission/a-shadow-rule-is-charged-on-deny":
            "charging and allowed == 1 and charge.passes"
            => "charging and allowed == 1";
    }
    in "crates/slidegate-redis/scripts/receipt.lua" {
        Atomicity "redis/receipt/a-receipt-works-twice":
            "or record and call('EXISTS', record) == 1"
            => "";
        LostRefund "redis/receipt/only-the-first-charge-is-refunded":
            "for number = 1, states_count do\n  local cost, states, units"
            => "for number = 1, 1 do\n  local cost, states, units";
        LostRefund "redis/receipt/refunds-after-a-reset":
            " and state.generation == charged.generation then"
            => " then";
        Expiry "redis/receipt/expires-a-window-early":
            "if code == SLIDING_COUNTER then return stamp + 2 * window_us end"
            => "if code == SLIDING_COUNTER then return stamp + window_us end";
        OffByOne "redis/receipt/works-at-its-expiry":
            "us >= expires_us)"
            => "us > expires_us)";
    }
    in "crates/slidegate-redis/scripts/credit.lua" {
        LostRefund "redis/credit/forgotten":
            "if changed then write_as_used(KEYS[1], states) end"
            => "";
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_of_an_algorithm_has_a_mutant() {
        for name in [
            "sliding-log",
            "sorted-set",
            "compact-log",
            "sliding-buckets",
            "sliding-counter",
            "fixed-window",
            "gcra",
        ] {
            for script in [format!("{name}.lua"), format!("fast-{name}.lua")] {
                let file = format!("crates/slidegate-redis/scripts/{script}");
                assert!(MUTANTS.iter().any(|mutant| mutant.file == file), "{file}");
            }
        }
    }
}
