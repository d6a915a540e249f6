//! The benchmark in one table, and in three lines for the README.

use crate::markdown::Table;
use crate::results::Measurement;
use crate::sample::{Sample, spread};
use crate::scenario::{Effort, Measure, Scenario};
use crate::statistics::{Spread, megabytes, ratio, short_time, thousands};
use crate::subject::Subject;

const COLUMNS: [(Scenario, &str); 10] = [
    (Scenario::Hot1, "hot 1T"),
    (Scenario::Hot2, "hot 2T"),
    (Scenario::Uniform1, "1M uniform 1T"),
    (Scenario::Uniform2, "1M uniform 2T"),
    (Scenario::Zipf1, "1M zipf 1T"),
    (Scenario::Zipf2, "1M zipf 2T"),
    (Scenario::Large1, "10M uniform 1T"),
    (Scenario::Large2, "10M uniform 2T"),
    (Scenario::Memory, "B/key 1M"),
    (Scenario::MemoryLarge, "B/key 10M"),
];

/// The subjects that are compared with governor and the floor.
const COMPARED: [Subject; 4] =
    [Subject::SlidingCounter, Subject::Gcra, Subject::SlidingLog, Subject::SlidingCounterBatch];

/// The lines and columns of the README.
const BRIEF: [Subject; 3] = [Subject::SlidingCounter, Subject::SlidingLog, Subject::Governor];
const BRIEF_COLUMNS: [Scenario; 6] =
    [Scenario::Hot1, Scenario::Hot2, Scenario::Uniform1, Scenario::Zipf1, Scenario::Large1, Scenario::Memory];

/// The totals of memory in the text below the table.
const TOTALS: [(Subject, Scenario); 5] = [
    (Subject::SlidingCounter, Scenario::MemoryLarge),
    (Subject::FixedWindow, Scenario::MemoryLarge),
    (Subject::SlidingBuckets, Scenario::MemorySmall),
    (Subject::SlidingBuckets, Scenario::MemoryLarge),
    (Subject::CompactLog, Scenario::Saturated),
];

/// The table and its conditions.
pub(crate) fn markdown(measured: &Measurement) -> String {
    let samples = &measured.samples;
    let mut text = format!("{}\n", table(samples));
    let mut line = |line: &str| text.extend([line, "\n"]);
    line(
        "Nanoseconds per decision and thread (T); resident bytes per key, the key included, after one request of each key,",
    );
    line(
        "for sliding-log after ten. In its uniform columns sliding-log ends at about ten requests per key; five fit the slot,",
    );
    line(
        "eleven once tables have adapted, and busier keys take longer. Its hot key's window is 1 ms. All requests are admitted.",
    );
    line("jemalloc and the same keys for all. The floor has no time, no limit and no threads;");
    line("pingora-limits estimates in a sketch of fixed size.");
    for sentence in [totals(samples), growth(samples)].iter().flatten() {
        line(sentence);
    }
    line(&format!(
        "Medians of {} runs, taken in turns, on {}: `cargo xtask bench core --large`.",
        runs(samples),
        measured.setting.machine
    ));
    line("Every sample is in [bench/results/core.json](../bench/results/core.json).");
    text
}

/// Three lines and a link.
pub(crate) fn brief(measured: &Measurement) -> String {
    let samples = &measured.samples;
    let columns = COLUMNS.iter().filter(|(scenario, _)| BRIEF_COLUMNS.contains(scenario));
    let mut head = vec!["ns per decision".to_owned()];
    head.extend(columns.clone().map(|(_, title)| (*title).to_owned()));
    let mut table = Table::new(head);
    for subject in BRIEF {
        let figures = columns
            .clone()
            .map(|&(scenario, _)| cell(spread(samples, subject, scenario, Sample::figure), scenario));
        table.push([subject.title()].into_iter().chain(figures).collect());
    }
    format!(
        "{table}\nOne or two threads (T), resident bytes per key, on {}. All limiters, memory, growth and the profile of a \
         check:\n[docs/performance.md](docs/performance.md).\n",
        measured.setting.machine
    )
}

