//! A strict reader of the text format, for tests: what it accepts, Prometheus does.

use std::collections::{BTreeMap, BTreeSet};

/// A sample: its name, its labels, its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: String,
}

/// A family and its samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) samples: Vec<Sample>,
}

/// All families, or the first line that is wrong and why.
pub(super) fn parse(text: &str) -> Result<Vec<Family>, String> {
    if !text.ends_with('\n') {
        return Err("the last line does not end".into());
    }
    let mut families: Vec<Family> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let at = |why: &str| format!("{why}: {line}");
        let help = line.strip_prefix("# HELP ").ok_or_else(|| at("a family begins with its help"))?;
        let (name, help) = help.split_once(' ').ok_or_else(|| at("no help"))?;
        let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")?.strip_prefix(name));
        let kind = kind.and_then(|kind| kind.strip_prefix(' ')).ok_or_else(|| at("no type follows"))?;
        if !is_name(name) || help.is_empty() || !["counter", "gauge", "histogram"].contains(&kind) {
            return Err(at("not a family"));
        }
        if (kind == "counter") != name.ends_with("_total") {
            return Err(at("counters, and they alone, end in _total"));
        }
        if families.iter().any(|family| family.name == name) {
            return Err(at("the family stands here twice"));
        }
        let mut samples = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let sample = sample(line).ok_or_else(|| format!("not a sample: {line}"))?;
            if !belongs(&sample.name, name, kind)
                || !seen.insert((sample.name.clone(), sample.labels.clone()))
            {
                return Err(format!("of another family, or a second time: {line}"));
            }
            samples.push(sample);
        }
        let family = Family { name: name.into(), kind: kind.into(), samples };
        if family.kind == "histogram" {
            buckets(&family)?;
        }
        families.push(family);
    }
    Ok(families)
}

fn belongs(sample: &str, family: &str, kind: &str) -> bool {
    match sample.strip_prefix(family) {
        Some("") => kind != "histogram",
        Some("_bucket" | "_sum" | "_count") => kind == "histogram",
        _ => false,
    }
}

/// Buckets ascend, end with `+Inf`, and hold as many as the count says.
fn buckets(family: &Family) -> Result<(), String> {
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        labels.remove("le");
        series.entry(labels).or_default().push(sample);
    }
    for (labels, samples) in series {
        let wrong = |why: &str| format!("{} {labels:?}: {why}", family.name);
        let [buckets @ .., sum, count] = &samples[..] else { return Err(wrong("no sum and count")) };
        let bound = |bucket: &&Sample| bucket.labels.get("le").and_then(|le| le.parse::<f64>().ok());
        let bounds: Option<Vec<f64>> = buckets.iter().map(bound).collect();
        let bounds = bounds.ok_or_else(|| wrong("a bucket without a bound"))?;
        if !bounds.windows(2).all(|pair| pair[0] < pair[1]) || bounds.last() != Some(&f64::INFINITY) {
            return Err(wrong("bounds do not ascend to +Inf"));
        }
        let counts: Vec<u64> = buckets.iter().filter_map(|bucket| bucket.value.parse().ok()).collect();
        if counts.len() != buckets.len() || !counts.is_sorted() {
            return Err(wrong("counts fall"));
        }
        let complete = sum.name.ends_with("_sum")
            && count.name.ends_with("_count")
            && counts.last().map(u64::to_string).as_ref() == Some(&count.value);
        if !complete {
            return Err(wrong("the count is not that of the last bucket"));
        }
    }
    Ok(())
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = value.strip_prefix(' ')?;
    let number =
        value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && value.parse::<f64>().is_ok();
    (is_name(name) && number).then(|| Sample { name: name.into(), labels, value: value.into() })
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        if !is_name(name) || name.contains(':') || labels.insert(name.to_owned(), value).is_some() {
            return None;
        }
        match after.split_at_checked(1)? {
            (",", more) => rest = more,
            ("}", after) => return Some((labels, after)),
            _ => return None,
        }
    }
}

/// A value up to its closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                _ => return None,
            }),
            character => value.push(character),
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(begins) && name.chars().all(|c| begins(c) || c.is_ascii_digit())
}

#[test]
fn what_prometheus_would_refuse_is_refused() {
    let good = "# HELP a_total Help.\n# TYPE a_total counter\na_total{x=\"1\\\"\"} 5\n";
    assert_eq!(parse(good).unwrap()[0].samples[0].labels["x"], "1\"");
    for (from, to) in [
        ("} 5\n", "} 5"),
        ("# HELP a_total Help.\n", ""),
        ("counter", "summary"),
        ("TYPE a_total", "TYPE b_total"),
        ("} 5", "} five"),
        ("} 5", "} -5"),
        ("}", ",}"),
        ("{x=", "{1x="),
        ("\\\"\"", "\\t\""),
        ("\na_total{", "\nb_total{"),
        ("5\n", "5\na_total{x=\"1\\\"\"} 6\n"),
        ("a_total", "a"),
    ] {
        let bad = good.replace(from, to);
        assert!(parse(&bad).is_err(), "{bad}");
    }
    let bucket = |le: &str, count: u32| format!("h_bucket{{le=\"{le}\"}} {count}\n");
    let histogram = |buckets: &str, count| {
        format!("# HELP h Help.\n# TYPE h histogram\n{buckets}h_sum 1\nh_count {count}\n")
    };
    assert!(parse(&histogram(&[bucket("1", 1), bucket("+Inf", 2)].concat(), 2)).is_ok());
    for (buckets, count) in [
        ([bucket("1", 1), bucket("2", 2)], 2),
        ([bucket("1", 3), bucket("+Inf", 2)], 2),
        ([bucket("1", 1), bucket("+Inf", 2)], 3),
        ([bucket("+Inf", 1), bucket("1", 2)], 2),
    ] {
        assert!(parse(&histogram(&buckets.concat(), count)).is_err(), "{buckets:?} {count}");
    }
}
