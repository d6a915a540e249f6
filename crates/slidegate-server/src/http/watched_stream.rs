//! The stream between hyper and a connection.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::buffer_bound::{BoundReached, FREE_BYTES, RequestBytes};
use super::watchdog::{RequestProgress, Stage};

/// Most bytes of a read: less than the first buffer of hyper.
const READ_BYTES: usize = FREE_BYTES - 1;

/// A stream that reports arriving bytes to its [`RequestProgress`], and suppresses the error answers of hyper.
///
/// hyper answers a malformed head with a bare status; callers get a problem document instead. Writes are not
/// vectored, so that each answer of hyper arrives in one piece.
#[derive(Debug)]
pub(super) struct WatchedStream<S> {
    stream: S,
    /// Bytes that were read before hyper took over.
    before: Bytes,
    progress: Arc<RequestProgress>,
    request_bytes: Arc<RequestBytes>,
}

impl<S> WatchedStream<S> {
    pub(super) fn new(
        stream: S,
        before: Vec<u8>,
        progress: Arc<RequestProgress>,
        request_bytes: Arc<RequestBytes>,
    ) -> Self {
        Self { stream, before: before.into(), progress, request_bytes }
    }

    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// Counts bytes that hyper has read. A head that finds no room ends the connection here; for a body,
    /// `collect_body` answers.
    fn arrived(&self, bytes: usize) -> io::Result<()> {
        self.progress.arrived();
        match self.request_bytes.add(bytes) {
            Err(BoundReached) if self.progress.stage() == Stage::Head => {
                Err(io::ErrorKind::OutOfMemory.into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the bytes are an error answer of hyper, which has no content type; ours always have one.
    fn is_hyper_error(&self, bytes: &[u8]) -> bool {
        // The head of a pipelined request is parsed while the stage is still idle.
        matches!(self.progress.stage(), Stage::Head | Stage::Idle)
            && bytes.starts_with(b"HTTP/1.1 4")
            && !bytes.windows(13).any(|window| window == b"content-type:")
    }
}

impl<S: AsyncRead + Unpin> Read for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.before.is_empty() {
            let bytes = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before.split_to(bytes));
            return Poll::Ready(self.arrived(bytes));
        }
        // hyper doubles its buffer when a read fills it, up to the longest head. Reads that stay below keep it small.
        let mut bytes = [MaybeUninit::uninit(); READ_BYTES];
        let room = buffer.remaining().min(READ_BYTES);
        let mut read = ReadBuf::uninit(&mut bytes[..room]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        buffer.put_slice(read.filled());
        Poll::Ready(self.arrived(read.filled().len()))
    }
}

impl<S: AsyncWrite + Unpin> Write for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_hyper_error(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Does nothing: `drain_unread` shuts the socket down.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