/// The scenarios without a sample, by subject.
pub(crate) fn missing(samples: &[Sample]) -> Vec<String> {
    let missing = |subject: Subject| {
        let able = Scenario::all().into_iter().filter(|&scenario| subject.takes_part(scenario));
        let absent = able.filter(|&scenario| spread(samples, subject, scenario, |_| Some(0)).is_none());
        let names: Vec<_> = absent.map(|scenario| scenario.to_string()).collect();
        (!names.is_empty()).then(|| format!("{subject}: {}", names.join(", ")))
    };
    Subject::all().into_iter().filter_map(missing).collect()
}

fn table(samples: &[Sample]) -> Table {
    let of = |subject, scenario| spread(samples, subject, scenario, Sample::figure);
    let row = |title: String, cell: &dyn Fn(Scenario) -> String| {
        [vec![title], COLUMNS.map(|(scenario, _)| cell(scenario)).to_vec()].concat()
    };
    let mut head = vec!["ns per decision".to_owned()];
    head.extend(COLUMNS.map(|(_, title)| title.to_owned()));
    let mut table = Table::new(head);
    for subject in Subject::all() {
        if COLUMNS.iter().any(|&(scenario, _)| of(subject, scenario).is_some()) {
            table.push(row(subject.title(), &|scenario| cell(of(subject, scenario), scenario)));
        }
    }
    for ours in COMPARED {
        let by_governor = |scenario| ratio(of(Subject::Governor, scenario), of(ours, scenario));
        let by_floor = |scenario| ratio(of(ours, scenario), of(Subject::Floor, scenario));
        table.push(row(format!("governor / {ours}"), &by_governor));
        table.push(row(format!("{ours} / floor"), &by_floor));
    }
    table
}

fn cell(figure: Option<Spread>, scenario: Scenario) -> String {
    match (figure, scenario.measure()) {
        (None, _) => "-".to_owned(),
        (Some(bytes), Measure::Memory) => bytes.median.to_string(),
        (Some(time), _) => thousands(time.median),
    }
}

/// The number of runs per median.
fn runs(samples: &[Sample]) -> String {
    let timed = samples.iter().filter(|sample| sample.decision_ps.is_some());
    let counts = timed.map(|sample| samples.iter().filter(|other| other.same_kind(sample)).count() as u64);
    match Spread::of(counts.collect()) {
        None => "no".to_owned(),
        Some(count) if count.min == count.max => count.min.to_string(),
        Some(count) => format!("{} to {}", count.min, count.max),
    }
}

fn totals(samples: &[Sample]) -> Option<String> {
    let total = |(subject, scenario): (Subject, Scenario)| {
        let bytes = spread(samples, subject, scenario, |sample| sample.resident_bytes)?.median;
        let keys = scenario.title(Effort::Full).replace("memory, ", "");
        Some(format!("{subject} {} MB for {keys}", megabytes(bytes)))
    };
    sentence("Total memory", TOTALS.into_iter().filter_map(total))
}

/// The processor time of the worst call. The minimum too, because the system may do work of its own in any call.
fn growth(samples: &[Sample]) -> Option<String> {
    let worst = |subject: Subject| {
        let worst_ns = |sample: &Sample| sample.calls.as_ref().map(|calls| calls.worst_cpu_ns);
        let worst = spread(samples, subject, Scenario::Growth, worst_ns)?;
        Some(format!("{subject} {} ({})", short_time(worst.min), short_time(worst.median)))
    };
    let what =
        "Most processor time of a single call while 10 M keys arrive, in the best run (in the median run)";
    sentence(what, Subject::all().into_iter().filter_map(worst))
}

fn sentence(what: &str, parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| format!("{what}: {}.", parts.join(", ")))
}
