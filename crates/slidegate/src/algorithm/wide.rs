//! 128-bit products of units and microseconds: 10^12 units in 400 days are 3 x 10^25.

/// `units x time_us` without loss.
pub(super) fn product(units: u64, time_us: u64) -> u128 {
    u128::from(units) * u128::from(time_us)
}

/// A quotient as 64 bits; it fits, as the callers divide a product by one of its factors' bounds.
pub(super) fn narrow(quotient: u128) -> u64 {
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

/// `ceil(units x share_us / whole_us)`: a share of some units, rounded up.
pub(super) fn share_rounded_up(units: u64, share_us: u64, whole_us: u64) -> u64 {
    debug_assert!(share_us <= whole_us, "a share is at most the whole");
    if units == 0 {
        return 0;
    }
    // 64-bit division is several times faster, and nearly every real rule fits it.
    match units.checked_mul(share_us) {
        Some(product) => product.div_ceil(whole_us),
        None => narrow(product(units, share_us).div_ceil(u128::from(whole_us))),
    }
}

/// `floor(units x whole_us / share)`, saturating.
pub(super) fn quotient(units: u64, whole_us: u64, share: u64) -> u64 {
    match units.checked_mul(whole_us) {
        Some(product) => product / share,
        None => narrow(product(units, whole_us) / u128::from(share)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_agree_around_64_bits() {
        for units in [1, 2, 1 << 31, 1 << 32, (1 << 53) + 1, 1_000_000_000_000] {
            for whole_us in [1_000, 60_000_000, 1 << 40, 34_560_000_000_000] {
                for share_us in [1, whole_us / 3, whole_us - 1, whole_us] {
                    let exact = product(units, share_us);
                    let up = exact.div_ceil(u128::from(whole_us));
                    assert_eq!(u128::from(share_rounded_up(units, share_us, whole_us)), up);
                    let down = (product(units, whole_us) / u128::from(share_us)).min(u128::from(u64::MAX));
                    assert_eq!(u128::from(quotient(units, whole_us, share_us)), down);
                }
            }
        }
    }
}
