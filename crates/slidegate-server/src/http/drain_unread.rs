//! Closes a connection so that the client can read the last answer.
//!
//! Closing a socket with unread input makes the system discard the output that the client has not read yet. So we shut
//! down our side first and then drain the unread input, within bounds.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use slidegate::time::Clock;
use tokio::io::{AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use super::connection::Stream;
use super::problem::Problem;
use super::reply::Reply;

/// Most bytes that are drained: a client may send a large body before it reads the refusal.
const BYTES_MAX: usize = 128 << 20;
const TIME_MAX: Duration = Duration::from_secs(5);

/// Drain time of an idle connection, which has no answer left to read.
const IDLE_TIME_MAX: Duration = Duration::from_millis(250);

const DISCARDED_BYTES: usize = 16 << 10;

thread_local! {
    static DISCARDED: RefCell<Box<[u8]>> = RefCell::new(vec![0; DISCARDED_BYTES].into());
}

/// Writes a last problem, if any, and closes the connection.
pub(super) async fn close(mut stream: impl Stream, problem: Option<&Problem>, clock: &dyn Clock) {
    // Errors are ignored: the client is gone.
    let _ = timeout(TIME_MAX, async {
        if let Some(problem) = problem {
            let mut bytes = Vec::new();
            Reply { close: true, ..problem.reply() }.write(clock, &mut bytes);
            stream.write_all(&bytes).await?;
        }
        drain(stream).await
    })
    .await;
}

/// Closes an idle connection.
pub(super) async fn close_idle(stream: impl Stream) {
    let _ = timeout(IDLE_TIME_MAX, drain(stream)).await;
}

/// Shuts down our side and drains the unread input.
async fn drain(mut stream: impl Stream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut bytes = 0;
    while bytes < BYTES_MAX {
        match poll_fn(|context| poll_discard(&mut stream, context)).await? {
            0 => break,
            more => bytes += more,
        }
    }
    Ok(())
}

/// Reads bytes into a buffer that all connections of the thread share.
fn poll_discard(stream: &mut impl Stream, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
    DISCARDED.with_borrow_mut(|discarded| {
        let mut read = ReadBuf::new(discarded);
        ready!(Pin::new(stream).poll_read(context, &mut read))?;
        Poll::Ready(Ok(read.filled().len()))
    })
}
