//! One connection: the greeting, and round trips.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ErrorKind, Pipeline, ProtocolVersion, RedisError, Value, from_redis_value,
};
use rustls::ClientConfig;
use tokio::time::timeout;
use tokio_util::io::InspectWriter;

use super::error::ConnectError;
use super::stream::{self, Peek};
use crate::endpoint::{Address, Endpoint};
use crate::failure::Failure;
use crate::options::RedisOptions;
use crate::tls;

/// The oldest version whose scripts may write after they have asked for the time.
const VERSION_MIN: u32 = 5;

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
        let tls = match endpoint.address {
            Address::Tcp { tls: true, .. } => Some(tls::config(options).map_err(failed)?),
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
    /// How many bytes the socket has taken so far. A command of which it has taken nothing was not executed.
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
        let timed_out = |_| {
            let (address, after_ms) = (target.endpoint.address.to_string(), target.timeout.as_millis());
            Err(ConnectError::TimedOut { address, after_ms })
        };
        timeout(target.timeout, Self::greeted(target)).await.unwrap_or_else(timed_out)
    }

    async fn greeted(target: &Target) -> Result<Self, ConnectError> {
        let mut greeted = Self::speaking(target, target.endpoint.login.protocol()).await?;
        if greeted.as_ref().is_err_and(|error| error.kind() == ErrorKind::RESP3NotSupported) {
            // Redis 5 does not know the newer protocol, and everything we need is in the older one.
            greeted = Self::speaking(target, ProtocolVersion::RESP2).await?;
        }
        let mut wire = greeted.map_err(|error| ConnectError::of_greeting(&target.endpoint, &error))?;
        wire.look_at_version(target).await?;
        Ok(wire)
    }

    async fn speaking(
        target: &Target,
        protocol: ProtocolVersion,
    ) -> Result<Result<Self, RedisError>, ConnectError> {
        let (stream, peek) = stream::connect(&target.endpoint.address, target.tls.as_ref()).await?;
        let taken = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&taken);
        let stream = InspectWriter::new(stream, move |bytes: &[u8]| {
            counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        });
        let login = target.endpoint.login.clone().set_protocol(protocol);
        // Deadlines are those of calls and not of round trips: they are kept where the call is made.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let connection = MultiplexedConnection::new_with_config(&login, stream, config).await;
        Ok(connection.map(|(asked, driver)| Self { asked, driver: Some(Box::pin(driver)), taken, peek }))
    }

    async fn look_at_version(&mut self, target: &Target) -> Result<(), ConnectError> {
        let address = || target.endpoint.address.to_string();
        let mut info = Pipeline::new();
        info.cmd("INFO").arg("server");
        let replies = self.round_trip(&info, target.timeout).await;
        let mut replies =
            replies.map_err(|lost| ConnectError::Unreachable { address: address(), why: lost.why })?;
        match replies.pop() {
            Some(Value::ServerError(error)) => {
                let why = target.endpoint.redacted(&Failure::of_reply(&error).why);
                Err(ConnectError::Refused { address: address(), why })
            }
            reply => check_version(reply.unwrap_or(Value::Nil), address()),
        }
    }

    /// Sends all commands at once and waits for all their replies, which may be errors, at most for so long.
    pub(super) async fn round_trip(
        &mut self,
        pipeline: &Pipeline,
        silence_max: Duration,
    ) -> Result<Vec<Value>, Lost> {
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
        let why = match timeout(silence_max, outcome).await {
            Ok(Some(Ok(replies))) if replies.len() == pipeline.len() => return Ok(replies),
            Ok(Some(Ok(_))) => "the number of replies is not that of the requests".into(),
            Ok(Some(Err(error))) => format!("the connection broke ({error})"),
            Ok(None) => "the connection broke".into(),
            Err(_) => format!("the connection was silent for {silence_max:?}"),
        };
        Err(Lost { why, sent: taken.load(Ordering::Relaxed) != before })
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

/// Looks at the reply to `INFO server`. Valkey and others give the version of Redis that they are like.
fn check_version(info: Value, address: String) -> Result<(), ConnectError> {
    let info: String = from_redis_value(info).unwrap_or_default();
    let version =
        info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default().trim();
    match version.split('.').next().unwrap_or_default().parse() {
        Ok(VERSION_MIN..) => Ok(()),
        Ok(_) => Err(ConnectError::TooOld { address, version: version.chars().take(32).collect() }),
        Err(_) => {
            let why = "its INFO names no version; give the address of a Redis".into();
            Err(ConnectError::Refused { address, why })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(info: &str) -> Result<(), ConnectError> {
        check_version(Value::BulkString(info.as_bytes().to_vec()), String::new())
    }

    #[test]
    fn version_five_and_newer_will_do() {
        for version in ["5.0.0", "5.0.14", "7.0.15", "10.2.1", "6.2.5-rc1"] {
            let info = format!("# Server\r\nredis_version:{version}\r\nos:x\r\n");
            assert_eq!(checked(&info), Ok(()), "{version}");
        }
        for version in ["4.0.14", "3.2", "2.8.4"] {
            let error = checked(&format!("# Server\r\nredis_version:{version}\r\n")).unwrap_err();
            assert_eq!(error, ConnectError::TooOld { address: String::new(), version: version.into() });
        }
    }

    #[test]
    fn what_is_no_redis_is_found_out() {
        let infos = ["", "hello", "redis_version:", "redis_version:new", "valkey_version:8.0.1"].map(checked);
        let others = [Value::Nil, Value::Int(7)].map(|info| check_version(info, String::new()));
        for checked in infos.into_iter().chain(others) {
            assert!(matches!(checked, Err(ConnectError::Refused { .. })), "{checked:?}");
        }
    }
}
