//! Retries a request until it passes, and sleeps for the announced wait in between.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use rustix::termios::tcgetwinsize;
use slidegate::time::Clock;

use super::answer::CheckAnswer;
use crate::cli::duration::rounded_up;
use crate::text::{escaped, whole_us};

/// Most jitter, so that callers refused together do not retry at the same instant: each adds up to a tenth of its wait.
const JITTER_US_MAX: u64 = 50_000;
/// Shortest pause between two requests.
const PAUSE_US_MIN: u64 = 1_000;
/// Redraw period of the progress line.
const REDRAW_PERIOD_US: u64 = 1_000_000;

/// Width of a terminal of unknown width.
const COLUMNS_DEFAULT: usize = 80;
/// Moves the cursor to the start of the line and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// The last answer, after all retries.
#[derive(Debug)]
pub(in crate::cli) struct FinalAnswer {
    pub(in crate::cli) answer: CheckAnswer,
    /// Why there was no further retry.
    pub(in crate::cli) gave_up: Option<String>,
}

impl FinalAnswer {
    /// An answer without retries.
    pub(super) fn at_once(answer: CheckAnswer) -> Self {
        Self { answer, gave_up: None }
    }
}

/// Retries until the request is admitted. Gives up at once if the announced wait, which is exact, exceeds the time
/// left.
pub(super) fn until_admitted<C: Clock, W: Write>(
    wait: Duration,
    clock: &C,
    progress: &mut ProgressLine<W>,
    mut ask: impl FnMut() -> Result<CheckAnswer>,
) -> Result<FinalAnswer> {
    let mut end_us = None;
    loop {
        let answer = ask()?;
        let Some(retry_after) = answer.retry_after() else { return Ok(FinalAnswer::at_once(answer)) };
        // The first refusal begins the wait.
        let end_us = *end_us.get_or_insert_with(|| clock.now_us().saturating_add(whole_us(wait)));
        let left_us = end_us.saturating_sub(clock.now_us());
        if whole_us(retry_after) > left_us {
            let reason = format!(
                "gave up: the request passes in {}, and --wait {} ends before that",
                rounded_up(retry_after),
                rounded_up(wait)
            );
            return Ok(FinalAnswer { answer, gave_up: Some(reason) });
        }
        let now_us = clock.now_us();
        let passes_us = now_us.saturating_add(whole_us(retry_after));
        let until_us = now_us.saturating_add(pause_us(whole_us(retry_after), left_us));
        sleep(clock, passes_us, until_us, progress, &answer);
    }
}

/// The announced wait with jitter, within the time left.
fn pause_us(retry_after_us: u64, left_us: u64) -> u64 {
    let span_us = (retry_after_us / 10).min(JITTER_US_MAX);
    let jitter_us = RandomState::new().hash_one(retry_after_us) % (span_us + 1);
    retry_after_us.max(left_us.min(retry_after_us + jitter_us)).max(PAUSE_US_MIN)
}

/// Counts down to `passes_us`, and sleeps until `until_us`. The jitter in between is not shown: it would let the
/// countdown begin a second above the announced wait.
fn sleep<C: Clock, W: Write>(
    clock: &C,
    passes_us: u64,
    until_us: u64,
    progress: &mut ProgressLine<W>,
    answer: &CheckAnswer,
) {
    loop {
        let now_us = clock.now_us();
        if now_us >= until_us {
            break;
        }
        let left_us = passes_us.saturating_sub(now_us);
        let wait = || rounded_up(Duration::from_micros(left_us));
        let drawn =
            left_us > 0 && progress.draw(|| format!("waiting {} for rule {}", wait(), escaped(&answer.rule)));
        // On a terminal, wake at every whole second of the countdown.
        let part_us = left_us % REDRAW_PERIOD_US;
        let next_us = now_us + if part_us == 0 { REDRAW_PERIOD_US } else { part_us };
        clock.park_until_us(if drawn { next_us.min(until_us) } else { until_us });
    }
    progress.erase();
}

/// A progress line on a terminal, redrawn in place and erased at the end.
#[derive(Debug)]
pub(super) struct ProgressLine<W: Write> {
    pub(super) out: W,
    /// Nothing is drawn elsewhere.
    pub(super) on_terminal: bool,
    pub(super) is_drawn: bool,
}

