//! Runs a replay: reads a trace and writes its answers.

use std::io::{self, BufReader, Read, Write};

use slidegate::RuleSet;
use thiserror::Error;

use super::Executor;
use super::lines::Lines;
use crate::stores::BlockingLimiter;

/// The line counts of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// Lines read, blank ones included.
    pub(crate) lines: u64,
    /// Lines that were not executed.
    pub(crate) failed: u64,
}

/// Executes every line of `trace` and writes its answers.
///
/// Flushes the answers whenever no complete line is buffered, so that an interactive caller gets each answer at once.
pub(crate) fn run(
    opened: &BlockingLimiter,
    rules: RuleSet,
    trace: impl Read,
    out: &mut impl Write,
) -> Result<Summary, ReplayError> {
    let mut lines = Lines::new(BufReader::with_capacity(1 << 16, trace));
    let mut executor = Executor::new(rules, &opened.limiter);
    let mut summary = Summary::default();
    loop {
        if lines.would_wait() {
            out.flush().map_err(|source| ReplayError::Write { source, summary })?;
        }
        let Some(line) =
            lines.next().map_err(|source| ReplayError::Read { source, line: summary.lines + 1 })?
        else {
            break;
        };
        summary.lines += 1;
        let Some(answer) = opened.block_on(executor.execute(line)) else {
            continue;
        };
        summary.failed += u64::from(answer.is_failure());
        let written = serde_json::to_writer(&mut *out, &answer).map_err(io::Error::from);
        let written = written.and_then(|()| out.write_all(b"\n"));
        written.map_err(|source| ReplayError::Write { source, summary })?;
    }
    out.flush().map_err(|source| ReplayError::Write { source, summary })?;
    Ok(summary)
}

/// Why a replay ended before its trace did.
#[derive(Debug, Error)]
pub(crate) enum ReplayError {
    /// The trace could not be read further.
    #[error("cannot read line {line} of the trace")]
    Read { source: io::Error, line: u64 },
    /// The answers could not be written.
    #[error("cannot write the answers")]
    Write { source: io::Error, summary: Summary },
}
