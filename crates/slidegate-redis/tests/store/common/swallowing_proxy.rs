//! A proxy before Redis that swallows the calls of scripts: they get no reply.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

const CALL: &[u8] = b"EVALSHA";

/// Dropping it ends it.
pub struct SwallowingProxy {
    pub port: u16,
    /// How many calls of scripts got no reply.
    pub swallowed: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl SwallowingProxy {
    pub fn start(redis: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (swallowed, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
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
fn serve(client: TcpStream, redis: u16, swallowed: &Arc<AtomicUsize>) {
    let server = TcpStream::connect(("127.0.0.1", redis)).unwrap();
    let (mut replies, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || io::copy(&mut replies, &mut to_client));
    let swallowed = Arc::clone(swallowed);
    thread::spawn(move || forward(client, server, &swallowed));
}

/// Clients send a short call in one write, and nothing else with it.
fn forward(mut client: TcpStream, mut server: TcpStream, swallowed: &AtomicUsize) {
    let mut buffer = [0; 4096];
    while let Ok(count) = client.read(&mut buffer) {
        let calls =
            buffer[..count].windows(CALL.len()).filter(|word| word.eq_ignore_ascii_case(CALL)).count();
        swallowed.fetch_add(calls, Ordering::SeqCst);
        if count == 0 || calls == 0 && server.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}
