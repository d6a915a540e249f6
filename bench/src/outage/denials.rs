//! The deny cache: requests that are denied again and again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use redis::{Connection, from_redis_value};
use slidegate::guard::{DENY_CACHE_HOLD, GuardOptions};
use slidegate::time::{Clock, SystemClock};
use slidegate::{Limiter, Rule};
use slidegate_redis::{RedisOptions, RedisStore};
use tokio::time::sleep;

use crate::options::Options;
use crate::results::{Sample, Scenario};
use crate::server::{RedisServer, command};

/// Limiters with these names and holds.
pub(crate) const SUBJECTS: [(&str, Duration); 2] =
    [("deny cache", DENY_CACHE_HOLD), ("no deny cache", Duration::ZERO)];

const RATE: &str = "5/1m";
const KEYS: u64 = 10;
/// Of every key.
const PER_SECOND: u64 = 100;
const CALLERS: u64 = 50;
/// Checks of a caller between two readings of the clock. All callers share one thread.
const CHECKS_PER_TURN: u64 = 32;

type Shared = Arc<Limiter<RedisStore>>;

/// Measures both limiters in turn.
pub(crate) fn measure(options: &Options) -> Result<Vec<Sample>> {
    let server = RedisServer::start();
    let mut connection = server.connection();
    // One thread for all callers: redis-server has the other core.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut samples = Vec::new();
        let mut limiters = Vec::new();
        for (subject, hold) in SUBJECTS {
            // Long enough that no call of a benchmark fails.
            let redis = RedisOptions::new(&server.url())?.deadline(Duration::from_secs(10))?;
            let store = RedisStore::connect_with(&redis).await?;
            let limiter = Limiter::guarded(store, GuardOptions::default().deny_cache(hold));
            limiters.push((subject, Arc::new(limiter)));
        }
        for (subject, limiter) in &limiters {
            eprintln!("{KEYS} keys at {PER_SECOND} requests a second each, {subject}");
            samples
                .push(at_fixed_rate(subject, limiter, options.fixed_rate_seconds(), &mut connection).await?);
        }
        for repetition in 0..options.reps {
            eprintln!("{CALLERS} callers, repetition {} of {}", repetition + 1, options.reps);
            for (subject, limiter) in &limiters {
                samples.push(by_callers(subject, limiter, options.slice_seconds(), &mut connection).await?);
            }
        }
        Ok(samples)
    })
}

/// Requests at fixed times. Both limiters get as many.
async fn at_fixed_rate(
    subject: &str,
    limiter: &Shared,
    seconds: u64,
    connection: &mut Connection,
) -> Result<Sample> {
    let (clock, rule) = (SystemClock::new(), Rule::new(&format!("rate {subject}").replace(' ', "-"), RATE)?);
    let before = scripts(connection)?;
    let begin_us = clock.now_us();
    let mut decisions = 0;
    for turn in 0..seconds * PER_SECOND {
        let due_us = begin_us + turn * 1_000_000 / PER_SECOND;
        sleep(Duration::from_micros(due_us.saturating_sub(clock.now_us()))).await;
        for key in 0..KEYS {
            limiter.check_async(&rule, &format!("user:{key}")).await?;
            decisions += 1;
        }
    }
    let elapsed_us = clock.now_us() - begin_us;
    let round_trips = scripts(connection)? - before;
    Ok(Sample { scenario: Scenario::FixedRate, subject: subject.into(), decisions, elapsed_us, round_trips })
}

/// Callers that each wait for an answer before the next request.
async fn by_callers(
    subject: &str,
    limiter: &Shared,
    seconds: u64,
    connection: &mut Connection,
) -> Result<Sample> {
    let rule = Arc::new(Rule::new(&format!("callers {subject}").replace(' ', "-"), RATE)?);
    while limiter.check_async(&rule, "user").await?.allowed() {}
    let before = scripts(connection)?;
    let clock = SystemClock::new();
    let begin_us = clock.now_us();
    let end_us = begin_us + seconds * 1_000_000;
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(denied_until(end_us, Arc::clone(limiter), Arc::clone(&rule))))
        .collect();
    let mut decisions = 0;
    for caller in callers {
        decisions += caller.await??;
    }
    let elapsed_us = clock.now_us() - begin_us;
    let round_trips = scripts(connection)? - before;
    Ok(Sample { scenario: Scenario::Callers, subject: subject.into(), decisions, elapsed_us, round_trips })
}

async fn denied_until(end_us: u64, limiter: Shared, rule: Arc<Rule>) -> Result<u64> {
    let (clock, mut decisions) = (SystemClock::new(), 0);
    while clock.now_us() < end_us {
        for _ in 0..CHECKS_PER_TURN {
            // A run may last longer than the window, of which each begins with five admissions.
            limiter.check_async(&rule, "user").await?;
            decisions += 1;
        }
        tokio::task::yield_now().await;
    }
    Ok(decisions)
}

/// Scripts that Redis has run.
fn scripts(connection: &mut Connection) -> Result<u64> {
    let stats: String = from_redis_value(command(connection, &["INFO", "commandstats"]))?;
    let calls = |name: &str| -> Option<u64> {
        let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":calls="))?;
        line.split(',').next()?.parse().ok()
    };
    let ran = calls("cmdstat_evalsha").unwrap_or(0) + calls("cmdstat_eval").unwrap_or(0);
    ensure!(stats.contains("# Commandstats"), "Redis shows no statistics of commands");
    Ok(ran)
}
