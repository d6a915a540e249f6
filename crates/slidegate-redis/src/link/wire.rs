//! One connection: the handshake, and round trips.

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
use slidegate::store::RefusalCause;
use tokio::time::timeout;
use tokio_util::io::InspectWriter;

use super::error::ConnectError;
use super::stream::{self, ClosedProbe};
use super::target::Target;
use crate::call_error::CallError;

/// The oldest version whose scripts may write after `TIME`.
const VERSION_MIN: u32 = 5;

/// A connection after its handshake.
///
/// A connection of the `redis` crate has two halves: one takes requests, the other moves bytes. The task that owns the
/// wire polls both together, so that a round trip wakes one task and not two.
pub(super) struct Wire {
    requests: MultiplexedConnection,
    /// Ends when the connection is closed, and must not be polled after that.
    driver: Option<Driver>,
    /// Bytes written to the socket so far. A command of which nothing was written was not executed.
    bytes_written: Arc<AtomicU64>,
    probe: ClosedProbe,
    /// Of the address, where sentinels gave it.
    pub(super) generation: u64,
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A round trip without replies.
#[derive(Debug)]
pub(super) struct RoundTripError {
    pub(super) why: String,
    /// Whether anything of the request was written. If not, none of it was executed.
    pub(super) sent: bool,
}

impl Wire {
    /// Connects, makes the handshake and checks the version, within the connect timeout.
    pub(super) async fn open(target: &Target) -> Result<Self, ConnectError> {
        let opening = async {
            let mut wire = Self::handshake(target).await?;
            wire.check_server_version(target).await?;
            Ok(wire)
        };
        timeout(target.timeout, opening).await.unwrap_or_else(|_| Err(target.timed_out()))
    }

    /// The same without the check of the version, for a sentinel, which runs no scripts.
    pub(super) async fn open_any_version(target: &Target) -> Result<Self, ConnectError> {
        let opening = Self::handshake(target);
        timeout(target.timeout, opening).await.unwrap_or_else(|_| Err(target.timed_out()))
    }

    async fn handshake(target: &Target) -> Result<Self, ConnectError> {
        let mut connected = Self::connect(target, target.login.protocol()).await?;
        if connected.as_ref().is_err_and(|error| error.kind() == ErrorKind::RESP3NotSupported) {
            // Redis 5 only speaks RESP2, which suffices.
            connected = Self::connect(target, ProtocolVersion::RESP2).await?;
        }
        connected.map_err(|error| ConnectError::from_handshake(target, &error))
    }

    async fn connect(
        target: &Target,
        protocol: ProtocolVersion,
    ) -> Result<Result<Self, RedisError>, ConnectError> {
        let (stream, probe) = stream::connect(&target.address, target.tls.as_ref()).await?;
        let bytes_written = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&bytes_written);
        let stream = InspectWriter::new(stream, move |bytes: &[u8]| {
            counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        });
        let login = target.login.clone().set_protocol(protocol);
        // Off: `open` limits the handshake, and `round_trip` the wait for replies.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let connection = MultiplexedConnection::new_with_config(&login, stream, config).await;
        Ok(connection.map(|(requests, driver)| Self {
            requests,
            driver: Some(Box::pin(driver)),
            bytes_written,
            probe,
            generation: 0,
        }))
    }

    async fn check_server_version(&mut self, target: &Target) -> Result<(), ConnectError> {
        let info = self.info(target, "server").await?;
        check_version(&info, target.address.to_string())
    }

    /// Refuses a replica. `INFO` tells the role too, and unlike `ROLE` needs no permission that the handshake does not.
    pub(super) async fn check_is_primary(&mut self, target: &Target) -> Result<(), ConnectError> {
        let info = timeout(target.timeout, self.info(target, "replication")).await;
        let info = info.unwrap_or_else(|_| Err(target.timed_out()))?;
        if info.lines().any(|line| line.trim() == "role:master") {
            return Ok(());
        }
        Err(ConnectError::NotPrimary { address: target.address.to_string() })
    }

