//! Waits for several futures at once.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// The outputs of all futures, in their order.
pub(super) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (future, output) in running.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(ready) => *output = Some(ready),
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn outputs_are_in_the_order_of_the_futures() {
        assert!(join_all(Vec::<std::future::Ready<u8>>::new()).await.is_empty());
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel()).unzip();
        let joined = tokio::spawn(join_all(receivers));
        for (number, sender) in senders.into_iter().enumerate().rev() {
            sender.send(number).unwrap();
            tokio::task::yield_now().await;
        }
        assert_eq!(joined.await.unwrap(), [Ok(0), Ok(1), Ok(2)]);
    }
}
