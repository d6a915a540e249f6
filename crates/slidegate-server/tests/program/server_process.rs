//! Starts, calls and stops `slidegate serve`.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, ExitStatus};

use crate::client::{Client, HttpAnswer};
use crate::program::command;

/// A running server on a free port. Dropping it kills it.
pub(crate) struct ServerProcess {
    child: Child,
    err: BufReader<ChildStderr>,
    /// The first line that it printed.
    pub(crate) greeting: String,
    pub(crate) address: SocketAddr,
}

impl ServerProcess {
    /// Starts a server with these arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_by(&mut command(&[&["serve", "--http", "127.0.0.1:0"], args].concat()))
    }

    /// Starts a server by a command that becomes one.
    pub(crate) fn start_by(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let mut err = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut greeting = String::new();
        err.read_line(&mut greeting).expect("it greets");
        let address = greeting.split("://").nth(1).and_then(|rest| rest.split(';').next());
        let address = address.and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address: {greeting}"));
        Self { child, err, greeting, address }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address).expect("it accepts")
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        self.connect().ask(method, path, body)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its log; waits for it.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).expect("stderr is text");
        line
    }

    /// Sends a signal: `TERM`, `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill is there");
        assert!(sent.success());
    }

    /// Waits for its end; returns the exit status and the rest of stderr.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.err.read_to_string(&mut rest).expect("stderr is text");
        (self.child.wait().expect("it ends"), rest)
    }

    /// Resident memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("Linux");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has memory");
        let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
        kilobytes.expect("a number") << 10
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
