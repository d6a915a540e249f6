//! The socket, and whether it was closed.

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

/// A peer that is gone without a word is noticed after some of these, also where nobody calls.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connected socket.
pub(super) type Stream = Pin<Box<dyn AsyncStream + Send>>;

pub(super) async fn connect(
    address: &Address,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<(Stream, Peek), ConnectError> {
    let unreachable =
        |error: io::Error| ConnectError::Unreachable { address: address.to_string(), why: error.to_string() };
    let (host, port) = match address {
        Address::Tcp { host, port, .. } => (host, *port),
        #[cfg(unix)]
        Address::Unix(path) => {
            let socket = tokio::net::UnixStream::connect(path).await.map_err(unreachable)?;
            let peek = Peek::at(&socket);
            return Ok((Box::pin(socket), peek));
        }
        #[cfg(not(unix))]
        Address::Unix(_) => return Err(unreachable(io::ErrorKind::Unsupported.into())),
    };
    let socket = tcp(host, port).await.map_err(unreachable)?;
    let peek = Peek::at(&socket);
    let Some(config) = tls else { return Ok((Box::pin(socket), peek)) };
    let failed =
        |why: &dyn fmt::Display| ConnectError::Tls { address: address.to_string(), why: why.to_string() };
    let name = ServerName::try_from(host.clone()).map_err(|error| failed(&error))?;
    let connecting = TlsConnector::from(Arc::clone(config)).connect(name, socket);
    Ok((Box::pin(connecting.await.map_err(|error| failed(&error))?), peek))
}

/// A look at a socket beside its reader and writer.
///
/// The runtime tells of a connection that was closed when it next asks the system; until then a write would succeed
/// and look as if it might have been executed. The system itself knows at once.
#[derive(Debug)]
pub(super) struct Peek(Option<Socket>);

impl Peek {
    #[cfg(unix)]
    fn at(socket: &impl std::os::fd::AsFd) -> Self {
        Self(socket.as_fd().try_clone_to_owned().ok().map(Socket::from))
    }

    #[cfg(not(unix))]
    fn at<T>(_socket: &T) -> Self {
        Self(None)
    }

    /// Whether the other side has closed the connection. There may still be something to read from it.
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
    // Requests are small and answers are waited for: collecting them into packets only delays both.
    socket.set_nodelay(true)?;
    SockRef::from(&socket)
        .set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))?;
    Ok(socket)
}
