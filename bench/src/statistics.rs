//! Medians, spreads and ratios, in whole numbers.

/// The median of several figures, with minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// The median; between the two middle figures of an even number.
    pub median: u64,
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

impl Spread {
    /// `None` if there are no figures.
    #[must_use]
    pub fn of(mut figures: Vec<u64>) -> Option<Self> {
        figures.sort_unstable();
        let (min, max) = (*figures.first()?, *figures.last()?);
        let upper = figures[figures.len() / 2];
        let lower = figures[(figures.len() - 1) / 2];
        Some(Self { median: lower.midpoint(upper), min, max })
    }
}

/// `part / whole` with two decimals; a dash where either is missing.
#[must_use]
pub fn ratio(part: Option<Spread>, whole: Option<Spread>) -> String {
    match (part, whole) {
        (Some(part), Some(whole)) if whole.median > 0 => {
            let hundredths = (part.median * 100 + whole.median / 2) / whole.median;
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        }
        _ => "-".to_owned(),
    }
}

/// A figure divided by 1,000, as picoseconds in nanoseconds; with a decimal below 100.
#[must_use]
pub fn thousands(figure: u64) -> String {
    if figure >= 100_000 {
        return ((figure + 500) / 1_000).to_string();
    }
    let tenths = (figure + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Nanoseconds in microseconds or milliseconds.
#[must_use]
pub fn short_time(ns: u64) -> String {
    if ns < 1_000_000 { format!("{} us", thousands(ns)) } else { format!("{} ms", thousands(ns / 1_000)) }
}

/// Bytes in megabytes.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    ((bytes + 500_000) / 1_000_000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_midpoint() {
        let spread = |figures: &[u64]| Spread::of(figures.to_vec());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[9, 1, 5]), Some(Spread { median: 5, min: 1, max: 9 }));
        assert_eq!(spread(&[4, 8]), Some(Spread { median: 6, min: 4, max: 8 }));
    }

    #[test]
    fn figures_are_rounded_where_they_are_shown() {
        let figures = [4_949, 99_951, 657_500].map(thousands);
        assert_eq!(figures, ["4.9", "100.0", "658"]);
        assert_eq!((short_time(80_040), short_time(3_097_000)), ("80.0 us".into(), "3.1 ms".into()));
        assert_eq!(megabytes(419_500_000), "420");
        let of = |figure| Spread::of(vec![figure]);
        assert_eq!(ratio(of(658), of(219)), "3.00");
        assert_eq!((ratio(None, of(1)), ratio(of(1), of(0))), ("-".into(), "-".into()));
    }
}
