//! Sleeping without knowing the runtime.

use std::time::Duration;

/// Lets a task sleep: the runtime's way of doing that, or a [`ManualClock`](super::ManualClock) in tests.
///
/// It sleeps in the time of the [`Clock`](super::Clock) that it is used with: a runtime's timer goes with
/// the [`SystemClock`](super::SystemClock), a manual clock with itself. Sleeping longer than asked delays
/// the caller; waking earlier costs a look at the clock.
///
/// For Tokio:
///
/// ```
/// # mod tokio { pub mod time { pub async fn sleep(_: std::time::Duration) {} } }
/// use slidegate::time::Timer;
/// use std::time::Duration;
///
/// struct TokioTimer;
///
/// impl Timer for TokioTimer {
///     fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
///         tokio::time::sleep(duration)
///     }
/// }
/// ```
pub trait Timer: Send + Sync {
    /// A future that is ready when `duration` has passed since this call. Dropping it ends the sleep.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}
