//! A command as a child: signals go to it, and its end becomes our status.
//!
//! *Rejected: becoming the command (exec).* Nothing is more transparent, but a parent that waits for us without a shell in
//! between would see the signal that ended the command instead of the status 128+N that is promised.

use std::ffi::OsString;
use std::fs;
use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::task::Poll;

use rustix::process::{Pid, Signal as Number, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::process::Command;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What is passed on: all that people send, and can be caught.
const PASSED_ON: [Number; 6] =
    [Number::HUP, Number::INT, Number::QUIT, Number::TERM, Number::USR1, Number::USR2];
/// The status of a command that signal N ended is this and N.
const BY_SIGNAL: i32 = 128;

/// Runs a command to its end. An error means that it did not start.
pub(super) fn run(program: &OsString, args: &[OsString]) -> io::Result<u8> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(async {
        // Before it starts, so that none is lost in between.
        let mut heard = listen()?;
        let mut child = Command::new(program).args(args).spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        loop {
            tokio::select! {
                status = child.wait() => return status,
                number = next(&mut heard) => {
                    if let Some(pid) = pid.filter(|_| !comes_from_the_terminal(number)) {
                        // It may just have ended, and then there is nothing to tell.
                        kill_process(pid, number).ok();
                    }
                }
            }
        }
    })?;
    Ok(status_of(status))
}

/// The status by which the end of the command is told.
fn status_of(ended: ExitStatus) -> u8 {
    let status = ended.code().or_else(|| ended.signal().map(|number| BY_SIGNAL + number));
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(u8::MAX)
}

/// What is typed at a terminal (Ctrl-C, Ctrl-\) reaches the command without us, as it is of the same group.
fn comes_from_the_terminal(number: Number) -> bool {
    let typed = number == Number::INT || number == Number::QUIT;
    let stdin = io::stdin();
    typed && stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp())
}

/// Listens for signals, but not for what we were told to ignore (by `nohup`, say): the command inherits that.
fn listen() -> io::Result<Vec<(Number, Signal)>> {
    let ignored = ignored();
    let passed_on = PASSED_ON.into_iter().filter(|number| ignored & (1 << (number.as_raw() - 1)) == 0);
    passed_on.map(|number| Ok((number, signal(SignalKind::from_raw(number.as_raw()))?))).collect()
}

/// The next signal that arrives.
async fn next(heard: &mut [(Number, Signal)]) -> Number {
    poll_fn(|context| {
        for (number, signal) in &mut *heard {
            if signal.poll_recv(context).is_ready() {
                return Poll::Ready(*number);
            }
        }
        Poll::Pending
    })
    .await
}

/// A bit for every signal that is ignored, the first for number 1; none where the system does not tell.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_a_status() {
        for (raw, status) in [(0, 0), (7 << 8, 7), (255 << 8, 255), (15, 143), (9, 137), (6 | 0x80, 134)] {
            assert_eq!(status_of(ExitStatus::from_raw(raw)), status, "{raw}");
        }
    }
}
