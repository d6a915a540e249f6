//! Tokens of a language model: charge an estimate before the call, settle the true cost after it, in another task.
//!
//! `cargo run -p slidegate --example settle_tokens`
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::error::Error;
use std::sync::Arc;

use slidegate::{Limiter, Receipt, Rule};

/// Stands for the call of a model: it answers, and says how many tokens it used.
async fn complete(prompt: &str) -> (String, u64) {
    tokio::task::yield_now().await;
    (format!("an answer to {prompt:?}"), 340)
}

/// Runs in a task of its own. A receipt borrows nothing, so it can move there.
async fn call(limiter: Arc<Limiter>, receipt: Receipt, prompt: String) -> Result<u64, String> {
    let (_answer, tokens) = complete(&prompt).await;
    // 340 of the 1,000 tokens that were charged: the other 660 come back.
    let settled = limiter.settle_async(&receipt, tokens).await.map_err(|error| error.to_string())?;
    println!("settled for {tokens} tokens, {} given back", settled.units);
    Ok(tokens)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Arc::new(Limiter::in_memory());
    let tokens = Rule::new("tokens", "2000/1m")?;

    let mut tasks = Vec::new();
    for prompt in ["one", "two", "three"] {
        let decision = limiter.check_all_async(&[tokens.charge("team-1", 1_000)?]).await?;
        match decision.receipt() {
            Some(receipt) => {
                println!("{prompt}: admitted for up to 1000 tokens");
                tasks.push(tokio::spawn(call(Arc::clone(&limiter), receipt, prompt.to_owned())));
            }
            None => println!("{prompt}: denied, {} tokens are reserved", decision.used().unwrap_or(0)),
        }
    }
    for task in tasks {
        task.await??;
    }
    let left = limiter.peek(&tokens, "team-1")?.remaining().unwrap_or(0);
    println!("{left} of 2000 tokens left");
    Ok(())
}
