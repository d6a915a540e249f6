//! Asks again until a request passes, and sleeps in between for as long as the answer says.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use rustix::termios::tcgetwinsize;
use slidegate::time::Clock;

use super::answer::Answer;
use crate::cli::duration::rounded_up;

/// Those who were refused at once are let in one after the other, so they should not all ask at the same instant: each
/// adds up to a tenth of its wait, and no more than this.
const JITTER_US_MAX: u64 = 50_000;
/// However short a wait is said to be.
const PAUSE_US_MIN: u64 = 1_000;
/// How often a line on a terminal is drawn.
const DRAWN_EVERY_US: u64 = 1_000_000;

/// Where nobody says how wide the terminal is.
const COLUMNS: usize = 80;
/// To the beginning of the line, and clear it to its end.
const CLEAR: &str = "\r\x1b[K";

/// How the asking ended.
#[derive(Debug)]
pub(in crate::cli) struct Ended {
    pub(in crate::cli) answer: Answer,
    /// Why nobody waited any longer.
    pub(in crate::cli) gave_up: Option<String>,
}

impl Ended {
    /// With the first answer.
    pub(super) fn at_once(answer: Answer) -> Self {
        Self { answer, gave_up: None }
    }
}

/// Asks until the request is admitted or cannot be in time. The announced wait is exact, so that is known at once.
pub(super) fn until_admitted<C: Clock, W: Write>(
    wait: Duration,
    clock: &C,
    progress: &mut Progress<W>,
    mut ask: impl FnMut() -> Result<Answer>,
) -> Result<Ended> {
    let mut end_us = None;
    loop {
        let answer = ask()?;
        let Some(retry_after) = answer.retry_after() else { return Ok(Ended::at_once(answer)) };
        // The first refusal begins the wait.
        let end_us = *end_us.get_or_insert_with(|| clock.now_us().saturating_add(whole_us(wait)));
        let left_us = end_us.saturating_sub(clock.now_us());
        if whole_us(retry_after) > left_us {
            let reason = format!(
                "gave up: the request passes in {}, and --wait {} ends before that",
                rounded_up(retry_after),
                rounded_up(wait)
            );
            return Ok(Ended { answer, gave_up: Some(reason) });
        }
        let until_us = clock.now_us().saturating_add(pause_us(whole_us(retry_after), left_us));
        sleep(clock, until_us, progress, &answer);
    }
}

/// The wait that was announced and a little more, but not beyond what is left.
fn pause_us(retry_after_us: u64, left_us: u64) -> u64 {
    let span_us = (retry_after_us / 10).min(JITTER_US_MAX);
    let jitter_us = RandomState::new().hash_one(retry_after_us) % (span_us + 1);
    retry_after_us.max(left_us.min(retry_after_us + jitter_us)).max(PAUSE_US_MIN)
}

fn sleep<C: Clock, W: Write>(clock: &C, until_us: u64, progress: &mut Progress<W>, answer: &Answer) {
    loop {
        let now_us = clock.now_us();
        if now_us >= until_us {
            break;
        }
        let left = Duration::from_micros(until_us - now_us);
        let drawn = progress.draw(|| format!("waiting {} for rule {}", rounded_up(left), answer.rule));
        // A second counts down where it is seen.
        let part_us = (until_us - now_us) % DRAWN_EVERY_US;
        let next_us = now_us + if part_us == 0 { DRAWN_EVERY_US } else { part_us };
        clock.park_until_us(if drawn { next_us.min(until_us) } else { until_us });
    }
    progress.erase();
}

/// A line on a terminal that is drawn over itself, and gone in the end.
#[derive(Debug)]
pub(super) struct Progress<W: Write> {
    pub(super) out: W,
    /// Elsewhere nothing is shown.
    pub(super) on_terminal: bool,
    pub(super) is_drawn: bool,
}

