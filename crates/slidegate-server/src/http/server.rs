//! Accepts connections and hands them to threads.
//!
//! The setting `threads` says how many threads there are; by default one fewer than cores, and at least one. Each has
//! its own runtime: a connection stays on its thread, and no task is stolen. One listener accepts for all threads
//! and assigns each connection to the thread with the fewest.
//!
//! Rejected: a listener per thread on the same port (`SO_REUSEPORT`). A second server started by mistake would silently
//! share the port, and each of the two would count half of the requests.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use slidegate::time::{Clock, WallClock};
use thiserror::Error;
use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::access::AccessControl;
use super::buffer_bound::BufferBound;
use super::connection::{self, Shared};
use super::drain_unread;
use super::handlers::Handlers;
use super::memory_return::{self, Peak};
use super::problem::Problem;
use crate::reload::FileReloader;
use crate::service::{Service, Settings};
use crate::tls::{Tls, TlsError};

/// Most connections that wait to be accepted.
const BACKLOG: u32 = 4_096;
/// Most connections beyond the bound that get a 503 at the same time; further ones are closed without an answer.
const REFUSED_MAX: usize = 64;
/// What clients may ask for within TLS.
const ALPN_PROTOCOLS: &[&[u8]] = &[b"http/1.1"];
/// Pause after a failed accept.
const ACCEPT_RETRY_TIME: Duration = Duration::from_millis(50);

/// A server that listens.
pub(crate) struct Server {
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: usize,
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    #[error("http: cannot listen on {address}: {source}; choose another address with --http")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("http: the system refuses a thread; see ulimit -u")]
    Thread(#[source] io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The result of a graceful shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drained {
    /// Connections that were cut because their requests exceeded the drain time, or because the drain was hastened.
    pub(crate) cut: usize,
    /// Whether the drain was ended before its time.
    pub(crate) hastened: bool,
}

impl Server {
    /// Listens. Must be called on a runtime.
    pub(crate) fn bind(
        settings: &Settings,
        service: Service,
        clock: Arc<dyn Clock>,
        reloader: Option<Arc<FileReloader>>,
    ) -> Result<Self, ServeError> {
        let tls = Tls::open(&settings.tls, ALPN_PROTOCOLS, Arc::new(WallClock))?;
        let address = settings.http;
        let listen = || -> io::Result<_> {
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // A server that was just stopped leaves its address in TIME_WAIT.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let listener = socket.listen(BACKLOG)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = listen().map_err(|source| ServeError::Listen { address, source })?;
        let headers = settings.headers.clone().into();
        let shared = Arc::new(Shared {
            access: AccessControl::new(settings, address.ip(), Arc::clone(&service.tokens)),
            handlers: Handlers { service, headers, clock, reloader },
            bounds: settings.bounds.clone(),
            buffer_bound: Arc::new(BufferBound::new(settings.bounds.buffer_bytes)),
            tls,
            draining: AtomicBool::new(false),
        });
        Ok(Self { listener, address, shared, threads: settings.threads })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The scheme of its URLs.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.shared.tls.is_some() { "https" } else { "http" }
    }

    /// Serves until `stop`, then drains the requests in flight. `close` ends the drain at once; the threads still run
    /// then, and their connections are cut by the end of the process.
    pub(crate) async fn run(
        self,
        stop: impl Future<Output = ()>,
        close: impl Future<Output = ()>,
    ) -> Result<Drained, ServeError> {
        let Self { listener, shared, threads, .. } = self;
        let (drain, draining) = watch::channel(false);
        let workers: Vec<Worker> =
            (0..threads).map(|number| Worker::start(number, &shared, &draining)).collect::<Result<_, _>>()?;
        let mut stop = pin!(stop);
        let mut certificate_watch = pin!(watch_certificate(&shared));
        let counts: Vec<_> = workers.iter().map(|worker| Arc::clone(&worker.open)).collect();
        let open = || counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        let peak = Peak::default();
        let mut memory_watch = pin!(memory_return::watch(&peak, open));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
                never = &mut certificate_watch => match never {},
                never = &mut memory_watch => match never {},
            };
            accept(accepted, &workers, &shared, &peak).await;
        }
        shared.draining.store(true, Ordering::Relaxed);
        // Connections in the backlog are still served.
        while let Ok(accepted @ Ok(_)) = timeout(Duration::ZERO, listener.accept()).await {
            accept(accepted, &workers, &shared, &peak).await;
        }
        drop(listener);
        drain.send_replace(true);
        // Drops every worker's sender, so that the drain time of all of them begins now.
        let (open, ended): (Vec<_>, Vec<_>) =
            workers.into_iter().map(|Worker { open, ended, .. }| (open, ended)).unzip();
        let all_ended = async {
            for ended in ended {
                // An error means that the thread panicked.
                let _ = ended.await;
            }
        };
        let hastened = tokio::select! {
            () = all_ended => false,
            () = close => true,
        };
        Ok(Drained { cut: open.iter().map(|open| open.load(Ordering::Relaxed)).sum(), hastened })
    }
}

