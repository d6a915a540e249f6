//! Times as decimals of a second, without a float on the way.

/// Nanoseconds as seconds, with as many decimals as it takes.
pub(super) fn seconds(ns: u64) -> String {
    decimal(ns, 9)
}

/// Microseconds as seconds.
pub(super) fn seconds_of_us(us: u64) -> String {
    decimal(us, 6)
}

/// `number` with its last `decimals` digits behind the point.
pub(super) fn decimal(number: u64, decimals: usize) -> String {
    let digits = format!("{number:0>width$}", width = decimals + 1);
    let (whole, part) = digits.split_at(digits.len() - decimals);
    match part.trim_end_matches('0') {
        "" => whole.to_owned(),
        part => format!("{whole}.{part}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_as_short_as_can_be() {
        assert_eq!([0, 1, 1_000, 1_500_000_000].map(seconds), ["0", "0.000000001", "0.000001", "1.5"]);
        assert_eq!(seconds(u64::MAX), "18446744073.709551615");
        assert_eq!([1_000, 86_400_000_000].map(seconds_of_us), ["0.001", "86400"]);
        assert_eq!(decimal(12_345, 2), "123.45");
    }
}
