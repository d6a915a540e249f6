//! The bytes of a connection, between hyper and the socket.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::watch::{Stage, Watch};

/// A socket that tells its [`Watch`] when something arrives, and keeps back what hyper says by itself. Writes are not
/// vectored: hyper joins head and body, and what it says by itself comes in one piece.
///
/// To a head that it cannot read hyper answers with a bare status. Its callers get a document instead.
#[derive(Debug)]
pub(super) struct Watched {
    io: TokioIo<TcpStream>,
    /// What was read before hyper had it.
    before: Bytes,
    watch: Arc<Watch>,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, before: Vec<u8>, watch: Arc<Watch>) -> Self {
        Self { io: TokioIo::new(stream), before: before.into(), watch }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.io.into_inner()
    }

    /// Whether hyper refuses a head by itself: no answer of ours is without a type.
    fn keeps_back(&self, bytes: &[u8]) -> bool {
        // A head that came together with the request before it is read while the connection passes for idle.
        matches!(self.watch.stage(), Stage::Head | Stage::Idle)
            && bytes.starts_with(b"HTTP/1.1 4")
            && !bytes.windows(13).any(|window| window == b"content-type:")
    }
}

impl Read for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.before.is_empty() {
            let bytes = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before.split_to(bytes));
            self.watch.arrived();
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if read.is_ready() {
            self.watch.arrived();
        }
        read
    }
}

impl Write for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.keeps_back(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Our farewell comes later.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
