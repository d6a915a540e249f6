//! A running server, its processor time and its memory.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use slidegate::time::{Clock, SystemClock};

use crate::subject::Subject;

/// The timeout of a start.
const START_MAX: Duration = Duration::from_secs(20);
/// The pause between two attempts to connect.
const PAUSE_US: u64 = 20_000;
/// Microseconds of a tick, Linux's unit of processor time.
const TICK_US: u64 = 10_000;

pub(crate) struct Server {
    pub(crate) subject: Subject,
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// Starts it on a free port and waits until it answers.
    pub(crate) fn start(subject: Subject, folder: &Path) -> Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = subject.command(port, folder)?;
        let log = folder.join(format!("{subject}.log"));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {subject}"))?;
        let mut server = Self { subject, port, child };
        let clock = SystemClock::new();
        let ends_us = clock.now_us() + u64::try_from(START_MAX.as_micros())?;
        while TcpStream::connect(server.address()).is_err() {
            let ended = server.child.try_wait()?.is_some();
            if ended || clock.now_us() > ends_us {
                bail!("{subject} does not listen: {}", fs::read_to_string(&log).unwrap_or_default().trim());
            }
            clock.park_until_us(clock.now_us() + PAUSE_US);
        }
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its user and system processor time.
    pub(crate) fn cpu_us(&self) -> Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        Ok(cpu_ticks(&stat).context("/proc has no processor time")? * TICK_US)
    }

    /// Its resident bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        resident_bytes(&status).context("/proc has no resident memory")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name of a program may contain blanks and parentheses, so fields count from the last parenthesis.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_parsed_from_proc() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 0 0 0 123 45 0 0 20 0 3 0 100 5 6";
        assert_eq!(cpu_ticks(stat), Some(168));
        assert_eq!(resident_bytes("VmSize:\t 9 kB\nVmRSS:\t   512 kB\n"), Some(524_288));
        assert_eq!((cpu_ticks(""), resident_bytes("")), (None, None));
    }
}
