//! Closes a connection so that the client can read the last answer.
//!
//! Closing a socket with unread input makes the system discard the output that the client has not read yet. So we shut
//! down our side first and then drain the unread input, within bounds.

use std::io;
use std::time::Duration;

use slidegate::time::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::problem::Problem;
use super::reply::Reply;

/// Most bytes that are drained: a client may send a large body before it reads the refusal.
const BYTES_MAX: usize = 128 << 20;
const TIME_MAX: Duration = Duration::from_secs(5);

/// Drain time of an idle connection, which has no answer left to read.
const IDLE_TIME_MAX: Duration = Duration::from_millis(250);

/// Writes a last problem, if any, and closes the connection.
pub(super) async fn close(mut stream: TcpStream, problem: Option<&Problem>, clock: &impl Clock) {
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
pub(super) async fn close_idle(stream: TcpStream) {
    let _ = timeout(IDLE_TIME_MAX, drain(stream)).await;
}

/// Shuts down our side and drains the unread input.
async fn drain(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut ignored = vec![0; 16 << 10];
    let mut bytes = 0;
    while bytes < BYTES_MAX {
        match stream.read(&mut ignored).await? {
            0 => break,
            more => bytes += more,
        }
    }
    Ok(())
}
