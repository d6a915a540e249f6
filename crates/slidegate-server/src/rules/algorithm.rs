//! An algorithm and its parameters as configuration files and inline rules write them.

use slidegate::Algorithm;
use slidegate::rule::{AlgorithmError, Buckets, Edge, Entries};

use crate::text::nearest;

/// An invalid field and the error text, which begins with the field.
pub(crate) type ParameterError = (&'static str, String);

/// The four fields that choose an algorithm; absent ones take their defaults.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AlgorithmFields<'a> {
    pub(crate) algorithm: Option<&'a str>,
    pub(crate) buckets: Option<u64>,
    pub(crate) edge: Option<&'a str>,
    pub(crate) entries: Option<u64>,
}

impl AlgorithmFields<'_> {
    /// The algorithm, or all errors.
    pub(crate) fn parse(self) -> Result<Algorithm, Vec<ParameterError>> {
        let mut errors = Vec::new();
        let named = valid_or_push("algorithm", self.algorithm.map(str::parse), &mut errors);
        let buckets = valid_or_push("buckets", self.buckets.map(Buckets::new), &mut errors);
        let edge = valid_or_push("edge", self.edge.map(str::parse::<Edge>), &mut errors);
        let entries = valid_or_push("entries", self.entries.map(Entries::new), &mut errors);
        let named = match named {
            Some(named) => named,
            None if self.algorithm.is_none() => Algorithm::default(),
            // Without the algorithm it is unknown which parameters belong to it.
            None => return Err(errors),
        };
        self.misplaced(named, &mut errors);
        match named {
            _ if !errors.is_empty() => Err(errors),
            Algorithm::SlidingBuckets(..) => {
                Ok(Algorithm::SlidingBuckets(buckets.unwrap_or(Buckets::DEFAULT), edge.unwrap_or_default()))
            }
            Algorithm::CompactLog(_) => Ok(Algorithm::CompactLog(entries.unwrap_or(Entries::DEFAULT))),
            other => Ok(other),
        }
    }

    /// Refuses parameters of another algorithm: silently ignored, they would look effective.
    fn misplaced(self, named: Algorithm, errors: &mut Vec<ParameterError>) {
        let given = [
            ("buckets", self.buckets.is_some(), "sliding-buckets"),
            ("edge", self.edge.is_some(), "sliding-buckets"),
            ("entries", self.entries.is_some(), "compact-log"),
        ];
        for (field, is_given, owner) in given {
            if is_given && owner != named.name() {
                // One error per field: its range does not matter here.
                errors.retain(|(other, _)| *other != field);
                let remedy = "remove it or change the algorithm";
                errors.push((field, format!("{field}: is only for {owner}, not for {named}; {remedy}")));
            }
        }
    }
}

/// The value, if present and valid; its error goes to `errors`.
fn valid_or_push<T>(
    field: &'static str,
    value: Option<Result<T, AlgorithmError>>,
    errors: &mut Vec<ParameterError>,
) -> Option<T> {
    value?.map_err(|error| errors.push((field, with_nearest(&error)))).ok()
}

/// The error, with the nearest name instead of all names.
fn with_nearest(error: &AlgorithmError) -> String {
    let (field, text, meant) = match error {
        AlgorithmError::Unknown { text } => {
            ("algorithm", text, nearest(text, Algorithm::ALL.map(Algorithm::name).into_iter()))
        }
        AlgorithmError::UnknownEdge { text } => {
            ("edge", text, nearest(text, Edge::ALL.map(Edge::name).into_iter()))
        }
        _ => return error.to_string(),
    };
    match meant {
        Some(meant) => format!("{field}: `{text}` is unknown; did you mean `{meant}`?"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(fields: AlgorithmFields) -> Vec<String> {
        fields.parse().unwrap_err().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn fields_choose_an_algorithm() {
        assert_eq!(AlgorithmFields::default().parse(), Ok(Algorithm::SlidingLog));
        let named = |algorithm| AlgorithmFields { algorithm: Some(algorithm), ..AlgorithmFields::default() };
        for algorithm in Algorithm::ALL {
            assert_eq!(named(algorithm.name()).parse(), Ok(algorithm));
        }
        let ring = AlgorithmFields { buckets: Some(30), edge: Some("dropped"), ..named("sliding-buckets") };
        let expected = Algorithm::SlidingBuckets(Buckets::new(30).unwrap(), Edge::Dropped);
        assert_eq!(ring.parse(), Ok(expected));
        let log = AlgorithmFields { entries: Some(16), ..named("compact-log") };
        assert_eq!(log.parse(), Ok(Algorithm::CompactLog(Entries::new(16).unwrap())));
    }

    #[test]
    fn all_errors_are_reported_and_begin_with_their_field() {
        let fields = AlgorithmFields {
            algorithm: Some("sliding-buckets"),
            buckets: Some(0),
            edge: Some("half"),
            entries: Some(0),
        };
        let found = texts(fields);
        assert!(found[0].starts_with("buckets: 0 is outside"), "{found:?}");
        assert!(found[1].starts_with("edge: `half` is unknown"), "{found:?}");
        let remedy = "not for sliding-buckets; remove it or change the algorithm";
        assert_eq!(found[2], format!("entries: is only for compact-log, {remedy}"));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_one() {
        let misspelt = |algorithm, edge| {
            texts(AlgorithmFields { algorithm: Some(algorithm), edge, ..AlgorithmFields::default() })
        };
        let found = misspelt("slidng-log", None);
        assert_eq!(found, ["algorithm: `slidng-log` is unknown; did you mean `sliding-log`?"]);
        let found = misspelt("sliding-buckets", Some("droped"));
        assert_eq!(found, ["edge: `droped` is unknown; did you mean `dropped`?"]);
        assert!(misspelt("token", None)[0].ends_with(
            "; choose sliding-log, compact-log, sliding-buckets, \
            sliding-counter, fixed-window or gcra"
        ));
    }

    #[test]
    fn parameters_of_an_unknown_algorithm_are_not_judged() {
        let fields =
            AlgorithmFields { algorithm: Some("leaky"), buckets: Some(60), ..AlgorithmFields::default() };
        assert_eq!(texts(fields).len(), 1);
        assert!(texts(fields)[0].starts_with("algorithm: `leaky` is unknown"));
    }
}
