//! The end of a connection, such that the last answer can be read.
//!
//! Closing a socket with unread bytes in it makes the system throw away what the other side has not read yet.
//! So we say that we have finished, and then take in what still comes, within bounds.

use std::io;
use std::time::Duration;

use slidegate::time::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::problem::Problem;
use super::reply::Reply;

/// A body of so many bytes may follow a refusal that its sender reads only afterwards.
const BYTES_MAX: usize = 128 << 20;
const TIME_MAX: Duration = Duration::from_secs(5);

/// A client that has heard nothing new for long need not be waited for.
const IDLE_TIME_MAX: Duration = Duration::from_millis(250);

/// Says the last words, if there are any, and closes.
pub(super) async fn close(mut stream: TcpStream, last_words: Option<&Problem>, clock: &impl Clock) {
    // A client that does not listen any more needs no farewell.
    let _ = timeout(TIME_MAX, async {
        if let Some(problem) = last_words {
            let mut bytes = Vec::new();
            Reply { close: true, ..problem.reply() }.write(clock, &mut bytes);
            stream.write_all(&bytes).await?;
        }
        take_in(stream).await
    })
    .await;
}

/// Closes a connection on which nothing was said for a while.
pub(super) async fn leave(stream: TcpStream) {
    let _ = timeout(IDLE_TIME_MAX, take_in(stream)).await;
}

/// Says that we have finished, and takes in what still comes.
async fn take_in(mut stream: TcpStream) -> io::Result<()> {
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
