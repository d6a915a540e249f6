//! Installs the log of this process.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

use super::line_queue::LineQueue;
use super::options::LogFormat;

/// How long the end of the process waits for the reader of stderr.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// The log of this process. Dropping it waits until the last lines are written, if stderr accepts them in time.
#[derive(Debug)]
pub(in crate::cli) struct Log {
    queue: Arc<LineQueue>,
    format: LogFormat,
}

impl Log {
    /// Installs the log, by default as text on a terminal and as JSON elsewhere. Panics are logged too.
    pub(in crate::cli) fn install(level: Level, format: Option<LogFormat>) -> Result<Self> {
        let is_terminal = io::stderr().is_terminal();
        let format = format.unwrap_or(if is_terminal { LogFormat::Text } else { LogFormat::Json });
        let queue = Arc::new(LineQueue::default());
        let writer = Arc::clone(&queue);
        let write = move || writer.write_to(io::stderr(), report_dropped);
        let started = thread::Builder::new().name("log".to_owned()).spawn(write);
        started.context("log: the system refuses a thread; see ulimit -u")?;
        let subscriber = subscriber(level, format, is_terminal, Arc::clone(&queue));
        let installed = tracing::subscriber::set_global_default(subscriber).ok();
        installed.context("log: is installed already; install it once per process")?;
        // The default hook writes to stderr, and would block the thread that panicked.
        panic::set_hook(Box::new(log_panic));
        Ok(Self { queue, format })
    }

    /// Logs a line for people: without a prefix in text, so that they can copy what it contains.
    pub(in crate::cli) fn announce(&self, line: &str) {
        match self.format {
            LogFormat::Text => self.print(line),
            LogFormat::Json => tracing::info!("{line}"),
        }
    }

    /// Writes a line as it is.
    pub(in crate::cli) fn print(&self, line: &str) {
        self.queue.push(format!("{line}\n").as_bytes());
    }

    /// The number of lines that were dropped, for the metrics.
    pub(in crate::cli) fn dropped_lines(&self) -> Arc<AtomicU64> {
        self.queue.dropped_total()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.flush(FLUSH_TIME_MAX);
    }
}

/// At the highest level, because the dropped lines may have been of any.
fn report_dropped(lines: u64) {
    tracing::error!(
        "{lines} log lines were dropped: the reader of stderr was too slow; read it faster or log less (--log-level)"
    );
}

fn log_panic(panicked: &PanicHookInfo<'_>) {
    let text = panicked.to_string().replace('\n', " ");
    let thread = thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    // Captured only if RUST_BACKTRACE says so.
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(thread, %backtrace, "{text}");
    } else {
        tracing::error!(thread, "{text}");
    }
}

fn subscriber<W>(level: Level, format: LogFormat, colours: bool, to: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(to)
        // Reporting a failed write to stderr would write to stderr, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_current_span(false).finish()),
        LogFormat::Text => Box::new(lines.with_ansi(colours).finish()),
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;
    use std::sync::Mutex;

    use super::super::line_queue::QUEUED_BYTES_MAX;
    use super::*;

    fn lines(level: Level, format: LogFormat, log: impl FnOnce()) -> String {
        let (reader, writer) = io::pipe().unwrap();
        tracing::subscriber::with_default(subscriber(level, format, false, Mutex::new(writer)), log);
        io::read_to_string(reader).unwrap()
    }

    #[test]
    fn json_lines_are_objects_with_fields() {
        let text = lines(Level::INFO, LogFormat::Json, || {
            tracing::info!(rules = 3, file = "rules \"1\"\n.yaml", "rules replaced");
            tracing::debug!("not of interest");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], "rules replaced");
        assert_eq!((&line["rules"], &line["file"]), (&3.into(), &"rules \"1\"\n.yaml".into()));
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }

    #[test]
    fn text_lines_have_no_colours_in_files() {
        let text = lines(Level::WARN, LogFormat::Text, || {
            tracing::warn!(file = "rules.yaml", "the file was not accepted");
            tracing::info!("not of interest");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("WARN the file was not accepted file=\"rules.yaml\""), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn secrets_are_not_logged() {
        let secret = crate::service::Secret("hunter2".into());
        let text = lines(Level::INFO, LogFormat::Json, || tracing::info!(?secret, "started"));
        assert!(!text.contains("hunter2"), "{text}");
    }

    /// Set in a child process, because the log and the hook for panics belong to the whole process. Its value says how
    /// many long lines are queued before the panic.
    const CHILD: &str = "SLIDEGATE_TEST_CHILD";

    #[test]
    fn as_a_child() {
        let Ok(lines) = env::var(CHILD) else { return };
        let log = Log::install(Level::INFO, Some(LogFormat::Json)).unwrap();
        for _ in 0..lines.parse().unwrap() {
            log.print(&"x".repeat(QUEUED_BYTES_MAX / 8));
        }
        assert!(thread::spawn(|| panic!("on purpose")).join().is_err());
    }

    fn child(lines: u32) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "cli::log::install::tests::as_a_child", "--nocapture"]);
        command.env(CHILD, lines.to_string());
        command
    }

    #[test]
    fn a_panic_does_not_wait_for_the_reader_of_stderr() {
        let (unread, stderr) = io::pipe().unwrap();
        let output = child(10).stderr(stderr).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        drop(unread);
    }

    #[test]
    fn a_panic_is_logged_with_its_thread_and_place() {
        let output = child(0).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let line = text.lines().find(|line| line.contains("on purpose")).expect("a line");
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["message"].as_str().unwrap().starts_with("panicked at "), "{line}");
        assert_eq!((&line["level"], &line["thread"]), (&"ERROR".into(), &"unnamed".into()));
    }
}
