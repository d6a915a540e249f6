//! Times of answers.

use std::time::Duration;

/// How long answers took.
#[derive(Debug, Default, Clone)]
pub(crate) struct Timings(Vec<Duration>);

impl Timings {
    pub(crate) fn record(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(crate) fn longest(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// The time that 99 of 100 answers did not exceed.
    pub(crate) fn p99(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let index = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
        sorted.get(index).copied().unwrap_or_default()
    }
}

/// Milliseconds with two decimals.
pub(crate) fn shown_ms(time: Duration) -> String {
    let hundredths = time.as_micros().div_ceil(10);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
