//! The text that Prometheus reads, version 0.0.4: what every scraper understands, and a person with `curl` too.
//!
//! Rejected: a crate for it. Its counters are found behind a lock per label set, which is too dear where every
//! request counts, and beside counters of our own it would only write these few lines.

use std::fmt::Write;

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Names and values, in the order in which they are written.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// Metrics as they are written, family by family.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a family; the samples that follow are its.
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        self.line(&format!("# HELP {name} {}", escaped(help, &[('\\', "\\\\"), ('\n', "\\n")])));
        self.line(&format!("# TYPE {name} {kind}"));
    }

    /// A sample of the family, under its name and a suffix. The value is a decimal number.
    pub(super) fn sample(&mut self, suffix: &str, labels: Labels, value: &str) {
        let family = self.family;
        let label = |&(name, value): &(&str, &str)| {
            format!("{name}=\"{}\"", escaped(value, &[('\\', "\\\\"), ('"', "\\\""), ('\n', "\\n")]))
        };
        let labels: Vec<String> = labels.iter().map(label).collect();
        match labels.as_slice() {
            [] => self.line(&format!("{family}{suffix} {value}")),
            labels => self.line(&format!("{family}{suffix}{{{}}} {value}", labels.join(","))),
        }
    }

    /// A family of one sample.
    pub(super) fn single(&mut self, name: &'static str, kind: &str, help: &str, value: &str) {
        self.family(name, kind, help);
        self.sample("", &[], value);
    }

    /// Everything that was written.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a string takes everything");
    }
}

fn escaped(text: &str, escapes: &[(char, &str)]) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match escapes.iter().find(|(from, _)| *from == character) {
            Some((_, to)) => safe.push_str(to),
            None => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_says_what_it_is_and_values_cannot_break_out() {
        let mut to = Exposition::default();
        to.family("a_total", "counter", "One\\two\nthree.");
        to.sample("", &[("rule", "a\"b\\c\nd"), ("result", "ok")], "5");
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
        assert_eq!(to.finish(), lines.join("\n"));
    }
}
