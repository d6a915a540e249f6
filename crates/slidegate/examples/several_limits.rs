//! Several limits at once: a request passes all of them or is charged to none.
//!
//! `cargo run -p slidegate --example several_limits`
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::error::Error;

use slidegate::{Limiter, Rule};

fn main() -> Result<(), Box<dyn Error>> {
    // The upstream allows 10,000 units a day. Headroom keeps us at 9,500, below what it counts.
    let quota = Rule::builder("quota").limit("10000/24h".parse()?).headroom("0.05".parse()?).build()?;
    // A rule may have several limits of its own.
    let search = Rule::builder("search").limit("300/1s".parse()?).limit("500/10m".parse()?).build()?;
    let limiter = Limiter::in_memory();

    // Any instant will do; a service calls `limiter.check_all` without `at_us`.
    let noon_us = 1_745_000_000_000_000;
    let charges = [quota.charge("team-1", 200)?, search.charge("team-1", 200)?];
    let first = limiter.at_us(noon_us).check_all(&charges)?.into_owned();
    println!("first: allowed {}, {} has least left", first.allowed(), first.rule());

    let second = limiter.at_us(noon_us).check_all(&charges)?;
    let wait = second.retry_after().unwrap_or_default();
    println!("second: allowed {}, {} binds, retry in {wait:?}", second.allowed(), second.rule());
    for verdict in second.verdicts() {
        println!("  {}: {:?} used of {:?}", verdict.rule(), verdict.used(), verdict.limit());
    }

    // The upstream call failed before it cost anything: give the units back to both rules.
    let receipt = first.receipt().ok_or("an admission has a receipt")?;
    println!("refund: {} units", limiter.at_us(noon_us).refund(&receipt)?.units);
    println!("third: allowed {}", limiter.at_us(noon_us).check_all(&charges)?.allowed());
    Ok(())
}
