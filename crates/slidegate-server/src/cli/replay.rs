//! `slidegate replay`: executes a trace, each line at exactly its time.

use std::env;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use slidegate::{Rule, RuleSet};
use slidegate_stores::StoreUrl;

use crate::config::{Config, command_store, shared_states_mistake};
use crate::replay::{self, ReplayError, Summary};
use crate::stores::BlockingLimiter;
use crate::text::escaped;

/// Execute a trace, each line at exactly its time, and print every answer
///
/// A trace is JSON Lines: operations with their times in microseconds since 1970, in ascending order. Every line is
/// answered by one JSON line. Replays do not wait and do not use the system clock, so a trace gives the same answers
/// everywhere: use it to test a rule, or to report a surprising decision.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The trace; `-` or nothing reads stdin
    #[arg(value_name = "TRACE", default_value = "-", hide_default_value = true)]
    trace: PathBuf,

    /// The configuration file with the rules (YAML); without it, charges need inline rules
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where states live: memory, sqlite:PATH or redis://... [default: the store of the configuration, else memory]
    ///
    /// A Redis has parameters, as in `slidegate serve`: `redis://HOST?key_prefix=app`.
    #[arg(long, value_name = "URL")]
    store: Option<StoreUrl>,
}

const HELP: &str = r##"Example, 2 per 10 s; paste it:

slidegate replay <<'EOF'
{"at_us":1000000,"op":"check","charges":[{"rule":{"limit":2,"window":"10s"},"key":"alice","cost":2}]}
{"at_us":4000000,"op":"check","charges":[{"rule":{"limit":2,"window":"10s"},"key":"alice"}]}
{"at_us":5000000,"op":"refund","receipt":"#1"}
EOF

It prints:

{"line":1,"allowed":true,"rule":"sliding-log/10s","limit":2,"used":2,"remaining":0,"retry_after_us":0,"reset_after_us":10000000,"checks":[{"rule":"sliding-log/10s","key":"alice","allowed":true,"used":2,"remaining":0,"retry_after_us":0}]}
{"line":2,"allowed":false,"rule":"sliding-log/10s","limit":2,"used":2,"remaining":0,"retry_after_us":7000000,"reset_after_us":7000000,"checks":[{"rule":"sliding-log/10s","key":"alice","allowed":false,"used":2,"remaining":0,"retry_after_us":7000000}]}
{"line":3,"applied":true,"units":2}

Operations, each with "at_us":
  check, peek  "charges":[{"rule":..,"key":..,"cost":1},..]   all or none
  refund       "receipt":"#3"              takes back what line 3 was charged
  settle       "receipt":"#3","actual":7   replaces its cost by the units spent
  credit       "rule":..,"key":..,"units":2   gives back the oldest units
  reset        "rule":..,"key":..             removes the state of the key
  inspect      "rule":..,"key":..             shows what is used of every limit
  limit        "rule":"api","limit":"7/1m"    changes a rule; or "limits":[..]

peek decides without charging. A rule is a name from the configuration, or
inline: {"limit":5,"window":"60s","algorithm":"sliding-log"}, in short
{"limit":"5/60s"}. Algorithms are sliding-log, compact-log ("entries"),
sliding-buckets ("buckets", "edge"), sliding-counter, fixed-window and gcra. A
configuration must set inline_rules: true to allow inline rules.

A line that cannot be executed changes nothing and is answered
{"line":3,"error":KIND,"message":..}. Exit status: 0 if every line was executed
(denials and the errors "never" and "blocked" count as executed), 2 if not."##;

/// Replays the trace. Exit status 0 means that every line was executed.
pub(super) fn run(args: &Args, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    let config = args.config.as_deref().map(Config::load).transpose()?;
    let store = args.store.clone().or_else(|| config.as_ref().and_then(Config::store));
    let store = command_store(store.unwrap_or_default(), config.as_ref(), env::vars_os())?;
    let rules = config.map_or_else(RuleSet::new, Config::into_rules);
    if let Some(template) = store.template_without_rule()
        && let Some(mistake) =
            shared_states_mistake(&template, rules.iter().map(Rule::name), rules.allows_inline())
    {
        bail!("store: {mistake}");
    }
    let opened = BlockingLimiter::open(&store)?;
    let trace = open(&args.trace, err)?;
    let replayed = replay::run(&opened, rules, trace, &mut BufWriter::new(out));
    let Summary { lines, failed } = match replayed {
        // A closed pipe is not an error: `head` closes it.
        Err(ReplayError::Write { source, summary }) if source.kind() == ErrorKind::BrokenPipe => summary,
        ended => ended?,
    };
    if failed > 0 {
        bail!("{failed} of {lines} lines could not be executed; their answers say why");
    }
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path, err: &mut impl Write) -> Result<Box<dyn Read>> {
    if path.as_os_str() != "-" {
        let file = File::open(path).map_err(|error| {
            anyhow!("cannot open the trace {}: {error}; check the path", escaped(&path.display().to_string()))
        })?;
        return Ok(Box::new(file));
    }
    if io::stdin().is_terminal() {
        writeln!(err, "reading a trace from the terminal, one operation per line; Ctrl-D ends it").ok();
    }
    Ok(Box::new(io::stdin().lock()))
}