    /// A section of `INFO`; empty if the reply is no text.
    async fn info(&mut self, target: &Target, section: &str) -> Result<String, ConnectError> {
        let mut info = Pipeline::new();
        info.cmd("INFO").arg(section);
        match self.ask(&info, target).await? {
            Value::ServerError(error) => {
                let error = CallError::from_reply(&error);
                let (address, why) = (target.address.to_string(), target.redacted(&error.why));
                Err(ConnectError::Refused { address, why, cause: error.cause })
            }
            reply => Ok(from_redis_value(reply).unwrap_or_default()),
        }
    }

    /// Sends one command of the handshake and returns its reply, which may be an error.
    pub(super) async fn ask(&mut self, command: &Pipeline, target: &Target) -> Result<Value, ConnectError> {
        let replies = self.round_trip(command, target.timeout).await;
        let broken =
            |RoundTripError { why, .. }| ConnectError::Broken { address: target.address.to_string(), why };
        Ok(replies.map_err(broken)?.pop().unwrap_or(Value::Nil))
    }

    /// Sends all commands at once and waits for all their replies, which may be errors, up to `reply_timeout`.
    pub(super) async fn round_trip(
        &mut self,
        pipeline: &Pipeline,
        reply_timeout: Duration,
    ) -> Result<Vec<Value>, RoundTripError> {
        let Self { requests, driver, bytes_written, probe, .. } = self;
        if driver.is_none() || probe.is_closed() {
            return Err(RoundTripError { why: "the connection was closed".into(), sent: false });
        }
        let before = bytes_written.load(Ordering::Relaxed);
        let mut request = pin!(requests.send_packed_commands(pipeline, 0, pipeline.len()));
        // The first poll hands the request over, the driver writes and reads, the second poll takes the replies.
        let replies = poll_fn(|cx| {
            if let Poll::Ready(replies) = request.as_mut().poll(cx) {
                return Poll::Ready(Some(replies));
            }
            let ended = drive(driver, cx).is_ready();
            match request.as_mut().poll(cx) {
                Poll::Ready(replies) => Poll::Ready(Some(replies)),
                Poll::Pending if ended => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        });
        let why = match timeout(reply_timeout, replies).await {
            Ok(Some(Ok(replies))) if replies.len() == pipeline.len() => return Ok(replies),
            Ok(Some(Ok(_))) => "the number of replies is not that of the requests".into(),
            Ok(Some(Err(error))) => format!("the connection broke ({error})"),
            Ok(None) => "the connection broke".into(),
            Err(_) => format!("the connection was silent for {reply_timeout:?}"),
        };
        Err(RoundTripError { why, sent: bytes_written.load(Ordering::Relaxed) != before })
    }

    /// Ready when the server has closed the connection. For times without calls.
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

/// Checks the reply to `INFO server`. Valkey and others report the version of Redis that they are compatible with.
fn check_version(info: &str, address: String) -> Result<(), ConnectError> {
    let version =
        info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default().trim();
    match version.split('.').next().unwrap_or_default().parse() {
        Ok(VERSION_MIN..) => Ok(()),
        Ok(_) => Err(ConnectError::TooOld { address, version: version.chars().take(32).collect() }),
        Err(_) => {
            let why = "its INFO names no version; give the address of a Redis".into();
            Err(ConnectError::Refused { address, why, cause: RefusalCause::Other })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(info: &str) -> Result<(), ConnectError> {
        check_version(info, String::new())
    }

    #[test]
    fn version_five_and_newer_is_accepted() {
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
    fn a_server_that_is_no_redis_is_refused() {
        for info in ["", "hello", "redis_version:", "redis_version:new", "valkey_version:8.0.1"] {
            let checked = checked(info);
            assert!(matches!(checked, Err(ConnectError::Refused { .. })), "{checked:?}");
        }
    }
}
