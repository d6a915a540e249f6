//! One connection: the greeting, and round trips.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, Pipeline, ProtocolVersion, RedisError, Value};
use rustls::ClientConfig;
use tokio::time::timeout;

use super::error::ConnectError;
use super::stream::{Peek, Stream};
use super::version;
use crate::endpoint::{Address, Endpoint};
use crate::failure::Failure;
use crate::options::RedisOptions;
use crate::tls;

/// Where connections lead.
#[derive(Debug, Clone)]
pub(super) struct Target {
    endpoint: Endpoint,
    tls: Option<Arc<ClientConfig>>,
    timeout: Duration,
}

impl Target {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, ConnectError> {
        let endpoint = options.endpoint.clone();
        let failed = |why| ConnectError::Tls { address: endpoint.address.to_string(), why };
        let config = || tls::config(&options.roots, options.identity.as_ref());
        let tls = match endpoint.address {
            Address::Tls { .. } => Some(config().map_err(failed)?),
            Address::Tcp { .. } | Address::Unix(_) => None,
        };
        Ok(Self { endpoint, tls, timeout: options.connect_timeout })
    }
}

/// A connection that has been greeted.
///
/// The crate's connection is two halves: one is asked, the other moves bytes. Both live in the task that owns
/// the wire and are polled together there, so that a round trip wakes one task and not two.
pub(super) struct Wire {
    asked: MultiplexedConnection,
    /// Ends when the connection is closed, and may not be polled after that.
    driver: Option<Driver>,
    taken: Arc<AtomicU64>,
    peek: Peek,
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why a round trip has no answers.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) why: String,
    /// Whether the socket has taken anything of the request. If not, none of it was executed.
    pub(super) sent: bool,
}

impl Wire {
    /// Connects, greets, and looks at the version, all within the time to connect.
    pub(super) async fn open(target: &Target) -> Result<Self, ConnectError> {
        match timeout(target.timeout, Self::greeted(target)).await {
            Ok(wire) => wire,
            Err(_) => Err(ConnectError::TimedOut {
                address: target.endpoint.address.to_string(),
                after_ms: target.timeout.as_millis(),
            }),
        }
    }

    async fn greeted(target: &Target) -> Result<Self, ConnectError> {
        let protocol = target.endpoint.login.protocol();
        let mut wire = match Self::speaking(target, protocol).await? {
            Ok(wire) => wire,
            // Redis 5 does not know the newer protocol, and everything we need is in the older one.
            Err(error) if error.kind() == ErrorKind::RESP3NotSupported => {
                let wire = Self::speaking(target, ProtocolVersion::RESP2).await?;
                wire.map_err(|error| ConnectError::of_greeting(&target.endpoint, &error))?
            }
            Err(error) => return Err(ConnectError::of_greeting(&target.endpoint, &error)),
        };
        wire.look_at_version(&target.endpoint).await?;
        Ok(wire)
    }

    async fn speaking(
        target: &Target,
        protocol: ProtocolVersion,
    ) -> Result<Result<Self, RedisError>, ConnectError> {
        let stream = Stream::connect(&target.endpoint.address, target.tls.as_ref()).await?;
        let (taken, peek) = (stream.taken(), stream.peek());
        let login = target.endpoint.login.clone().set_protocol(protocol);
        // Deadlines are those of calls and not of round trips: they are kept where the call is made.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let connection = MultiplexedConnection::new_with_config(&login, stream, config).await;
        Ok(connection.map(|(asked, driver)| Self { asked, driver: Some(Box::pin(driver)), taken, peek }))
    }

    async fn look_at_version(&mut self, endpoint: &Endpoint) -> Result<(), ConnectError> {
        let address = || endpoint.address.to_string();
        let mut info = Pipeline::new();
        info.cmd("INFO").arg("server");
        let replies = self.round_trip(&info).await;
        let mut replies =
            replies.map_err(|lost| ConnectError::Unreachable { address: address(), why: lost.why })?;
        let reply = match replies.pop() {
            Some(Value::ServerError(error)) => {
                let why = endpoint.redacted(Failure::of_reply(&error).why());
                return Err(ConnectError::Refused { address: address(), why });
            }
            reply => reply.unwrap_or(Value::Nil),
        };
        version::check(reply).map_err(|mistake| mistake.at(address()))
    }

    /// Sends all commands at once and waits for all their replies, which may be errors.
    pub(super) async fn round_trip(&mut self, pipeline: &Pipeline) -> Result<Vec<Value>, Lost> {
        let Self { asked, driver, taken, peek } = self;
        if driver.is_none() || peek.is_closed() {
            return Err(Lost { why: "the connection was closed".into(), sent: false });
        }
        let before = taken.load(Ordering::Relaxed);
        let mut asking = pin!(asked.send_packed_commands(pipeline, 0, pipeline.len()));
        // Asking hands the request over, driving writes and reads, asking again takes the replies.
        let outcome = poll_fn(|cx| {
            if let Poll::Ready(outcome) = asking.as_mut().poll(cx) {
                return Poll::Ready(Some(outcome));
            }
            let ended = drive(driver, cx).is_ready();
            match asking.as_mut().poll(cx) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending if ended => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        });
        let why = match outcome.await {
            Some(Ok(replies)) if replies.len() == pipeline.len() => return Ok(replies),
            Some(Ok(_)) => "the number of replies is not that of the requests".into(),
            Some(Err(error)) => format!("the connection broke ({error})"),
            None => "the connection broke".into(),
        };
        Err(Lost { why, sent: taken.load(Ordering::Relaxed) != before })
    }

    /// How many bytes have been written so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Ready when the other side has closed the connection. For when nobody calls.
    pub(super) async fn closed(&mut self) {
        poll_fn(|cx| drive(&mut self.driver, cx)).await;
    }
}

/// Moves bytes; ready when the connection is closed.
fn drive(driver: &mut Option<Driver>, cx: &mut Context<'_>) -> Poll<()> {
    let Some(running) = driver else { return Poll::Ready(()) };
    let ended = running.as_mut().poll(cx);
    if ended.is_ready() {
        *driver = None;
    }
    ended
}
