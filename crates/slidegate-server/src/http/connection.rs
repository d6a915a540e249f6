//! One connection, from its first byte to its last.

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

use super::farewell;
use super::gate::{Gate, Head};
use super::handlers::{Asked, Handlers};
use super::openapi;
use super::plain;
use super::problem::Problem;
use super::reply::Reply;
use super::stream::Watched;
use super::watch::{Stage, Watch, Watcher};
use crate::service::Bounds;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How often, within the time that a request may take, it is looked at.
const LOOKS: u32 = 4;
/// While the server drains, a connection that is idle for so long has sent its last request.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// What all connections share.
pub(super) struct Shared {
    pub(super) gate: Gate,
    pub(super) handlers: Handlers,
    pub(super) bounds: Bounds,
    /// The server is about to end: answers close their connections.
    pub(super) draining: AtomicBool,
}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Serves a connection until either side has had enough.
pub(super) async fn serve(mut stream: TcpStream, shared: Arc<Shared>, mut draining: Receiver<bool>) {
    let watch = Watch::default();
    let ended = {
        let plain = pin!(plain::serve(&mut stream, &shared, &watch));
        under_watch(plain, &watch, &shared.bounds, &mut draining).await
    };
    let last_words = match ended {
        Ended::Done(plain::After::Other(before)) => {
            // Most connections never come here, and need not have room for it.
            return Box::pin(serve_any(stream, before, shared, draining)).await;
        }
        Ended::Idle => return farewell::leave(stream).await,
        Ended::Done(plain::After::Ended) => None,
        Ended::Late => Some(Problem::late("the request")),
    };
    farewell::close(stream, last_words.as_ref(), &*shared.handlers.clock).await;
}

/// Serves requests of any form, the first of which begins with the bytes `before`.
async fn serve_any(stream: TcpStream, before: Vec<u8>, shared: Arc<Shared>, mut draining: Receiver<bool>) {
    let watch = Arc::new(Watch::default());
    let service = {
        let (shared, watch) = (Arc::clone(&shared), Arc::clone(&watch));
        service_fn(move |request| answer(request, Arc::clone(&shared), Arc::clone(&watch)))
    };
    let mut connection = http1::Builder::new()
        .half_close(true)
        .header_read_timeout(None)
        .max_buf_size(shared.bounds.header_bytes.max(8 << 10))
        .serve_connection(Watched::new(stream, before, Arc::clone(&watch)), service);
    let ended = under_watch(Pin::new(&mut connection), &watch, &shared.bounds, &mut draining).await;
    let last_words = match ended {
        Ended::Done(Err(error)) if error.is_parse_too_large() => {
            Some(Problem::head_too_large(shared.bounds.header_bytes))
        }
        Ended::Done(Err(error)) if error.is_parse() => Some(Problem::not_http()),
        Ended::Idle => return farewell::leave(connection.into_parts().io.into_stream()).await,
        Ended::Done(_) => None,
        Ended::Late => Some(Problem::late("the head of the request")),
    };
    let stream = connection.into_parts().io.into_stream();
    farewell::close(stream, last_words.as_ref(), &*shared.handlers.clock).await;
}

/// How the serving of a connection ended.
enum Ended<T> {
    Done(T),
    /// Nothing came for too long.
    Idle,
    /// The head of a request did not arrive in time.
    Late,
}

/// Serves, and looks now and then how far it has come.
async fn under_watch<T>(
    mut serving: Pin<&mut impl Future<Output = T>>,
    watch: &Watch,
    bounds: &Bounds,
    draining: &mut Receiver<bool>,
) -> Ended<T> {
    let mut watcher = Watcher::new(bounds.request_time.min(bounds.idle_time) / LOOKS);
    if *draining.borrow_and_update() {
        watcher = Watcher::new(LAST_WORDS / LOOKS);
    }
    let mut timer = pin!(sleep(watcher.period));
    loop {
        tokio::select! {
            biased;
            done = &mut serving => return Ended::Done(done),
            () = &mut timer => {}
            Ok(()) = draining.changed() => watcher = Watcher::new(LAST_WORDS / LOOKS),
        }
        let idle_time = if *draining.borrow() { LAST_WORDS } else { bounds.idle_time };
        match watcher.look(watch) {
            (Stage::Idle, for_time) if for_time >= idle_time => return Ended::Idle,
            (Stage::Head, for_time) if for_time >= bounds.request_time => return Ended::Late,
            (Stage::Body, for_time) if for_time >= bounds.request_time => watch.set_late(),
            _ => {}
        }
        timer.as_mut().reset(Instant::now() + watcher.period);
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    watch: Arc<Watch>,
) -> Result<Response<String>, Infallible> {
    watch.enter(Stage::Body);
    let (parts, body) = request.into_parts();
    let head = head(&parts);
    let passed = if head.host.is_none() && parts.version >= Version::HTTP_11 {
        Err(Problem::malformed("host: is missing; send the header `host`"))
    } else {
        shared.gate.pass(&head)
    };
    let mut reply = match passed {
        Err(problem) => problem.reply(),
        Ok(route) => {
            let reply = match collect(body, shared.bounds.body_bytes, &watch).await {
                Err(problem) => Reply { close: true, ..problem.reply() },
                Ok(body) => {
                    watch.enter(Stage::Answering);
                    let draining = shared.is_draining();
                    let query = parts.uri.query().unwrap_or_default();
                    shared.handlers.answer(route, Asked { query, body: &body, draining }).await
                }
            };
            debug_assert!(openapi::lists(route, reply.status), "{route:?} does not list {}", reply.status);
            reply
        }
    };
    watch.enter(Stage::Idle);
    reply.close |= shared.is_draining();
    Ok(response(reply))
}

fn head(parts: &hyper::http::request::Parts) -> Head<'_> {
    let value = |name: HeaderName| match parts.headers.get_all(name).iter().collect::<Vec<_>>()[..] {
        [] => None,
        [value] => Some(value.as_bytes()),
        // Two are one too many: neither is believed.
        _ => Some(&b""[..]),
    };
    Head {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        host: value(header::HOST),
        origin: value(header::ORIGIN),
        authorization: value(header::AUTHORIZATION),
        content_type: value(header::CONTENT_TYPE),
        fetch_site: value(SEC_FETCH_SITE),
    }
}

/// The whole body. Most come in one piece, which is not copied.
async fn collect(mut body: Incoming, bytes_max: usize, watch: &Watch) -> Result<Bytes, Problem> {
    let mut all = Bytes::new();
    loop {
        // What is here, and what is announced.
        if (all.len() as u64).saturating_add(body.size_hint().lower()) > bytes_max as u64 {
            return Err(Problem::too_large(bytes_max));
        }
        let frame = poll_fn(|context| match Pin::new(&mut body).poll_frame(context) {
            Poll::Pending if watch.is_late() => Poll::Ready(Err(Problem::late("the body"))),
            polled => polled.map(Ok),
        });
        let Some(frame) = frame.await? else { return Ok(all) };
        let frame = frame.map_err(|_| Problem::malformed("body: ended too early; send all of it"))?;
        // Trailers are of no interest.
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
