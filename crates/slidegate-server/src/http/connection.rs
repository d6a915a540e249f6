//! Serves one connection.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use slidegate::time::{Clock, WallClock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

use super::access::{AccessControl, Head};
use super::buffer_bound::{BufferBound, RequestBytes};
use super::collect_body::{collect, discard};
use super::drain_unread;
use super::fast_path;
use super::handlers::{Handlers, HttpRequest};
use super::openapi;
use super::problem::Problem;
use super::reply::{self, Reply};
use super::watchdog::{RequestProgress, Stage, Watchdog};
use super::watched_stream::WatchedStream;
use crate::service::Bounds;
use crate::tls::Tls;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How often the watchdog looks at a connection within its shortest time limit.
const LOOKS_PER_PERIOD: u32 = 4;
/// Idle time while the server drains.
const DRAIN_IDLE_TIME: Duration = Duration::from_millis(250);

/// State that all connections share.
pub(super) struct Shared {
    pub(super) access: AccessControl,
    pub(super) handlers: Handlers,
    pub(super) bounds: Bounds,
    pub(super) buffer_bound: Arc<BufferBound>,
    pub(super) tls: Option<Tls>,
    /// The server shuts down: answers close their connections.
    pub(super) draining: AtomicBool,
}

/// A byte stream: TCP, or TLS over it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Serves a connection until it is closed by the client, by a time limit or by the shutdown.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>, draining: Receiver<bool>) {
    match &shared.tls {
        None => serve_stream(stream, shared, draining).await,
        // Boxed, so that connections without TLS need no room for this future.
        Some(tls) => Box::pin(serve_tls(tls.accept(stream), shared, draining)).await,
    }
}

/// Serves a connection after its handshake, which has the time limit of a request's head.
async fn serve_tls(
    handshake: impl Future<Output = io::Result<impl Stream>>,
    shared: Arc<Shared>,
    mut draining: Receiver<bool>,
) {
    let progress = RequestProgress::default();
    progress.enter(Stage::Head);
    let ended = {
        let handshake = pin!(handshake);
        with_watchdog(handshake, &progress, &shared.bounds, &mut draining).await
    };
    // A failed handshake needs no answer: rustls has sent its alert.
    if let ServeEnd::Done(Ok(stream)) = ended {
        serve_stream(stream, shared, draining).await;
    }
}

async fn serve_stream<S: Stream>(mut stream: S, shared: Arc<Shared>, mut draining: Receiver<bool>) {
    let progress = RequestProgress::default();
    let ended = {
        let plain = pin!(fast_path::serve(&mut stream, &shared, &progress));
        with_watchdog(plain, &progress, &shared.bounds, &mut draining).await
    };
    let (stream, end) = match ended {
        // hyper renders a date when it begins, also without its header, and panics before 1970.
        ServeEnd::Done(fast_path::FastPathEnd::NotPlain(_)) if WallClock.now_us() == 0 => {
            (stream, ConnectionEnd::Closed(Some(Problem::clock())))
        }
        ServeEnd::Done(fast_path::FastPathEnd::NotPlain(before)) => {
            // Boxed, because most connections stay on the fast path and need no room for this future.
            Box::pin(serve_any(stream, before, &shared, &mut draining)).await
        }
        ServeEnd::Idle => (stream, ConnectionEnd::Idle),
        ServeEnd::Done(fast_path::FastPathEnd::Closed) => (stream, ConnectionEnd::Closed(None)),
        ServeEnd::Late => (stream, ConnectionEnd::Closed(Some(Problem::late("the request")))),
    };
    match end {
        ConnectionEnd::Idle => drain_unread::close_idle(stream).await,
        ConnectionEnd::Closed(problem) => {
            drain_unread::close(stream, problem.as_ref(), &*shared.handlers.clock).await;
        }
    }
}

/// How a connection ends.
enum ConnectionEnd {
    /// Nothing is left to answer.
    Idle,
    /// After an answer, perhaps this last one.
    Closed(Option<Problem>),
}

/// Serves any requests with hyper, which first reads the bytes `before`. Returns the stream, so that no buffer is held
/// while the connection is drained.
async fn serve_any<S: Stream>(
    stream: S,
    before: Vec<u8>,
    shared: &Arc<Shared>,
    draining: &mut Receiver<bool>,
) -> (S, ConnectionEnd) {
    let progress = Arc::new(RequestProgress::default());
    let request_bytes = Arc::new(RequestBytes::new(Arc::clone(&shared.buffer_bound)));
    let service = {
        let (shared, progress) = (Arc::clone(shared), Arc::clone(&progress));
        let request_bytes = Arc::clone(&request_bytes);
        service_fn(move |request| {
            answer(request, Arc::clone(&shared), Arc::clone(&progress), Arc::clone(&request_bytes))
        })
    };
    let watched = WatchedStream::new(stream, before, Arc::clone(&progress), Arc::clone(&request_bytes));
    let mut connection = http1::Builder::new()
        .half_close(true)
        .header_read_timeout(None)
        // Answers have the date of the server's clock.
        .auto_date_header(false)
        .max_buf_size(shared.bounds.header_bytes.max(8 << 10))
        .serve_connection(watched, service);
    let ended = with_watchdog(Pin::new(&mut connection), &progress, &shared.bounds, draining).await;
    let end = match ended {
        ServeEnd::Done(Err(_)) if request_bytes.is_refused() => {
            ConnectionEnd::Closed(Some(Problem::buffers_full(shared.bounds.buffer_bytes)))
        }
        ServeEnd::Done(Err(error)) if error.is_parse_too_large() => {
            ConnectionEnd::Closed(Some(Problem::head_too_large(shared.bounds.header_bytes)))
        }
        ServeEnd::Done(Err(error)) if error.is_parse() => ConnectionEnd::Closed(Some(Problem::not_http())),
        ServeEnd::Idle => ConnectionEnd::Idle,
        ServeEnd::Done(_) => ConnectionEnd::Closed(None),
        ServeEnd::Late => ConnectionEnd::Closed(Some(Problem::late("the head of the request"))),
    };
    (connection.into_parts().io.into_stream(), end)
}

