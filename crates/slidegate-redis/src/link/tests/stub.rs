//! A stub server with scripted replies.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The reply to a command: `None` for no reply, [`CLOSE`] to close the connection.
type ReplyFn = fn(&[String]) -> Option<String>;

/// Closes the connection.
pub(super) const CLOSE: &str = "";

/// A stub on a free port, until it is dropped.
pub(super) struct Stub {
    port: u16,
    received: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Stub {
    pub(super) async fn start(reply_to: ReplyFn) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&received);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, reply_to, Arc::clone(&record)));
            }
        });
        Self { port, received, task }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://:hunter2@127.0.0.1:{}", self.port)
    }

    /// How often it received a command of that name.
    pub(super) fn received(&self, name: &str) -> usize {
        self.received.lock().unwrap().iter().filter(|command| *command == name).count()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: TcpStream, reply_to: ReplyFn, received: Arc<Mutex<Vec<String>>>) {
    let mut socket = BufReader::new(socket);
    while let Some(words) = command(&mut socket).await {
        received.lock().unwrap().push(words[0].clone());
        let Some(reply) = reply_to(&words) else { continue };
        if reply == CLOSE || socket.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The words of the next command; `None` if the connection is closed.
async fn command(socket: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..number(socket).await? {
        let mut word = vec![0; number(socket).await? + 2];
        socket.read_exact(&mut word).await.ok()?;
        words.push(String::from_utf8_lossy(&word).trim_end().to_owned());
    }
    Some(words)
}

/// The number in a header such as `*3` or `$10`.
async fn number(socket: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    socket.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim().parse().ok()
}

/// The handshake replies of a server of that version; RESP3 from version 6.
pub(super) fn handshake_reply(words: &[String], version: &str) -> Option<String> {
    match (&*words[0], version.as_bytes()[0]) {
        ("HELLO", b'6'..) => Some("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n".into()),
        // As Redis before 6 answers: with the password in it.
        ("HELLO", _) => Some(format!(
            "-ERR unknown command `HELLO`, with args beginning with: `{}`, \r\n",
            words[1..].join("`, `")
        )),
        ("AUTH", _) => Some("+OK\r\n".into()),
        ("CLIENT", _) => Some("-ERR Unknown subcommand\r\n".into()),
        ("INFO", _) => {
            let info = format!("# Server\r\nredis_version:{version}\r\n");
            Some(format!("${}\r\n{info}\r\n", info.len()))
        }
        _ => None,
    }
}
