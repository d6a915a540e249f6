//! Serves one connection.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

use super::access::{AccessControl, Head};
use super::drain_unread;
use super::fast_path;
use super::handlers::{Handlers, HttpRequest};
use super::openapi;
use super::problem::Problem;
use super::reply::Reply;
use super::watchdog::{RequestProgress, Stage, Watchdog};
use super::watched_stream::WatchedStream;
use crate::service::Bounds;

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
    /// The server shuts down: answers close their connections.
    pub(super) draining: AtomicBool,
}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Serves a connection until it is closed by the client, by a time limit or by the shutdown.
pub(super) async fn serve(mut stream: TcpStream, shared: Arc<Shared>, mut draining: Receiver<bool>) {
    let progress = RequestProgress::default();
    let ended = {
        let plain = pin!(fast_path::serve(&mut stream, &shared, &progress));
        with_watchdog(plain, &progress, &shared.bounds, &mut draining).await
    };
    let problem = match ended {
        ServeEnd::Done(fast_path::FastPathEnd::NotPlain(before)) => {
            // Boxed, because most connections stay on the fast path and need no room for this future.
            return Box::pin(serve_any(stream, before, shared, draining)).await;
        }
        ServeEnd::Idle => return drain_unread::close_idle(stream).await,
        ServeEnd::Done(fast_path::FastPathEnd::Closed) => None,
        ServeEnd::Late => Some(Problem::late("the request")),
    };
    drain_unread::close(stream, problem.as_ref(), &*shared.handlers.clock).await;
}

/// Serves any requests with hyper, which first reads the bytes `before`.
async fn serve_any(stream: TcpStream, before: Vec<u8>, shared: Arc<Shared>, mut draining: Receiver<bool>) {
    let progress = Arc::new(RequestProgress::default());
    let service = {
        let (shared, progress) = (Arc::clone(&shared), Arc::clone(&progress));
        service_fn(move |request| answer(request, Arc::clone(&shared), Arc::clone(&progress)))
    };
    let mut connection = http1::Builder::new()
        .half_close(true)
        .header_read_timeout(None)
        .max_buf_size(shared.bounds.header_bytes.max(8 << 10))
        .serve_connection(WatchedStream::new(stream, before, Arc::clone(&progress)), service);
    let ended = with_watchdog(Pin::new(&mut connection), &progress, &shared.bounds, &mut draining).await;
    let problem = match ended {
        ServeEnd::Done(Err(error)) if error.is_parse_too_large() => {
            Some(Problem::head_too_large(shared.bounds.header_bytes))
        }
        ServeEnd::Done(Err(error)) if error.is_parse() => Some(Problem::not_http()),
        ServeEnd::Idle => return drain_unread::close_idle(connection.into_parts().io.into_stream()).await,
        ServeEnd::Done(_) => None,
        ServeEnd::Late => Some(Problem::late("the head of the request")),
    };
    let stream = connection.into_parts().io.into_stream();
    drain_unread::close(stream, problem.as_ref(), &*shared.handlers.clock).await;
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
) -> Result<Response<String>, Infallible> {
    progress.enter(Stage::Body);
    let (parts, body) = request.into_parts();
    let head = head(&parts);
    let passed = if head.host.is_none() && parts.version >= Version::HTTP_11 {
        Err(Problem::malformed("host: is missing; send the header `host`"))
    } else {
        shared.access.route(&head)
    };
    let mut reply = match passed {
        Err(problem) => problem.reply(),
        Ok(route) => {
            let reply = match collect(body, shared.bounds.body_bytes, &progress).await {
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
    progress.enter(Stage::Idle);
    reply.close |= shared.is_draining();
    Ok(response(reply))
}

fn head(parts: &hyper::http::request::Parts) -> Head<'_> {
    let value = |name: HeaderName| match parts.headers.get_all(name).iter().collect::<Vec<_>>()[..] {
        [] => None,
        [value] => Some(value.as_bytes()),
        // A repeated header is ambiguous and counts as invalid.
        _ => Some(&b""[..]),
    };
    Head {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        host: value(header::HOST),
        origin: value(header::ORIGIN),
        authorization: value(header::AUTHORIZATION),
        content_type: value(header::CONTENT_TYPE),
        fetch_site: value(SEC_FETCH_SITE),
    }
}

/// Collects the body. A body in one frame, the usual case, is not copied.
async fn collect(mut body: Incoming, bytes_max: usize, progress: &RequestProgress) -> Result<Bytes, Problem> {
    let mut all = Bytes::new();
    loop {
        // The bytes so far, and those that the client has announced.
        if (all.len() as u64).saturating_add(body.size_hint().lower()) > bytes_max as u64 {
            return Err(Problem::too_large(bytes_max));
        }
        let frame = poll_fn(|context| match Pin::new(&mut body).poll_frame(context) {
            Poll::Pending if progress.is_late() => Poll::Ready(Err(Problem::late("the body"))),
            polled => polled.map(Ok),
        });
        let Some(frame) = frame.await? else { return Ok(all) };
        let frame = frame.map_err(|_| Problem::malformed("body: ended too early; send all of it"))?;
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else { continue };
        if all.is_empty() {
            all = data;
        } else {
            let mut longer = BytesMut::from(all);
            longer.extend_from_slice(&data);
            all = longer.freeze();
        }
    }
}

fn response(reply: Reply) -> Response<String> {
    let mut response = Response::new(String::from_utf8(reply.body).expect("every body is text"));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content.media_type()));
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
