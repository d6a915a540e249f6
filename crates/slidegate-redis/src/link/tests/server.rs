//! A redis-server for one test, on a free port and in a temporary folder. Dropping it ends it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use redis::{Client, Connection, ConnectionLike, Value};

/// Another process may take a free port before Redis does.
const PORTS_TRIED: usize = 20;

/// A running redis-server.
pub(super) struct RedisServer {
    child: Child,
    port: u16,
    folder: PathBuf,
    args: Vec<String>,
}

impl RedisServer {
    /// Starts a server without persistence.
    pub(super) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more arguments, which override ours.
    pub(super) fn start_with(args: &[&str]) -> Self {
        let folder = folder();
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let started = (0..PORTS_TRIED).find_map(|_| {
            let port = free_port();
            launch(port, &folder, &args).map(|child| (child, port))
        });
        let (child, port) = started.expect("redis-server starts; install it if it is missing");
        Self { child, port, folder, args }
    }

    /// The URL of the server.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A connection beside those under test.
    pub(super) fn connection(&self) -> Connection {
        let client = Client::open(self.url()).expect("our own address is valid");
        client.get_connection().expect("the server accepts a connection")
    }

    /// Sends one command over a new connection. An error reply panics.
    pub(super) fn command(&self, words: &[&str]) -> Value {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        let reply = self.connection().req_command(&command);
        reply.unwrap_or_else(|error| panic!("{}: {error}", words.join(" ")))
    }

    /// Ends the process at once, as a crash would.
    pub(super) fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().expect("the child process can be waited for");
    }

    /// Kills it and starts it again on the same port.
    pub(super) fn restart(&mut self) {
        self.kill();
        let started = (0..PORTS_TRIED).find_map(|_| launch(self.port, &self.folder, &self.args));
        self.child = started.expect("redis-server starts again");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        // A leftover folder is harmless: it is among the temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A new folder for temporary files.
pub(super) fn folder() -> PathBuf {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("slidegate-link-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// A port that was free a moment ago.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the system has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// Starts the process and waits until it accepts connections; `None` if it ends before.
fn launch(port: u16, folder: &Path, args: &[String]) -> Option<Child> {
    let port = port.to_string();
    let mut started = Command::new("redis-server");
    started.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    started.arg(folder).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        started.spawn().expect("redis-server is installed; Debian: `apt-get install redis-server`");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
    let ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
    if ready {
        // Keep reading, so that the server never blocks on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        return Some(child);
    }
    child.wait().expect("the child process can be waited for");
    None
}
