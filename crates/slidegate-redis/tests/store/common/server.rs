//! A redis-server for one test, on a free port and in a temporary folder. Dropping it ends it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Lines};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Connection, ConnectionLike, Value};

/// The variable that names another server program: another version of Redis, or Valkey.
const SERVER: &str = "SLIDEGATE_REDIS_SERVER";
const REMEDY: &str =
    "install it (Debian: `apt-get install redis-server`), or run `cargo xtask test`, which does";
/// Another process may take a free port before Redis does.
const PORTS_TRIED: usize = 20;

/// What the log says when the server accepts connections.
const READY: &str = "Ready to accept connections";
/// What it says when the server accepts connections and has begun to load its data.
const LOADING: &str = "Loading RDB produced by";

/// A running redis-server. It keeps nothing on disk unless its arguments say otherwise.
pub struct RedisServer {
    child: Child,
    port: u16,
    folder: PathBuf,
    args: Vec<String>,
}

impl RedisServer {
    /// Starts a server without persistence.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more arguments, which override ours: `&["--appendonly", "yes"]`.
    pub fn start_with(args: &[&str]) -> Self {
        let folder = folder();
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        for _ in 0..PORTS_TRIED {
            let port = free_port();
            if let Ok(child) = launch(port, &folder, &args, READY) {
                return Self { child, port, folder, args };
            }
        }
        panic!("redis-server found none of {PORTS_TRIED} free ports free");
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// A connection beside those of the store.
    pub fn connection(&self) -> Connection {
        self.client().get_connection().expect("the server accepts a connection")
    }

    /// An asynchronous connection beside those of the store.
    pub async fn async_connection(&self) -> MultiplexedConnection {
        async_connection(&self.client()).await
    }

    fn client(&self) -> Client {
        Client::open(self.url()).expect("our own address is valid")
    }

    /// Sends one command over a new connection. An error reply panics.
    pub fn command(&self, words: &[&str]) -> Value {
        command(&mut self.connection(), words)
    }

    /// Ends the process at once, as a crash would.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().expect("the child process can be waited for");
    }

    /// Kills it and starts it again on the same port: with the data on disk, if any.
    pub fn restart(&mut self) {
        self.kill();
        for _ in 0..PORTS_TRIED {
            if let Ok(child) = launch(self.port, &self.folder, &self.args, READY) {
                self.child = child;
                return;
            }
        }
        panic!("port {} was taken by another process while redis-server restarted", self.port);
    }

    /// Starts a killed one again with more arguments, and returns while it still loads its data.
    pub fn launch_loading(&mut self, args: &[&str]) {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self.child = launch(self.port, &self.folder, &self.args, LOADING).expect("its port is still free");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        // A leftover folder is harmless: it is among the temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A connection that waits as long as the server takes: the usual half second is short on a busy machine.
pub async fn async_connection(client: &Client) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    connection.expect("the server accepts a connection")
}

/// Sends one command. An error reply panics.
pub fn command(connection: &mut Connection, words: &[&str]) -> Value {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let reply = connection.req_command(&command);
    reply.unwrap_or_else(|error| panic!("{}: {error}", words.join(" ")))
}

/// A new temporary folder.
pub fn folder() -> PathBuf {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("slidegate-redis-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for redis-server");
    folder
}

/// The server program.
pub fn program() -> OsString {
    env::var_os(SERVER).unwrap_or_else(|| "redis-server".into())
}

/// A port that is free at this moment. A node of a cluster uses the one 10,000 above it too.
pub fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the system has a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        if port <= u16::MAX - 10_000 {
            return port;
        }
    }
}

/// Starts the process and waits until its log says `until`; an error with its output if it ends before.
fn launch(port: u16, folder: &Path, args: &[String], until: &str) -> Result<Child, String> {
    let port = port.to_string();
    let program = program();
    let mut started = Command::new(&program);
    started.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    started.arg(folder).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = match started.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("{} is missing; {REMEDY}", program.display())
        }
        Err(error) => panic!("redis-server cannot be started: {error}"),
    };
    let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
    let mut output = String::new();
    while let Some(Ok(line)) = lines.next() {
        if line.contains(until) {
            drain(lines);
            return Ok(child);
        }
        output.extend([line.as_str(), "\n"]);
    }
    child.wait().expect("the child process can be waited for");
    assert!(output.contains("ddress already in use"), "redis-server {args:?} does not start:\n{output}");
    Err(output)
}

/// Keeps reading, so that the server never blocks on a full pipe.
fn drain(lines: Lines<BufReader<ChildStdout>>) {
    thread::spawn(move || lines.for_each(drop));
}
