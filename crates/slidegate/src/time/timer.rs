//! A runtime-independent timer.

use std::sync::Arc;
use std::time::Duration;

/// Lets a task sleep: with the runtime's timer, or a [`ManualClock`](super::ManualClock) in tests.
///
/// It must use the same time as the [`Clock`](super::Clock): a runtime's timer with the
/// [`SystemClock`](super::SystemClock), a manual clock with itself. A sleep that is too long delays
/// the caller; one that is too short costs another read of the clock.
///
/// For Tokio the feature `tokio` has one, `TokioTimer`. Other runtimes need three lines:
///
/// ```
/// # mod smol { pub struct Timer; impl Timer { pub async fn after(_: std::time::Duration) {} } }
/// use slidegate::time::Timer;
/// use std::time::Duration;
///
/// struct SmolTimer;
///
/// impl Timer for SmolTimer {
///     async fn sleep(&self, duration: Duration) {
///         smol::Timer::after(duration).await;
///     }
/// }
/// ```
pub trait Timer: Send + Sync {
    /// A future that is ready when `duration` has passed since this call. Dropping it ends the sleep.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}

impl<T: Timer + ?Sized> Timer for Arc<T> {
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        (**self).sleep(duration)
    }
}

/// Sleeps by Tokio's timer, on the runtime of the task that waits.
///
/// ```
/// use slidegate::time::TokioTimer;
/// use slidegate::{Limiter, Rule};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let limiter = Limiter::in_memory();
/// let api = Rule::new("api", "1/5ms")?;
/// for _ in 0..2 {
///     assert!(limiter.acquire_async(&TokioTimer, &api, "alice", Duration::from_secs(1)).await?.allowed());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioTimer;

#[cfg(feature = "tokio")]
impl Timer for TokioTimer {
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }
}