/// Follows the files of TLS, if there are any.
async fn watch_certificate(shared: &Shared) -> Infallible {
    match &shared.tls {
        Some(tls) => tls.watch().await,
        None => pending().await,
    }
}

async fn accept(
    accepted: io::Result<(tokio::net::TcpStream, SocketAddr)>,
    workers: &[Worker],
    shared: &Shared,
    peak: &Peak,
) {
    let stream = accepted.and_then(|(stream, _)| {
        stream.set_nodelay(true)?;
        stream.into_std()
    });
    let Ok(stream) = stream else {
        // Out of files or memory, or the client is gone. New connections wait until open ones close.
        sleep(ACCEPT_RETRY_TIME).await;
        return;
    };
    let open: usize = workers.iter().map(Worker::open).sum();
    peak.note(open);
    if open >= shared.bounds.connections + REFUSED_MAX {
        return;
    }
    let within_bound = open < shared.bounds.connections;
    if let Some(worker) = workers.iter().min_by_key(|worker| worker.open()) {
        worker.assign(stream, within_bound);
    }
}

/// A connection that is assigned to a thread.
struct AcceptedConnection {
    stream: TcpStream,
    /// Whether it is within the bound on connections; if not, it gets a 503.
    within_bound: bool,
    slot: ConnectionSlot,
}

/// A thread that serves connections.
struct Worker {
    accepted_connections: mpsc::UnboundedSender<AcceptedConnection>,
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
            // The receiver may be gone.
            let _ = ending.send(());
        };
        thread::Builder::new().name(format!("http-{number}")).spawn(body).map_err(ServeError::Thread)?;
        Ok(Self { accepted_connections: sender, open, ended })
    }

    /// Its open connections.
    fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn assign(&self, stream: TcpStream, within_bound: bool) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let slot = ConnectionSlot(Arc::clone(&self.open));
        // Fails only if the thread panicked.
        let _ = self.accepted_connections.send(AcceptedConnection { stream, within_bound, slot });
    }
}

/// Serves connections; once no more are assigned, waits for all to end, at most for the drain time.
async fn work(
    mut accepted_connections: mpsc::UnboundedReceiver<AcceptedConnection>,
    shared: Arc<Shared>,
    draining: watch::Receiver<bool>,
) {
    // Every connection holds a sender: the receiver ends when the last one is dropped.
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    while let Some(AcceptedConnection { stream, within_bound, slot }) = accepted_connections.recv().await {
        let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { continue };
        let (shared, draining, alive) = (Arc::clone(&shared), draining.clone(), alive.clone());
        tokio::spawn(async move {
            if within_bound {
                let metrics = &shared.handlers.service.counters.metrics;
                metrics.connection_opened();
                connection::serve(stream, Arc::clone(&shared), draining).await;
                metrics.connection_closed();
            } else if shared.tls.is_none() {
                // A handshake only to refuse would cost more than the request.
                let problem = Problem::busy(shared.bounds.connections);
                drain_unread::close(stream, Some(&problem), &*shared.handlers.clock).await;
            }
            drop((slot, alive));
        });
    }
    drop(alive);
    let _ = timeout(shared.bounds.drain_time, all_gone.recv()).await;
}

/// Counts a connection as open until it is dropped, also by a panic.
struct ConnectionSlot(Arc<AtomicUsize>);

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
