//! A proxy before Redis that swallows the calls of scripts: they get no reply.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The keys and arguments of the calls that got no reply.
type Calls = Mutex<Vec<Vec<u8>>>;

/// Dropping it ends it.
pub struct SwallowingProxy {
    pub port: u16,
    pub swallowed: Arc<Calls>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl SwallowingProxy {
    pub fn start(redis: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (swallowed, stop) = (Arc::new(Calls::default()), Arc::new(AtomicBool::new(false)));
        let acceptor = {
            let (swallowed, stop) = (Arc::clone(&swallowed), Arc::clone(&stop));
            thread::spawn(move || {
                for client in listener.incoming() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    serve(client.unwrap(), redis, &swallowed);
                }
            })
        };
        Self { port, swallowed, stop, acceptor: Some(acceptor) }
    }
}

impl Drop for SwallowingProxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.acceptor.take().expect("dropped once").join().expect("the acceptor does not panic");
    }
}

/// Two threads per connection, which end with it.
fn serve(client: TcpStream, redis: u16, swallowed: &Arc<Calls>) {
    let server = TcpStream::connect(("127.0.0.1", redis)).unwrap();
    let (mut replies, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || io::copy(&mut replies, &mut to_client));
    let swallowed = Arc::clone(swallowed);
    thread::spawn(move || forward(client, server, &swallowed));
}

fn forward(client: TcpStream, mut server: TcpStream, swallowed: &Calls) {
    let mut client = BufReader::new(client);
    while let Some((raw, words)) = command(&mut client) {
        if words[0].to_ascii_uppercase().starts_with(b"EVAL") {
            swallowed.lock().unwrap().push(words[2..].concat());
        } else if server.write_all(&raw).is_err() {
            return;
        }
    }
}

/// The next command as it was sent, and its words. `None` when the client has closed the connection.
fn command(client: &mut impl BufRead) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let (mut raw, mut words) = (Vec::new(), Vec::new());
    for _ in 0..number(client, &mut raw)? {
        let length = number(client, &mut raw)?;
        let mut word = vec![0; length + b"\r\n".len()];
        client.read_exact(&mut word).ok()?;
        raw.extend(&word);
        word.truncate(length);
        words.push(word);
    }
    Some((raw, words))
}

/// The number of a line `*N` or `$N`.
fn number(client: &mut impl BufRead, raw: &mut Vec<u8>) -> Option<usize> {
    let mut line = String::new();
    client.read_line(&mut line).ok()?;
    raw.extend(line.as_bytes());
    line.get(1..)?.trim_end().parse().ok()
}
