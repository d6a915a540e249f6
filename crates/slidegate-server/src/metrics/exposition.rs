//! The Prometheus text format, version 0.0.4, which every scraper understands.
//!
//! Rejected: a metrics crate. Its counters take a lock per label set, which is too slow for every request; with
//! counters of our own it would only write these few lines.

use std::fmt::{Display, Write};

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Names and values, in the order in which they are written.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// Writes metrics, family by family.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    pub(super) text: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a family of samples.
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// Adds a sample to the family, under its name and a suffix. The value is a decimal number.
    pub(super) fn sample(&mut self, suffix: &str, labels: Labels, value: impl Display) {
        let label = |(name, value): &(&str, &str)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        };
        let family = self.family;
        match labels.iter().map(label).collect::<Vec<_>>().join(",").as_str() {
            "" => self.line(format_args!("{family}{suffix} {value}")),
            labels => self.line(format_args!("{family}{suffix}{{{labels}}} {value}")),
        }
    }

    /// Writes a family of one sample.
    pub(super) fn single(&mut self, name: &'static str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample("", &[], value);
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a string takes everything");
    }
}

/// Microseconds as seconds, exact and without trailing zeros.
pub(super) fn seconds(us: u64) -> String {
    decimal(us, 6)
}

/// `number` with its last `decimals` digits after the point, computed without floats.
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
    fn families_have_help_and_type_and_label_values_are_escaped() {
        let mut to = Exposition::default();
        to.family("a_total", "counter", "One\\two\nthree.");
        to.sample("", &[("rule", "a\"b\\c\nd"), ("result", "ok")], 5);
        to.single("b", "gauge", "Plain.", "0.5");
        let lines = [
            "# HELP a_total One\\\\two\\nthree.",
            "# TYPE a_total counter",
            r#"a_total{rule="a\"b\\c\nd",result="ok"} 5"#,
            "# HELP b Plain.",
            "# TYPE b gauge",
            "b 0.5",
            "",
        ];
        assert_eq!(to.text, lines.join("\n"));
    }

    #[test]
    fn decimals_are_exact_and_shortest() {
        assert_eq!([0, 1, 1_000, 1_500_000].map(seconds), ["0", "0.000001", "0.001", "1.5"]);
        assert_eq!([86_400_000_000, u64::MAX].map(seconds), ["86400", "18446744073709.551615"]);
        assert_eq!(decimal(12_345, 2), "123.45");
    }
}
