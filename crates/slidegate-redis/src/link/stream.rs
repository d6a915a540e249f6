//! The socket, and a probe for whether it was closed.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::AsyncStream;
use redis::io::tcp::socket2::{SockRef, Socket, TcpKeepalive};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::ConnectError;
use crate::endpoint::Address;

/// Interval of TCP keepalive: it detects a dead peer even while there are no calls.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connected socket.
pub(super) type Stream = Pin<Box<dyn AsyncStream + Send>>;

pub(super) async fn connect(
    address: &Address,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<(Stream, ClosedProbe), ConnectError> {
    let unreachable =
        |error: io::Error| ConnectError::Unreachable { address: address.to_string(), why: error.to_string() };
    let (host, port) = match address {
        Address::Tcp { host, port, .. } => (host, *port),
        #[cfg(unix)]
        Address::Unix(path) => {
            let socket = tokio::net::UnixStream::connect(path).await.map_err(unreachable)?;
            let probe = ClosedProbe::at(&socket);
            return Ok((Box::pin(socket), probe));
        }
        #[cfg(not(unix))]
        Address::Unix(_) => return Err(unreachable(io::ErrorKind::Unsupported.into())),
    };
    let socket = tcp(host, port).await.map_err(unreachable)?;
    let probe = ClosedProbe::at(&socket);
    let Some(config) = tls else { return Ok((Box::pin(socket), probe)) };
    let failed =
        |why: &dyn fmt::Display| ConnectError::Tls { address: address.to_string(), why: why.to_string() };
    let name = ServerName::try_from(host.clone()).map_err(|error| failed(&error))?;
    let connecting = TlsConnector::from(Arc::clone(config)).connect(name, socket);
    Ok((Box::pin(connecting.await.map_err(|error| failed(&error))?), probe))
}

/// Asks the system whether the peer has closed a socket.
///
/// The runtime notices that only when it next polls the system. Until then a write would succeed, and its call would
/// become ambiguous. The system knows at once.
#[derive(Debug)]
pub(super) struct ClosedProbe(Option<Socket>);

impl ClosedProbe {
    #[cfg(unix)]
    fn at(socket: &impl std::os::fd::AsFd) -> Self {
        Self(socket.as_fd().try_clone_to_owned().ok().map(Socket::from))
    }

    #[cfg(not(unix))]
    fn at<T>(_socket: &T) -> Self {
        Self(None)
    }

    /// Whether the peer has closed the connection. There may still be bytes to read.
    pub(super) fn is_closed(&self) -> bool {
        let Some(socket) = &self.0 else { return false };
        match socket.peek(&mut [MaybeUninit::uninit()]) {
            Ok(bytes) => bytes == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let socket = TcpStream::connect((host, port)).await?;
    // Requests are small and callers wait for replies: Nagle's algorithm would only delay both.
    socket.set_nodelay(true)?;
    SockRef::from(&socket)
        .set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))?;
    Ok(socket)
}
