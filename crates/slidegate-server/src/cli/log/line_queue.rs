//! A bounded queue of lines between the threads that log and the one that writes.
//!
//! A write to a pipe that nobody reads blocks. So a thread that serves only queues its line, and a full queue drops the
//! line instead of waiting. Dropped lines are counted and reported once stderr accepts lines again.
//!
//! Rejected: a non-blocking stderr. The flag belongs to the open file, which other processes share.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most bytes that wait: several thousand lines.
pub(super) const QUEUED_BYTES_MAX: usize = 1 << 20;

/// A bounded queue of lines.
#[derive(Debug, Default)]
pub(super) struct LineQueue {
    state: Mutex<State>,
    /// A line was queued.
    queued: Condvar,
    /// Every line is written.
    emptied: Condvar,
    /// Lines dropped since the start of the process.
    dropped_total: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Whether the writer is busy with a line that it took.
    is_writing: bool,
    /// Lines dropped since the last report.
    dropped: u64,
}

impl LineQueue {
    /// Queues a line, which includes its line end, or drops it if the queue is full. Never waits for the writer.
    pub(super) fn push(&self, line: &[u8]) {
        let line: Box<[u8]> = line.into();
        let mut state = self.lock();
        if state.bytes.saturating_add(line.len()) > QUEUED_BYTES_MAX {
            self.count_dropped(&mut state);
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        drop(state);
        self.queued.notify_one();
    }

    /// The number of dropped lines, for the metrics.
    pub(super) fn dropped_total(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped_total)
    }

    /// Waits until every line is written, at most `time_max`; returns whether that is so.
    pub(super) fn flush(&self, time_max: Duration) -> bool {
        let is_busy = |state: &mut State| state.is_writing || !state.lines.is_empty();
        let waited = self.emptied.wait_timeout_while(self.lock(), time_max, is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Writes lines to `to` until the process ends. `report` logs how many lines were dropped.
    pub(super) fn write_to(&self, mut to: impl Write, report: impl Fn(u64)) -> ! {
        loop {
            let line = self.take();
            if to.write_all(&line).is_err() {
                self.count_dropped(&mut self.lock());
                // A report would fail too; it follows the next line that is written.
                continue;
            }
            let dropped = {
                let mut state = self.lock();
                if state.lines.is_empty() { std::mem::take(&mut state.dropped) } else { 0 }
            };
            if dropped > 0 {
                report(dropped);
            }
        }
    }

    /// Waits for the next line. The previous one, and its report, are done.
    fn take(&self) -> Box<[u8]> {
        let mut state = self.lock();
        state.is_writing = false;
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.is_writing = true;
                return line;
            }
            self.emptied.notify_all();
            state = self.queued.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn count_dropped(&self, state: &mut State) {
        state.dropped += 1;
        self.dropped_total.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each write is one line: the formatter of `tracing` writes an event at once.
impl Write for &LineQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read};
    use std::thread;

    use super::*;

    /// Longer than any of these tests takes.
    const LONG: Duration = Duration::from_secs(60);

    /// A line of 64 KiB, which fills a pipe.
    fn long_line() -> Vec<u8> {
        let mut line = vec![b'x'; 65_535];
        line.push(b'\n');
        line
    }

    fn write(queue: &Arc<LineQueue>, to: impl Write + Send + 'static) {
        let queue = Arc::clone(queue);
        thread::spawn(move || {
            queue.write_to(to, |dropped| queue.push(format!("{dropped} dropped\n").as_bytes()));
        });
    }

    fn piped(queue: &Arc<LineQueue>) -> BufReader<PipeReader> {
        let (reader, writer): (_, PipeWriter) = io::pipe().unwrap();
        write(queue, writer);
        BufReader::new(reader)
    }

    #[test]
    fn lines_are_written_in_order() {
        let queue = Arc::new(LineQueue::default());
        let mut reader = piped(&queue);
        for number in 0..1_000 {
            queue.push(format!("{number}\n").as_bytes());
        }
        assert!(queue.flush(LONG));
        for number in 0..1_000 {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert_eq!(line, format!("{number}\n"));
        }
        assert_eq!(queue.dropped_total().load(Ordering::Relaxed), 0);
    }

    /// Nobody reads: lines beyond the bound are dropped. Then the reader returns.
    #[test]
    fn a_full_queue_drops_lines_and_reports_them_when_it_is_empty() {
        let queue = Arc::new(LineQueue::default());
        let mut reader = piped(&queue);
        for _ in 0..100 {
            queue.push(&long_line());
        }
        assert!(!queue.flush(Duration::from_millis(1)), "nobody reads");
        let dropped = queue.dropped_total().load(Ordering::Relaxed);
        // The queue holds 16 such lines, the pipe and the writer one each.
        assert!((80..=84).contains(&dropped), "{dropped}");
        for _ in dropped..100 {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert_eq!(line.len(), 65_536);
        }
        let mut report = String::new();
        reader.read_line(&mut report).unwrap();
        assert_eq!(report, format!("{dropped} dropped\n"));
        assert!(queue.flush(LONG));
    }

    /// A disk that is full for the first two lines.
    struct FullDisk(u32, PipeWriter);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 > 0 {
                self.0 -= 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn failed_writes_are_reported_after_the_next_line() {
        let queue = Arc::new(LineQueue::default());
        let (mut reader, writer) = io::pipe().unwrap();
        write(&queue, FullDisk(2, writer));
        for line in ["one\n", "two\n", "three\n"] {
            queue.push(line.as_bytes());
            assert!(queue.flush(LONG));
        }
        let mut text = [0; 16];
        reader.read_exact(&mut text).unwrap();
        assert_eq!(text.as_slice(), b"three\n2 dropped\n");
    }
}