impl<W: Write> ProgressLine<W> {
    /// Draws the line, cut to the width of the terminal, because a wrapped line cannot be redrawn. Returns whether it
    /// is visible.
    pub(super) fn draw(&mut self, line: impl FnOnce() -> String) -> bool {
        if self.on_terminal {
            let width = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
            let width = if width == 0 { COLUMNS_DEFAULT } else { width };
            let line: String = line().chars().take(width - 1).collect();
            // A failed write does not end the wait.
            let _ = write!(self.out, "{CLEAR}{line}").and_then(|()| self.out.flush());
            self.is_drawn = true;
        }
        self.on_terminal
    }

    /// Erases the line.
    pub(super) fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(self.out, "{CLEAR}").and_then(|()| self.out.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that jumps to the end of each sleep.
    struct SkippingClock(AtomicU64);

    impl Clock for SkippingClock {
        fn now_us(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn park_until_us(&self, until_us: u64) {
            self.0.store(until_us, Ordering::Relaxed);
        }
    }

    fn answer(retry_after_ms: Option<u64>) -> CheckAnswer {
        let body = serde_json::json!({
            "allowed": retry_after_ms.is_none(), "rule": "api", "limit": 5, "used": 5, "remaining": 0,
            "retry_after_ms": retry_after_ms.unwrap_or(0), "reset_after_ms": 60_000, "degraded": false,
        });
        CheckAnswer::from_server(body.to_string().as_bytes()).unwrap()
    }

    /// Waits while the store gives these answers; returns the result, the number of requests, the drawn text and the
    /// time.
    fn waited(seconds: u64, answers: &[Option<u64>], on_terminal: bool) -> (FinalAnswer, usize, String, u64) {
        let clock = SkippingClock(AtomicU64::new(1_000_000));
        let mut progress = ProgressLine { out: Vec::new(), on_terminal, is_drawn: false };
        let mut asked = 0;
        let ended = until_admitted(Duration::from_secs(seconds), &clock, &mut progress, || {
            asked += 1;
            Ok(answer(answers[asked - 1]))
        });
        let drawn = String::from_utf8(progress.out).unwrap();
        (ended.unwrap(), asked, drawn, clock.now_us() - 1_000_000)
    }

    #[test]
    fn it_sleeps_for_the_announced_wait_and_retries() {
        let (ended, asked, drawn, slept_us) = waited(30, &[Some(2_000), Some(500), None], false);
        assert!(ended.answer.allowed && ended.gave_up.is_none());
        assert_eq!((asked, drawn.as_str()), (3, ""));
        assert!((2_500_000..=2_600_000).contains(&slept_us), "{slept_us}");
    }

    #[test]
    fn it_gives_up_at_once_if_the_wait_is_too_long() {
        let (ended, asked, _, slept_us) = waited(30, &[Some(45_000)], false);
        assert_eq!((ended.answer.allowed, asked, slept_us), (false, 1, 0));
        let reason = ended.gave_up.unwrap();
        assert_eq!(reason, "gave up: the request passes in 45s, and --wait 30s ends before that");
        let (ended, asked, ..) = waited(1, &[Some(900), Some(900)], false);
        assert_eq!((ended.answer.allowed, asked), (false, 2), "other callers took the units");
        assert_eq!(waited(0, &[None], false).1, 1, "no wait at all still asks");
        assert_eq!(waited(0, &[Some(1)], false).1, 1);
    }

    #[test]
    fn pauses_have_a_minimum() {
        let answers = [vec![Some(0); 20], vec![None]].concat();
        let (_, asked, _, slept_us) = waited(1, &answers, false);
        assert_eq!((asked, slept_us), (21, 20_000));
    }

    #[test]
    fn the_progress_line_counts_down_and_is_erased() {
        let (.., drawn, _) = waited(30, &[Some(3_000), None], true);
        // From the announced wait, whatever the jitter, to nothing.
        let lines = ["", "waiting 3s for rule api", "waiting 2s for rule api", "waiting 1s for rule api", ""];
        assert_eq!(drawn.split(CLEAR).collect::<Vec<_>>(), lines);
    }

    /// The rule is the text of a server, which must not control the terminal.
    #[test]
    fn the_progress_line_escapes_the_name_of_the_rule() {
        let clock = SkippingClock(AtomicU64::new(1_000_000));
        let mut progress = ProgressLine { out: Vec::new(), on_terminal: true, is_drawn: false };
        let mut answer = answer(Some(1_000));
        answer.rule = "api\x1b[2J\nallowed".to_owned();
        sleep(&clock, 2_000_000, 2_000_000, &mut progress, &answer);
        let drawn = String::from_utf8(progress.out).unwrap().replace(CLEAR, "");
        assert_eq!(drawn, r"waiting 1s for rule api\u{1b}[2J\nallowed");
    }
}
