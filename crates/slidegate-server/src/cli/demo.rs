//! `slidegate demo`: two bursts around a window boundary, decided by all six algorithms.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use slidegate::{Admission, Algorithm, Limiter, Rate, Rule};
use slidegate_stores::StoreUrl;
use tokio::time::{Instant, sleep_until};

use super::output::write_data;
use crate::config::command_store;
use crate::stores::BlockingLimiter;

/// Show how each algorithm treats two bursts around a window boundary
///
/// 50 requests arrive one second before a window boundary and 50 one second after it, under a limit of 50 per 10 s.
/// The code that serves requests decides them at the simulated times of the picture, so the result is immediate and
/// always the same.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Args {
    /// Run in real time on a real store; takes up to twelve seconds
    #[arg(long)]
    live: bool,

    /// The store [default: memory]
    #[arg(long, value_name = "URL", requires = "live")]
    store: Option<StoreUrl>,
}

const EXAMPLE: &str = "Examples:
  slidegate demo | grep OVER    the algorithms that admit more than 50
  slidegate demo --live --store redis://localhost:6379";

const LIMIT: u64 = 50;
const RATE: &str = "50/10s";
/// A boundary of 10 s windows, which are aligned to 1970.
const BOUNDARY_US: u64 = 1_745_000_140_000_000;
const SECOND_US: u64 = 1_000_000;

/// Time between a burst and the boundary.
const BURST_OFFSET: Duration = Duration::from_secs(1);
/// Shortest time to a boundary that leaves time for the first burst.
const LEAD_TIME_MIN: Duration = Duration::from_millis(1_200);

const PICTURE: &str = "\
A limit of 50 per 10 s. 50 requests arrive one second before a window boundary,
50 one second after it:

    0 s                 10 s                20 s
    |-----------------x-|-x-----------------|     x  50 requests at once
      <------------------->                       these 10 s see both: 50 may pass
";

const LEGEND: &str = "\
OVER: more than the limit L passed within 10 s, at most the bound. holds: never more than L, in any 10 s.
Next, test your own traffic, request by request: slidegate replay --help
";

/// Writes the picture and a line per algorithm.
pub(super) fn run(args: &Args, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    let algorithms: Vec<Algorithm> = in_order().collect();
    let accepted = if args.live {
        let store = command_store(args.store.clone().unwrap_or_default(), None, env::vars_os())?;
        if store.template_without_rule().is_some() {
            bail!(
                "store: the demo runs a rule per algorithm; write {{rule}} into the key_template, or leave it out"
            );
        }
        let opened = BlockingLimiter::open(&store)?;
        accepted_live(&opened, RATE.parse()?, LIMIT, &algorithms, err)?
    } else {
        algorithms.iter().map(|&algorithm| accepted(algorithm)).collect::<Result<Vec<_>>>()?
    };
    let report = report(Colours::of_stdout(), &algorithms, &accepted);
    write_data(report.as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn report(colours: Colours, algorithms: &[Algorithm], accepted: &[u64]) -> String {
    let lines =
        algorithms.iter().zip(accepted).map(|(&algorithm, &accepted)| line(colours, algorithm, accepted));
    format!("{PICTURE}\n{}\n{LEGEND}", lines.collect::<String>())
}

/// All algorithms, the fixed window first, for comparison.
fn in_order() -> impl Iterator<Item = Algorithm> {
    let others = Algorithm::ALL.into_iter().filter(|&algorithm| algorithm != Algorithm::FixedWindow);
    std::iter::once(Algorithm::FixedWindow).chain(others)
}

/// How many requests of the two bursts pass.
fn accepted(algorithm: Algorithm) -> Result<u64> {
    let rule = Rule::inline(RATE.parse()?, algorithm);
    let limiter = Limiter::in_memory();
    let bursts = [BOUNDARY_US - SECOND_US, BOUNDARY_US + SECOND_US];
    let arrivals = bursts.into_iter().flat_map(|at_us| (0..LIMIT).map(move |_| at_us));
    let mut admitted = 0;
    for at_us in arrivals {
        admitted += u64::from(limiter.at_us(at_us).check(&rule, "demo")?.allowed());
    }
    Ok(admitted)
}

/// How many requests of two bursts, one before a window boundary and one after it, each algorithm accepts in real time.
/// The boundary is that of the store's clock.
fn accepted_live(
    opened: &BlockingLimiter,
    rate: Rate,
    burst: u64,
    algorithms: &[Algorithm],
    err: &mut impl Write,
) -> Result<Vec<u64>> {
    // A random key, so that two demos on one store do not share counts.
    let key = format!("demo-{:016x}", RandomState::new().hash_one("demo"));
    let rules: Vec<Rule> = algorithms.iter().map(|&algorithm| Rule::inline(rate, algorithm)).collect();
    let mut until = until_boundary(opened, rate, &key)?;
    if until < LEAD_TIME_MIN {
        until += rate.window();
    }
    let now = Instant::now();
    writeln!(err, "waiting {} s for a window boundary of the store's clock", until.as_secs()).ok();
    let mut accepted = vec![0; rules.len()];
    for at in [now + until.saturating_sub(BURST_OFFSET), now + until + BURST_OFFSET] {
        opened.block_on(async { sleep_until(at).await });
        for (rule, accepted) in rules.iter().zip(&mut accepted) {
            let charge = rule.charge(&key, 1)?;
            let requests = (0..burst).map(|_| Admission::new(&[charge])).collect::<Result<Vec<_>, _>>()?;
            for decision in opened.block_on(opened.limiter.check_batch_async(&requests)) {
                *accepted += u64::from(decision?.allowed());
            }
        }
    }
    Ok(accepted)
}

/// The time until the next window boundary: the reset time of a fixed window that was just charged.
fn until_boundary(opened: &BlockingLimiter, rate: Rate, key: &str) -> Result<Duration> {
    let rule = Rule::inline(rate, Algorithm::FixedWindow);
    let key = format!("{key}-clock");
    let decision = opened
        .block_on(opened.limiter.check_async(&rule, &key))
        .context("cannot read the time of the store")?;
    decision.reset_after().context("the store does not return the end of its window")
}

fn line(colours: Colours, algorithm: Algorithm, accepted: u64) -> String {
    let count = format!("{}  accepted {accepted} of {}", algorithm.name(), 2 * LIMIT);
    let mark = if accepted > LIMIT { colours.red_bold("OVER ") } else { colours.green("holds") };
    let bound = algorithm.admitted_max(LIMIT);
    let formula = match 2 * LIMIT - bound {
        LIMIT => "L".to_owned(),
        0 => "2L".to_owned(),
        less => format!("2L-{less}"),
    };
    format!("{count:<38}{mark}  bound {formula} = {bound}\n")
}

/// Whether stdout may be coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Colours(bool);

impl Colours {
    /// On a terminal, unless the variable `NO_COLOR` is set and not empty.
    fn of_stdout() -> Self {
        let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(stdout().is_terminal() && !unwanted)
    }

    /// For a limit that was exceeded.
    fn red_bold(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// For a limit that holds.
    fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_wrap_the_text_in_escapes() {
        assert_eq!(Colours(true).red_bold("OVER"), "\x1b[1;31mOVER\x1b[0m");
        assert_eq!(Colours(true).green("holds"), "\x1b[32mholds\x1b[0m");
        assert_eq!(Colours(false).red_bold("OVER"), "OVER");
    }
}
