//! A server that says what it is told to say.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What is said to a command; nothing for silence, [`CLOSE`] for the end.
type Says = fn(&[String]) -> Option<String>;

/// Closes the connection.
pub(super) const CLOSE: &str = "";

/// A stub on a free port, until it is dropped.
pub(super) struct Stub {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Stub {
    pub(super) async fn start(says: Says) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, says, Arc::clone(&record)));
            }
        });
        Self { port, heard, task }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://:hunter2@127.0.0.1:{}", self.port)
    }

    /// How often it heard a command of that name.
    pub(super) fn heard(&self, name: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|heard| *heard == name).count()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: TcpStream, says: Says, heard: Arc<Mutex<Vec<String>>>) {
    let mut socket = BufReader::new(socket);
    while let Some(words) = command(&mut socket).await {
        heard.lock().unwrap().push(words[0].clone());
        let Some(reply) = says(&words) else { continue };
        if reply == CLOSE || socket.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The words of the next command; nothing if the other side is gone.
async fn command(socket: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..number(socket).await? {
        let mut word = vec![0; number(socket).await? + 2];
        socket.read_exact(&mut word).await.ok()?;
        words.push(String::from_utf8_lossy(&word).trim_end().to_owned());
    }
    Some(words)
}

/// A number behind its sign, as `*3` and `$10`.
async fn number(socket: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    socket.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim().parse().ok()
}

/// The greeting of a server of that version that speaks the newer protocol.
pub(super) fn greeting(words: &[String], version: &str) -> Option<String> {
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
