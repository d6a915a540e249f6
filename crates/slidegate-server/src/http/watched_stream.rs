//! The stream between hyper and the socket.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::watchdog::{RequestProgress, Stage};

/// A socket that reports arriving bytes to its [`RequestProgress`], and suppresses the error answers of hyper.
///
/// hyper answers a malformed head with a bare status; callers get a problem document instead. Writes are not
/// vectored, so that each answer of hyper arrives in one piece.
#[derive(Debug)]
pub(super) struct WatchedStream {
    io: TokioIo<TcpStream>,
    /// Bytes that were read before hyper took over.
    before: Bytes,
    progress: Arc<RequestProgress>,
}

impl WatchedStream {
    pub(super) fn new(stream: TcpStream, before: Vec<u8>, progress: Arc<RequestProgress>) -> Self {
        Self { io: TokioIo::new(stream), before: before.into(), progress }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.io.into_inner()
    }

    /// Whether the bytes are an error answer of hyper, which has no content type; ours always have one.
    fn is_hyper_error(&self, bytes: &[u8]) -> bool {
        // The head of a pipelined request is parsed while the stage is still idle.
        matches!(self.progress.stage(), Stage::Head | Stage::Idle)
            && bytes.starts_with(b"HTTP/1.1 4")
            && !bytes.windows(13).any(|window| window == b"content-type:")
    }
}

impl Read for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.before.is_empty() {
            let bytes = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before.split_to(bytes));
            self.progress.arrived();
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if read.is_ready() {
            self.progress.arrived();
        }
        read
    }
}

impl Write for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_hyper_error(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Does nothing: `drain_unread` shuts the socket down.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
