//! The socket, and how much has been written to it.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::AsyncStream;
use redis::io::tcp::socket2::{SockRef, Socket, TcpKeepalive};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::ConnectError;
use crate::endpoint::Address;

/// A peer that is gone without a word is noticed after some of these, also where nobody calls.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connected socket that counts what it takes.
///
/// A command of which the socket has taken nothing was not executed: that is how [`super::wire`] knows which
/// failures precede the execution.
pub(super) struct Stream {
    inner: Pin<Box<dyn AsyncStream + Send>>,
    taken: Arc<AtomicU64>,
    peek: Peek,
}

impl Stream {
    pub(super) async fn connect(
        address: &Address,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Self, ConnectError> {
        let unreachable = |error: io::Error| ConnectError::Unreachable {
            address: address.to_string(),
            why: error.to_string(),
        };
        let (inner, peek): (Pin<Box<dyn AsyncStream + Send>>, _) = match address {
            Address::Tcp { host, port } => {
                let socket = tcp(host, *port).await.map_err(unreachable)?;
                let peek = Peek::at(&socket);
                (Box::pin(socket), peek)
            }
            Address::Tls { host, port } => {
                let socket = tcp(host, *port).await.map_err(unreachable)?;
                let peek = Peek::at(&socket);
                let failed = |why: String| ConnectError::Tls { address: address.to_string(), why };
                let config = tls.ok_or_else(|| failed("it is not set up".into()))?;
                let name = ServerName::try_from(host.clone()).map_err(|error| failed(error.to_string()))?;
                let connector = TlsConnector::from(Arc::clone(config));
                let socket =
                    connector.connect(name, socket).await.map_err(|error| failed(error.to_string()))?;
                (Box::pin(socket), peek)
            }
            #[cfg(unix)]
            Address::Unix(path) => {
                let socket = tokio::net::UnixStream::connect(path).await.map_err(unreachable)?;
                let peek = Peek::at(&socket);
                (Box::pin(socket), peek)
            }
            #[cfg(not(unix))]
            Address::Unix(_) => return Err(unreachable(io::ErrorKind::Unsupported.into())),
        };
        Ok(Self { inner, taken: Arc::new(AtomicU64::new(0)), peek })
    }

    /// A second look at the same socket.
    pub(super) fn peek(&self) -> Peek {
        self.peek.clone()
    }

    /// How many bytes the socket has taken so far.
    pub(super) fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }
}

/// A look at a socket beside its reader and writer.
///
/// The runtime tells of a connection that was closed when it next asks the system; until then a write would succeed
/// and look as if it might have been executed. The system itself knows at once.
#[derive(Debug, Clone)]
pub(super) struct Peek(Option<Arc<Socket>>);

impl Peek {
    #[cfg(unix)]
    fn at(socket: &impl std::os::fd::AsFd) -> Self {
        Self(socket.as_fd().try_clone_to_owned().ok().map(|own| Arc::new(own.into())))
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

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.inner.as_mut().poll_write(cx, buf);
        if let Poll::Ready(Ok(bytes)) = written {
            self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_shutdown(cx)
    }
}
