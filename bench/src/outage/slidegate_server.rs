//! A running slidegate server.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use slidegate::time::{Clock, SystemClock};

/// The timeout of a start.
const START_MAX: Duration = Duration::from_secs(20);
/// The pause between two attempts to connect.
const PAUSE_US: u64 = 20_000;

/// A server on a free port. Dropping it ends it.
pub(crate) struct SlidegateServer {
    pub(crate) port: u16,
    child: Child,
}

impl SlidegateServer {
    /// Starts the release build beside this program, with these rules, and waits until it listens.
    pub(crate) fn start(name: &str, rules: &str, store: &str, folder: &Path) -> Result<Self> {
        let here = std::env::current_exe().context("this program does not know where it is")?;
        let program = here.with_file_name("slidegate");
        ensure!(program.exists(), "{} is not there; `cargo xtask bench outage` builds it", program.display());
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let (config, log) = (folder.join(format!("{name}.yaml")), folder.join(format!("{name}.log")));
        fs::write(&config, rules).with_context(|| format!("cannot write {}", config.display()))?;
        let mut command = Command::new(program);
        command.args(["serve", "--http", &format!("127.0.0.1:{port}"), "--store", store, "--config"]);
        let log_file = fs::File::create(&log)?;
        let child = command.arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log_file).spawn();
        let mut server = Self { port, child: child.context("cannot start slidegate")? };
        let clock = SystemClock::new();
        let ends_us = clock.now_us() + u64::try_from(START_MAX.as_micros())?;
        while TcpStream::connect(server.address()).is_err() {
            let ended = server.child.try_wait()?.is_some();
            if ended || clock.now_us() > ends_us {
                bail!("slidegate does not listen: {}", fs::read_to_string(&log).unwrap_or_default().trim());
            }
            clock.park_until_us(clock.now_us() + PAUSE_US);
        }
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

impl Drop for SlidegateServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
