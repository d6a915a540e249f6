//! One program on any store: the state in this process, in a file that processes share, or in a Redis that a fleet
//! shares.
//!
//! ```text
//! cargo run -p slidegate-stores --example any_store
//! cargo run -p slidegate-stores --example any_store -- --store sqlite:limits.db
//! cargo run -p slidegate-stores --example any_store -- --store redis://127.0.0.1:6379
//! ```
//!
//! Run it again within a minute: memory starts anew, the other two remember.
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::env;
use std::error::Error;

use slidegate::{Limiter, Rule};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let url = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => "memory",
        ["--store", url] => url,
        _ => return Err("usage: any_store [--store memory|sqlite:PATH|redis://HOST:PORT]".into()),
    };
    let limiter = Limiter::new(slidegate_stores::open(url).await?);
    let login = Rule::new("login", "5/1m")?;
    for attempt in 1..=4 {
        let decision = limiter.check_async(&login, "alice").await?;
        match decision.retry_after() {
            Some(wait) if !decision.allowed() => println!("attempt {attempt}: denied, retry in {wait:?}"),
            _ => println!("attempt {attempt}: allowed, {} left", decision.remaining().unwrap_or(0)),
        }
    }
    Ok(())
}
