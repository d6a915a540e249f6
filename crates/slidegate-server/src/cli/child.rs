//! Runs a command as a child process: forwards signals to it and returns its exit status.
//!
//! *Rejected: exec.* It is more transparent, but a parent without a shell in between would see the signal that ended
//! the command instead of the documented status 128+N.

use std::ffi::OsString;
use std::fs;
use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::task::Poll;

use rustix::process::{Pid, Signal as Number, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that are forwarded: those that users send and that can be caught.
const FORWARDED: [Number; 6] =
    [Number::HUP, Number::INT, Number::QUIT, Number::TERM, Number::USR1, Number::USR2];
/// The exit status of a command that signal N ended is 128+N.
const SIGNAL_STATUS_BASE: i32 = 128;

/// A command that was started.
pub(super) struct RunningCommand {
    runtime: Runtime,
    signals: Vec<(Number, Signal)>,
    child: Child,
}

impl RunningCommand {
    /// Starts a command. An error means that it did not start.
    pub(super) fn start(program: &OsString, args: &[OsString]) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let in_runtime = runtime.enter();
        // Before the command starts, so that no signal is lost.
        let signals = listen()?;
        let child = Command::new(program).args(args).spawn()?;
        drop(in_runtime);
        Ok(Self { runtime, signals, child })
    }

    /// Waits for its end and returns its exit status.
    pub(super) fn wait(self) -> io::Result<u8> {
        let Self { runtime, mut signals, mut child } = self;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let status = runtime.block_on(async {
            loop {
                tokio::select! {
                    status = child.wait() => return status,
                    number = next(&mut signals) => {
                        if let Some(pid) = pid.filter(|_| !was_sent_by_terminal(number)) {
                            // Fails if the command has just ended.
                            kill_process(pid, number).ok();
                        }
                    }
                }
            }
        })?;
        Ok(status_of(status))
    }
}

/// The exit status for the end of a command.
fn status_of(ended: ExitStatus) -> u8 {
    let status = ended.code().or_else(|| ended.signal().map(|number| SIGNAL_STATUS_BASE + number));
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(u8::MAX)
}

/// Whether a terminal sent the signal (Ctrl-C, Ctrl-\) to the whole process group, the command included.
fn was_sent_by_terminal(number: Number) -> bool {
    let typed = number == Number::INT || number == Number::QUIT;
    let stdin = io::stdin();
    typed && stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp())
}

/// Listens for signals, except those ignored at the start (by `nohup`): the command inherits that.
fn listen() -> io::Result<Vec<(Number, Signal)>> {
    let ignored = ignored();
    let forwarded = FORWARDED.into_iter().filter(|number| ignored & (1 << (number.as_raw() - 1)) == 0);
    forwarded.map(|number| Ok((number, signal(SignalKind::from_raw(number.as_raw()))?))).collect()
}

/// The next signal that arrives.
async fn next(signals: &mut [(Number, Signal)]) -> Number {
    poll_fn(|context| {
        for (number, signal) in &mut *signals {
            if signal.poll_recv(context).is_ready() {
                return Poll::Ready(*number);
            }
        }
        Poll::Pending
    })
    .await
}

/// A bit mask of ignored signals, the lowest bit for signal 1; empty where the system does not provide it.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_and_signals_map_to_a_status() {
        for (raw, status) in [(0, 0), (7 << 8, 7), (255 << 8, 255), (15, 143), (9, 137), (6 | 0x80, 134)] {
            assert_eq!(status_of(ExitStatus::from_raw(raw)), status, "{raw}");
        }
    }
}
