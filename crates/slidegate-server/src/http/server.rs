//! Accepts connections and hands them to threads.
//!
//! There are as many threads as cores, less one, each with a runtime of its own: a connection never changes its thread, and nothing is
//! stolen or shared on the way of a request. One listener accepts for all of them and hands each connection to the
//! thread that has the fewest.
//!
//! Rejected: a listener per thread on the same port (`SO_REUSEPORT`). A second server that is started by mistake would
//! share the port without a word, and each of the two would count half of the requests.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use slidegate::time::SystemClock;
use thiserror::Error;
use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::connection::{self, Shared};
use super::farewell;
use super::gate::Gate;
use super::handlers::Handlers;
use super::problem::Problem;
use crate::reload::FileReloader;
use crate::service::{Service, Settings};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4_096;
/// Connections beyond the bound that are told so at the same time; others are closed without a word.
const TURNED_AWAY_MAX: usize = 64;
/// Before trying again where the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that listens.
pub(crate) struct Server {
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: usize,
}

/// Why a server cannot be.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    #[error("http: cannot listen on {address}: {source}; choose another address with --http")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("http: the system refuses a thread; see ulimit -u")]
    Thread(#[source] io::Error),
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drained {
    /// Connections that were cut because their requests took too long to end.
    pub(crate) cut: usize,
}

impl Server {
    /// Listens. Must be called on a runtime.
    pub(crate) fn bind(
        settings: &Settings,
        service: Service,
        clock: Arc<SystemClock>,
        reloader: Option<Arc<FileReloader>>,
    ) -> Result<Self, ServeError> {
        let address = settings.http;
        let listen = || -> io::Result<_> {
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // A server that was just stopped leaves its address in use for a while.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let listener = socket.listen(BACKLOG)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = listen().map_err(|source| ServeError::Listen { address, source })?;
        let headers = settings.headers.clone().into();
        let shared = Arc::new(Shared {
            gate: Gate::new(settings, address.ip()),
            handlers: Handlers { service, headers, clock, reloader },
            bounds: settings.bounds.clone(),
            draining: AtomicBool::new(false),
        });
        Ok(Self { listener, address, shared, threads: settings.threads })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then lets what has begun come to its end.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) -> Result<Drained, ServeError> {
        let Self { listener, shared, threads, .. } = self;
        let (drain, draining) = watch::channel(false);
        let workers: Vec<Worker> =
            (0..threads).map(|number| Worker::start(number, &shared, &draining)).collect::<Result<_, _>>()?;
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            accept(accepted, &workers, &shared).await;
        }
        shared.draining.store(true, Ordering::Relaxed);
        // Those that the system let in before are served.
        while let Ok(accepted @ Ok(_)) = timeout(Duration::ZERO, listener.accept()).await {
            accept(accepted, &workers, &shared).await;
        }
        drop(listener);
        drain.send_replace(true);
        let mut cut = 0;
        for worker in workers {
            cut += worker.end().await;
        }
        Ok(Drained { cut })
    }
}

async fn accept(
    accepted: io::Result<(tokio::net::TcpStream, SocketAddr)>,
    workers: &[Worker],
    shared: &Shared,
) {
    let stream = accepted.and_then(|(stream, _)| {
        stream.set_nodelay(true)?;
        stream.into_std()
    });
    let Ok(stream) = stream else {
        // Out of files or memory, or gone already. Those who are connected may leave; meanwhile others wait.
        sleep(PAUSE).await;
        return;
    };
    let open: usize = workers.iter().map(Worker::open).sum();
    if open >= shared.bounds.connections + TURNED_AWAY_MAX {
        return;
    }
    let welcome = open < shared.bounds.connections;
    if let Some(worker) = workers.iter().min_by_key(|worker| worker.open()) {
        worker.hand(stream, welcome);
    }
}

/// A connection on its way to a thread.
struct Arrival {
    stream: TcpStream,
    /// Whether there is room for it.
    welcome: bool,
    place: Place,
}

/// A thread that serves connections.
struct Worker {
    arrivals: mpsc::UnboundedSender<Arrival>,
    open: Arc<AtomicUsize>,
    ended: oneshot::Receiver<()>,
}

impl Worker {
    fn start(
        number: usize,
        shared: &Arc<Shared>,
        draining: &watch::Receiver<bool>,
    ) -> Result<Self, ServeError> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (ending, ended) = oneshot::channel();
        let open = Arc::new(AtomicUsize::new(0));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ServeError::Thread)?;
        let work = work(receiver, Arc::clone(shared), draining.clone());
        let body = move || {
            runtime.block_on(work);
            // Nobody may wait any more.
            let _ = ending.send(());
        };
        thread::Builder::new().name(format!("http-{number}")).spawn(body).map_err(ServeError::Thread)?;
        Ok(Self { arrivals: sender, open, ended })
    }

    /// Connections that it has.
    fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn hand(&self, stream: TcpStream, welcome: bool) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.open));
        // Only a thread that panicked takes it no more.
        let _ = self.arrivals.send(Arrival { stream, welcome, place });
    }

    /// Waits for its end; says how many connections were cut.
    async fn end(self) -> usize {
        drop(self.arrivals);
        // It ends without a word only if it panicked.
        let _ = self.ended.await;
        self.open.load(Ordering::Relaxed)
    }
}

/// Serves what arrives, and after the last arrival waits for all to end, within the time that there is.
async fn work(
    mut arrivals: mpsc::UnboundedReceiver<Arrival>,
    shared: Arc<Shared>,
    draining: watch::Receiver<bool>,
) {
    // Every connection holds a sender: when the last is gone there is nothing to receive.
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    while let Some(Arrival { stream, welcome, place }) = arrivals.recv().await {
        let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { continue };
        let (shared, draining, alive) = (Arc::clone(&shared), draining.clone(), alive.clone());
        tokio::spawn(async move {
            if welcome {
                let metrics = &shared.handlers.service.counters.metrics;
                metrics.connection_opened();
                connection::serve(stream, Arc::clone(&shared), draining).await;
                metrics.connection_closed();
            } else {
                let problem = Problem::busy(shared.bounds.connections);
                farewell::close(stream, Some(&problem), &*shared.handlers.clock).await;
            }
            drop((place, alive));
        });
    }
    drop(alive);
    let _ = timeout(shared.bounds.drain_time, all_gone.recv()).await;
}

/// The place of a connection among the open ones, given back when it ends however it may.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
