//! Collects the body of a request that hyper reads, within the bounds on bytes and time.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use hyper::body::{Body, Incoming};

use super::buffer_bound::RequestBytes;
use super::problem::Problem;
use super::watchdog::RequestProgress;
use crate::service::Bounds;

/// Bytes of a body that are kept in one piece while the rest arrives. Pieces of one size leave no gaps in the heap, and
/// hold no more than has arrived; a buffer that doubles holds up to twice that, and leaves the smaller ones behind.
const PIECE_BYTES: usize = 8 << 10;

/// Collects a body. A body in one frame, the usual case, is not copied.
pub(super) async fn collect(
    mut body: Incoming,
    bounds: &Bounds,
    progress: &RequestProgress,
    request_bytes: &RequestBytes,
) -> Result<Bytes, Problem> {
    let mut pieces = Vec::new();
    let mut bytes = 0;
    while let Some(data) = next(&mut body, bytes, bounds, progress).await? {
        if request_bytes.is_refused() {
            return Err(Problem::buffers_full(bounds.buffer_bytes));
        }
        if pieces.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        bytes += data.len();
        append(&mut pieces, &data);
    }
    Ok(pieces.concat().into())
}

fn append(pieces: &mut Vec<Vec<u8>>, mut data: &[u8]) {
    while !data.is_empty() {
        let room = pieces.last().map_or(0, |piece| PIECE_BYTES - piece.len());
        if room == 0 {
            pieces.push(Vec::with_capacity(PIECE_BYTES));
            continue;
        }
        let (fits, rest) = data.split_at(room.min(data.len()));
        pieces.last_mut().expect("a piece with room").extend_from_slice(fits);
        data = rest;
    }
}

/// Reads a body and drops it, for routes that have none.
pub(super) async fn discard(
    mut body: Incoming,
    bounds: &Bounds,
    progress: &RequestProgress,
    request_bytes: &RequestBytes,
) -> Result<(), Problem> {
    let mut bytes = 0;
    while let Some(data) = next(&mut body, bytes, bounds, progress).await? {
        bytes += data.len();
        request_bytes.clear();
    }
    Ok(())
}

/// The next data, after `bytes` of the body; `None` at its end.
async fn next(
    body: &mut Incoming,
    bytes: usize,
    bounds: &Bounds,
    progress: &RequestProgress,
) -> Result<Option<Bytes>, Problem> {
    loop {
        // The bytes so far, and those that the client has announced.
        if (bytes as u64).saturating_add(body.size_hint().lower()) > bounds.body_bytes as u64 {
            return Err(Problem::too_large(bounds.body_bytes));
        }
        let frame = poll_fn(|context| match Pin::new(&mut *body).poll_frame(context) {
            Poll::Pending if progress.is_late() => Poll::Ready(Err(Problem::late("the body"))),
            polled => polled.map(Ok),
        });
        let Some(frame) = frame.await? else { return Ok(None) };
        let frame = frame.map_err(|_| Problem::malformed("body: ended too early; send all of it"))?;
        // Trailers are ignored.
        if let Ok(data) = frame.into_data() {
            return if bytes + data.len() > bounds.body_bytes {
                Err(Problem::too_large(bounds.body_bytes))
            } else {
                Ok(Some(data))
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_one_size_and_all_bytes() {
        let data: Vec<u8> = (0..=255).cycle().take(5 * PIECE_BYTES / 2).collect();
        for frame_bytes in [1, 7, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, data.len()] {
            let mut pieces = Vec::new();
            for frame in data.chunks(frame_bytes) {
                append(&mut pieces, frame);
            }
            assert_eq!(pieces.concat(), data, "{frame_bytes}");
            assert_eq!(pieces.len(), 3);
            assert!(pieces.iter().all(|piece| piece.capacity() == PIECE_BYTES));
        }
    }
}
