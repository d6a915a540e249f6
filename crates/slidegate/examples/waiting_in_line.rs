//! Waiting in line: `acquire_async` waits until the request is admitted, first come first served.
//!
//! `cargo run -p slidegate --example waiting_in_line`
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use slidegate::time::TokioTimer;
use slidegate::{Limiter, Rule};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Arc::new(Limiter::in_memory());
    let api = Arc::new(Rule::new("api", "2/50ms")?);

    let mut tasks = Vec::new();
    for number in 1..=6 {
        let (limiter, api) = (Arc::clone(&limiter), Arc::clone(&api));
        tasks.push(tokio::spawn(async move {
            let wait_max = Duration::from_secs(10);
            let acquired = limiter.acquire_async(&TokioTimer, &api, "upstream", wait_max).await;
            match acquired {
                Ok(decision) if decision.allowed() => println!("request {number} admitted"),
                Ok(decision) => println!("request {number} gave up: {:?}", decision.retry_after()),
                Err(error) => println!("request {number} failed: {error}"),
            }
        }));
    }
    for task in tasks {
        task.await?;
    }

    // A wait that would exceed the maximum ends at once, and costs nothing.
    let hourly = Rule::new("hourly", "1/1h")?;
    limiter.check(&hourly, "upstream")?;
    let refused = limiter.acquire_async(&TokioTimer, &hourly, "upstream", Duration::from_secs(1)).await?;
    println!("an hour is too long: allowed {}", refused.allowed());
    Ok(())
}
