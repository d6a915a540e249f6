//! Arguments of script calls: times and charges as ARGV.

use slidegate::Rule;
use slidegate::receipt::{ChargePlace, Position, ReceiptCharge};
use slidegate::rule::{Algorithm, Limit, TakeOver};
use slidegate::store::Call;

use crate::options::LogLayout;

const SECOND_US: u64 = 1_000_000;

/// The arguments of a call, in order.
#[derive(Debug)]
pub(crate) struct Args(pub(crate) Vec<Vec<u8>>, LogLayout);

impl Args {
    /// The first arguments of every call: its instant, and a number drawn for it.
    pub(crate) fn at(layout: LogLayout, call: Call, nonce: u64) -> Self {
        let mut args = Self(Vec::with_capacity(6), layout);
        match call.instant_us() {
            None => args.0.push(Vec::new()),
            Some(at_us) => args.number(at_us),
        }
        args.number(nonce);
        args
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.push(number.to_string().into_bytes());
    }

    /// An instant as seconds and microseconds.
    pub(crate) fn instant(&mut self, at_us: u64) {
        self.number(at_us / SECOND_US);
        self.number(at_us % SECOND_US);
    }

    /// A charge of `units` of a rule.
    pub(crate) fn push_charge(&mut self, rule: &Rule, units: u64) {
        self.number(units);
        self.form(rule.limits().iter().copied(), rule.take_over(), rule.shadow());
        for limit in rule.limits() {
            self.limit(limit);
        }
    }

    /// A charge of a receipt.
    pub(crate) fn push_receipt_charge(&mut self, charge: &ReceiptCharge) {
        self.number(charge.cost());
        // What a receipt was charged on has been taken over.
        self.form(charge.limits(), None, false);
        for place in charge.places() {
            self.limit(&place.limit);
            self.0.push(hexadecimal(&place_bytes(place)));
        }
    }

    /// The form: what all limits of a rule have in common, and how many there are. Trailing defaults are left out.
    fn form(
        &mut self,
        mut limits: impl ExactSizeIterator<Item = Limit>,
        take_over: Option<TakeOver>,
        shadow: bool,
    ) {
        let count = limits.len();
        let algorithm = limits.next().map_or(Algorithm::SlidingLog, |limit| limit.algorithm());
        let (parameter, edge) = match algorithm {
            Algorithm::CompactLog(entries) => (entries.get(), ""),
            Algorithm::SlidingBuckets(buckets, edge) => (buckets.get(), edge.name()),
            _ => (0, ""),
        };
        let name = match (algorithm, self.1, take_over) {
            (Algorithm::SlidingLog, LogLayout::SortedSet, None) => "sliding-log/sorted-set",
            (Algorithm::SlidingLog, LogLayout::SortedSet, Some(TakeOver::Milliseconds)) => {
                "sliding-log/sorted-set/ms"
            }
            (Algorithm::SlidingLog, LogLayout::SortedSet, Some(TakeOver::Seconds)) => {
                "sliding-log/sorted-set/s"
            }
            _ => algorithm.name(),
        };
        self.0.push(match (count, parameter, shadow) {
            (1, 0, false) => name.into(),
            (1, _, false) => format!("{name},{parameter},{edge}").into(),
            (count, _, false) => format!("{name},{parameter},{edge},{count}").into(),
            (count, _, true) => format!("{name},{parameter},{edge},{count},shadow").into(),
        });
    }

    fn limit(&mut self, limit: &Limit) {
        self.number(limit.units());
        self.number(limit.window_us());
    }
}

/// The text form of a place.
fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    let digit = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// A place as the scripts encode it.
fn place_bytes(place: &ChargePlace) -> Vec<u8> {
    let mut bytes = place.order.to_be_bytes()[2..].to_vec();
    let instant = |bytes: &mut Vec<u8>, at_us: u64| {
        bytes.extend(&(at_us / SECOND_US).to_be_bytes()[3..]);
        bytes.extend(&(at_us % SECOND_US).to_be_bytes()[5..]);
    };
    match place.position {
        Position::At(at) => instant(&mut bytes, at * position_step_us(&place.limit)),
        Position::Line { charged_us, backlog, given_back } => {
            instant(&mut bytes, charged_us);
            bytes.extend(backlog.get().to_be_bytes());
            bytes.extend(given_back.to_be_bytes());
        }
    }
    bytes
}

/// Microseconds per step of a position: scripts identify windows and buckets by their start.
pub(crate) fn position_step_us(limit: &Limit) -> u64 {
    match limit.algorithm() {
        Algorithm::SlidingBuckets(..) | Algorithm::SlidingCounter | Algorithm::FixedWindow => {
            limit.bucket_us()
        }
        Algorithm::SlidingLog | Algorithm::CompactLog(_) | Algorithm::Gcra => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form of a charge of one unit, and how many arguments the charge has.
    fn form(layout: LogLayout, rule: &Rule) -> (String, usize) {
        let mut args = Args(Vec::new(), layout);
        args.push_charge(rule, 1);
        (String::from_utf8(args.0[1].clone()).unwrap(), args.0.len())
    }

    #[test]
    fn a_form_says_what_is_taken_over_only_where_the_rule_does() {
        let log = || Rule::builder("api").limit("5/60s".parse().unwrap());
        for (unit, sets) in [
            (None, "sliding-log/sorted-set"),
            (Some(TakeOver::Milliseconds), "sliding-log/sorted-set/ms"),
            (Some(TakeOver::Seconds), "sliding-log/sorted-set/s"),
        ] {
            let with_unit = |rule| unit.into_iter().fold(rule, slidegate::RuleBuilder::take_over);
            let rule = with_unit(log()).build().unwrap();
            assert_eq!(form(LogLayout::SortedSet, &rule), (sets.to_owned(), 4));
            assert_eq!(form(LogLayout::Packed, &rule), ("sliding-log".to_owned(), 4));
            let shadow = with_unit(log()).shadow(true).build().unwrap();
            assert_eq!(form(LogLayout::SortedSet, &shadow), (format!("{sets},0,,1,shadow"), 4));
        }
        let gcra = log().algorithm(Algorithm::Gcra).build().unwrap();
        assert_eq!(form(LogLayout::SortedSet, &gcra), ("gcra".to_owned(), 4));
    }
}