/// Why a connection is no longer served.
enum ServeEnd<T> {
    Done(T),
    /// No request arrived within the idle time.
    Idle,
    /// The head of a request did not arrive in time.
    Late,
}

/// Drives `serving` under a watchdog that enforces the time limits.
async fn with_watchdog<T>(
    mut serving: Pin<&mut impl Future<Output = T>>,
    progress: &RequestProgress,
    bounds: &Bounds,
    draining: &mut Receiver<bool>,
) -> ServeEnd<T> {
    let mut watchdog = Watchdog::new(bounds.request_time.min(bounds.idle_time) / LOOKS_PER_PERIOD);
    if *draining.borrow_and_update() {
        watchdog = Watchdog::new(DRAIN_IDLE_TIME / LOOKS_PER_PERIOD);
    }
    let mut timer = pin!(sleep(watchdog.period));
    loop {
        tokio::select! {
            biased;
            done = &mut serving => return ServeEnd::Done(done),
            () = &mut timer => {}
            Ok(()) = draining.changed() => watchdog = Watchdog::new(DRAIN_IDLE_TIME / LOOKS_PER_PERIOD),
        }
        let idle_time = if *draining.borrow() { DRAIN_IDLE_TIME } else { bounds.idle_time };
        match watchdog.look(progress) {
            (Stage::Idle, for_time) if for_time >= idle_time => return ServeEnd::Idle,
            (Stage::Head, for_time) if for_time >= bounds.request_time => return ServeEnd::Late,
            (Stage::Body, for_time) if for_time >= bounds.request_time => progress.set_late(),
            _ => {}
        }
        timer.as_mut().reset(Instant::now() + watchdog.period);
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    progress: Arc<RequestProgress>,
    request_bytes: Arc<RequestBytes>,
) -> Result<Response<String>, Infallible> {
    progress.enter(Stage::Body);
    let (parts, body) = request.into_parts();
    // The body stays unread until access control has passed.
    let mut reply = match head(&parts).and_then(|head| shared.access.route(&head)) {
        Err(problem) => problem.reply(),
        Ok(route) => {
            let collected = if route.has_body() {
                collect(body, &shared.bounds, &progress, &request_bytes).await
            } else {
                discard(body, &shared.bounds, &progress, &request_bytes).await.map(|()| Bytes::new())
            };
            let reply = match collected {
                Err(problem) => Reply { close: true, ..problem.reply() },
                Ok(body) => {
                    progress.enter(Stage::Answering);
                    let draining = shared.is_draining();
                    let query = parts.uri.query().unwrap_or_default();
                    shared.handlers.answer(route, HttpRequest { query, body: &body, draining }).await
                }
            };
            debug_assert!(openapi::lists(route, reply.status), "{route:?} does not list {}", reply.status);
            reply
        }
    };
    request_bytes.clear();
    progress.enter(Stage::Idle);
    reply.close |= shared.is_draining();
    Ok(response(reply, &*shared.handlers.clock))
}

/// The head of a request; its host must be clear.
fn head(parts: &Parts) -> Result<Head<'_>, Problem> {
    let value = |name: HeaderName| match parts.headers.get_all(name).iter().collect::<Vec<_>>()[..] {
        [] => None,
        [value] => Some(value.as_bytes()),
        // A repeated header is ambiguous and counts as invalid.
        _ => Some(&b""[..]),
    };
    // A target in absolute form, as for a proxy, names the host once more.
    let target = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let host = match (value(header::HOST), target) {
        (None, _) if parts.version >= Version::HTTP_11 => {
            return Err(Problem::malformed("host: is missing; send the header `host`"));
        }
        (Some(host), Some(target)) if !host.eq_ignore_ascii_case(target) => {
            let text = "host: differs from the host in the request target; send the path alone as the target";
            return Err(Problem::malformed(text));
        }
        (host, target) => host.or(target),
    };
    Ok(Head {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        host,
        origin: value(header::ORIGIN),
        authorization: value(header::AUTHORIZATION),
        content_type: value(header::CONTENT_TYPE),
        fetch_site: value(SEC_FETCH_SITE),
    })
}

fn response(reply: Reply, clock: &dyn Clock) -> Response<String> {
    let mut response = Response::new(String::from_utf8(reply.body).expect("every body is text"));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content.media_type()));
    if let Ok(date) = HeaderValue::from_bytes(&reply::date(clock)) {
        headers.insert(header::DATE, date);
    }
    let lines = String::from_utf8_lossy(&reply.lines);
    for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    if reply.close {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
