//! A proxy between the program and its Redis, which delays, swallows, spoils and counts.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use slidegate::time::{Clock, SystemClock};

/// What the proxy does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Forward,
    /// Nothing comes back, and no connection is closed.
    BlackHole,
    /// Replies are late.
    Delay(Duration),
    /// Replies are other bytes.
    Spoil,
    /// The port is closed, and so are all connections.
    Refuse,
}

/// A proxy on a port of its own. Dropping it closes everything.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    port: u16,
    target_port: AtomicU16,
    mode: Mutex<Mode>,
    /// Both ends of every connection.
    streams: Mutex<Vec<TcpStream>>,
    /// Connections that were opened.
    connections: AtomicU64,
    /// Script calls that arrived.
    calls: AtomicU64,
}

impl Proxy {
    /// A proxy that forwards to a port.
    pub(crate) fn start(target_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            port,
            target_port: AtomicU16::new(target_port),
            mode: Mutex::new(Mode::Forward),
            streams: Mutex::default(),
            connections: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        });
        let acceptor = Some(accept(listener, Arc::clone(&shared)));
        Self { shared, acceptor }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.shared.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.shared.port
    }

    /// The port that it forwards to.
    pub(crate) fn target_port(&self) -> u16 {
        self.shared.target_port.load(Ordering::SeqCst)
    }

    /// Connections that were opened, and script calls that arrived, since the start.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.shared.connections.load(Ordering::SeqCst), self.shared.calls.load(Ordering::SeqCst))
    }

    pub(crate) fn set(&mut self, mode: Mode) {
        let before = std::mem::replace(&mut *self.shared.mode.lock().unwrap(), mode);
        if mode == Mode::Refuse {
            self.close();
        } else if before == Mode::Refuse {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.shared.port)).expect("our port");
            self.acceptor = Some(accept(listener, Arc::clone(&self.shared)));
        }
    }

    /// Closes all connections; the port stays open.
    pub(crate) fn cut(&self) {
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn close(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        *self.shared.mode.lock().unwrap() = Mode::Refuse;
        // Wakes the acceptor, which then ends.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.shared.port)));
        acceptor.join().expect("the acceptor ends");
        self.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.close();
    }
}

/// Accepts connections until the port is closed.
fn accept(listener: TcpListener, shared: Arc<Shared>) -> JoinHandle<()> {
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if *shared.mode.lock().unwrap() == Mode::Refuse {
                return;
            }
            shared.connections.fetch_add(1, Ordering::SeqCst);
            let port = shared.target_port.load(Ordering::SeqCst);
            // Dropping the client tells it that Redis is gone.
            let Ok(target) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            let both = [&client, &target].map(|stream| {
                stream.set_nodelay(true).expect("a socket of ours");
                stream.try_clone().expect("a descriptor")
            });
            shared.streams.lock().unwrap().extend(both);
            let (client_end, target_end) = (client.try_clone().unwrap(), target.try_clone().unwrap());
            let (up, down) = (Arc::clone(&shared), Arc::clone(&shared));
            thread::spawn(move || pump(client, target, |bytes| up.request(bytes)));
            thread::spawn(move || pump(target_end, client_end, |bytes| down.reply(bytes)));
        }
    })
}

/// Passes on what `change` makes of the bytes, until either end is closed.
fn pump(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&mut Vec<u8>)) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut bytes = buffer[..count].to_vec();
        change(&mut bytes);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    for end in [from, to] {
        // It may be closed already.
        let _ = end.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn mode(&self) -> Mode {
        *self.mode.lock().unwrap()
    }

    fn request(&self, bytes: &mut Vec<u8>) {
        let calls = bytes.windows(8).filter(|window| window.starts_with(b"\r\nEVAL")).count();
        self.calls.fetch_add(calls as u64, Ordering::SeqCst);
        if self.mode() == Mode::BlackHole {
            bytes.clear();
        }
    }

    fn reply(&self, bytes: &mut Vec<u8>) {
        match self.mode() {
            Mode::BlackHole => bytes.clear(),
            Mode::Spoil => bytes.fill(b'?'),
            Mode::Delay(delay) => {
                let clock = SystemClock::new();
                let until_us = clock.now_us() + u64::try_from(delay.as_micros()).expect("a short delay");
                while clock.now_us() < until_us {
                    clock.park_until_us(until_us);
                }
            }
            Mode::Forward | Mode::Refuse => {}
        }
    }
}
