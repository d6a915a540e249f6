//! The most that a `compact-log` can hold: every key has had more requests in its window than the log
//! keeps entries.

use std::time::Duration;

use anyhow::{Result, ensure};
use slidegate::Algorithm;
use slidegate::rule::Entries;

use crate::requests::every_key;
use crate::resident;
use crate::subject::{SlidegateMemory, Worker};

/// Above the number of requests, so that every request is logged.
const RATE: &str = "1000/1m";
/// More than the default of 128 entries.
const ROUNDS: u32 = 140;
/// Long enough that no two requests of a key share an entry, short enough that none leaves the window.
const ROUND: Duration = Duration::from_millis(400);

/// Peak of the resident bytes. Keys are charged in turn, as in real traffic: all logs grow, and fragment the heap,
/// together.
pub(crate) fn resident_bytes_max(keys: u64) -> Result<u64> {
    let ours = SlidegateMemory::on_manual_clock(Algorithm::CompactLog(Entries::DEFAULT), RATE)?;
    let (mut worker, mut refused, mut most) = (&ours, 0_u64, 0);
    for _ in 0..ROUNDS {
        every_key(keys, |key| refused += u64::from(!worker.decide(key)));
        most = resident::bytes()?.max(most);
        ours.clock().advance(ROUND);
    }
    ensure!(refused == 0, "{refused} hits were refused; the limit is too low");
    Ok(most)
}