impl<W: Write> Progress<W> {
    /// Draws the line, cut to the terminal's width: a second one could not be drawn over. Says whether it is seen.
    pub(super) fn draw(&mut self, line: impl FnOnce() -> String) -> bool {
        if self.on_terminal {
            let width = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
            let width = if width == 0 { COLUMNS } else { width };
            let line: String = line().chars().take(width - 1).collect();
            // Where the line cannot be shown, the wait goes on.
            let _ = write!(self.out, "{CLEAR}{line}").and_then(|()| self.out.flush());
            self.is_drawn = true;
        }
        self.on_terminal
    }

    /// Leaves nothing behind.
    pub(super) fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(self.out, "{CLEAR}").and_then(|()| self.out.flush());
        }
    }
}

fn whole_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Sleeps in no time.
    struct Asleep(AtomicU64);

    impl Clock for Asleep {
        fn now_us(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn park_until_us(&self, until_us: u64) {
            self.0.store(until_us, Ordering::Relaxed);
        }
    }

    fn answer(retry_after_ms: Option<u64>) -> Answer {
        let body = serde_json::json!({
            "allowed": retry_after_ms.is_none(), "rule": "api", "limit": 5, "used": 5, "remaining": 0,
            "retry_after_ms": retry_after_ms.unwrap_or(0), "reset_after_ms": 60_000, "degraded": false,
        });
        Answer::of_server(body.to_string().as_bytes()).unwrap()
    }

    /// Waits while the store gives these answers; says how it ended, how often it asked and what was drawn.
    fn waited(seconds: u64, answers: &[Option<u64>], on_terminal: bool) -> (Ended, usize, String, u64) {
        let clock = Asleep(AtomicU64::new(1_000_000));
        let mut progress = Progress { out: Vec::new(), on_terminal, is_drawn: false };
        let mut asked = 0;
        let ended = until_admitted(Duration::from_secs(seconds), &clock, &mut progress, || {
            asked += 1;
            Ok(answer(answers[asked - 1]))
        });
        let drawn = String::from_utf8(progress.out).unwrap();
        (ended.unwrap(), asked, drawn, clock.now_us() - 1_000_000)
    }

    #[test]
    fn it_sleeps_for_as_long_as_it_is_told_and_asks_again() {
        let (ended, asked, drawn, slept_us) = waited(30, &[Some(2_000), Some(500), None], false);
        assert!(ended.answer.allowed && ended.gave_up.is_none());
        assert_eq!((asked, drawn.as_str()), (3, ""));
        assert!((2_500_000..=2_600_000).contains(&slept_us), "{slept_us}");
    }

    #[test]
    fn what_cannot_pass_in_time_is_not_waited_for() {
        let (ended, asked, _, slept_us) = waited(30, &[Some(45_000)], false);
        assert_eq!((ended.answer.allowed, asked, slept_us), (false, 1, 0));
        let reason = ended.gave_up.unwrap();
        assert_eq!(reason, "gave up: the request passes in 45s, and --wait 30s ends before that");
        let (ended, asked, ..) = waited(1, &[Some(900), Some(900)], false);
        assert_eq!((ended.answer.allowed, asked), (false, 2), "others were faster");
        assert_eq!(waited(0, &[None], false).1, 1, "no wait at all still asks");
        assert_eq!(waited(0, &[Some(1)], false).1, 1);
    }

    #[test]
    fn no_wait_is_so_short_that_it_keeps_the_store_busy() {
        let answers = [vec![Some(0); 20], vec![None]].concat();
        let (_, asked, _, slept_us) = waited(1, &answers, false);
        assert_eq!((asked, slept_us), (21, 20_000));
    }

    #[test]
    fn a_terminal_sees_the_seconds_count_down_and_nothing_afterwards() {
        let (.., drawn, _) = waited(30, &[Some(3_000), None], true);
        let lines: Vec<&str> = drawn.split('\r').collect();
        assert!(lines.iter().any(|line| line.contains("waiting 3s for rule api")), "{drawn:?}");
        assert!(lines.iter().any(|line| line.contains("waiting 1s for rule api")), "{drawn:?}");
        assert!(drawn.ends_with("\r\x1b[K"), "{drawn:?}");
    }
}
