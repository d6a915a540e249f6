//! The most that a `compact-log` can hold: every key has had more requests in its window than the log
//! keeps entries.

use std::time::Duration;

use anyhow::{Result, ensure};
use slidegate::Algorithm;
use slidegate::rule::Entries;

use crate::requests::every_key;
use crate::resident;
use crate::subject::{Ours, Worker};

/// Allows more than is asked, so that every request is remembered.
const RATE: &str = "1000/1m";
/// More than the 128 entries that it keeps by default.
const ROUNDS: u32 = 140;
/// Apart, so that no two requests of a key share an entry; close, so that none leaves its window.
const ROUND: Duration = Duration::from_millis(400);

/// Bytes of this process when it held most. Keys are asked for in turn, as they would be: logs grow,
/// and leave gaps in the heap, together.
pub(crate) fn resident_bytes_max(keys: u64) -> Result<u64> {
    let ours = Ours::on_manual_clock(Algorithm::CompactLog(Entries::DEFAULT), RATE)?;
    let (mut worker, mut refused, mut most) = (&ours, 0_u64, 0);
    for _ in 0..ROUNDS {
        every_key(keys, |key| refused += u64::from(!worker.decide(key)));
        most = resident::bytes()?.max(most);
        ours.clock().advance(ROUND);
    }
    ensure!(refused == 0, "{refused} hits were refused; the limit is too low");
    Ok(most)
}
