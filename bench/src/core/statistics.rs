//! Medians, spreads and ratios, in whole numbers.

/// The middle of several figures, and the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) median: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Spread {
    /// Nothing if there are no figures.
    pub(crate) fn of(mut figures: Vec<u64>) -> Option<Self> {
        figures.sort_unstable();
        let (min, max) = (*figures.first()?, *figures.last()?);
        let upper = figures[figures.len() / 2];
        let lower = figures[(figures.len() - 1) / 2];
        Some(Self { median: lower.midpoint(upper), min, max })
    }
}

/// `part / whole` with two decimals; a dash where either is missing.
pub(crate) fn ratio(part: Option<Spread>, whole: Option<Spread>) -> String {
    match (part, whole) {
        (Some(part), Some(whole)) if whole.median > 0 => {
            let hundredths = (part.median * 100 + whole.median / 2) / whole.median;
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        }
        _ => "-".to_owned(),
    }
}

/// Picoseconds as nanoseconds, with a decimal where it matters.
pub(crate) fn ns(ps: u64) -> String {
    if ps >= 100_000 {
        return ((ps + 500) / 1_000).to_string();
    }
    let tenths = (ps + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let spread = |figures: &[u64]| Spread::of(figures.to_vec());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[9, 1, 5]), Some(Spread { median: 5, min: 1, max: 9 }));
        assert_eq!(spread(&[4, 8]), Some(Spread { median: 6, min: 4, max: 8 }));
    }

    #[test]
    fn figures_are_rounded_where_they_are_shown() {
        assert_eq!((ns(4_949), ns(99_951), ns(657_500)), ("4.9".into(), "100.0".into(), "658".into()));
        let of = |figure| Spread::of(vec![figure]);
        assert_eq!(ratio(of(658), of(219)), "3.00");
        assert_eq!((ratio(None, of(1)), ratio(of(1), of(0))), ("-".into(), "-".into()));
    }
}
