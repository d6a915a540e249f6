//! Limits per user, from a table: a plan for everyone, other limits for some, no limit or no access for a few.
//!
//! `cargo run -p slidegate --example per_user_limits`
#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::error::Error;

use slidegate::ruleset::{AdmissionErrorKind, Override, Overrides};
use slidegate::{ChargeRequest, Limiter, Rule, RuleSet};

/// What a database would hold: the user, or a pattern of users, and the limit.
const TABLE: [(&str, &str); 4] =
    [("alice", "5/1m"), ("batch-*", "unlimited"), ("mallory", "blocked"), ("bob", "1/1m")];

fn rules() -> Result<RuleSet, Box<dyn Error>> {
    let api = Rule::new("api", "2/1m")?;
    let mut overrides = Overrides::default();
    for (user, limit) in TABLE {
        let instead = match limit {
            "unlimited" => Override::Unlimited,
            "blocked" => Override::Blocked,
            rate => Override::Limited(api.with_rates(&[rate.parse()?])?),
        };
        overrides.add(user, instead)?;
    }
    let mut rules = RuleSet::new();
    rules.insert_with(api, overrides);
    Ok(rules)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rules, limiter) = (rules()?, Limiter::in_memory());
    for user in ["carol", "alice", "bob", "batch-7", "mallory"] {
        let requests = [ChargeRequest::named("api", user, 1)];
        let admission = match rules.admission(&requests) {
            Ok(admission) => admission,
            Err(error) if matches!(error.reason, AdmissionErrorKind::Blocked { .. }) => {
                println!("{user}: blocked");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut admitted = 0;
        while admitted < 10 && limiter.decide(&admission)?.allowed() {
            admitted += 1;
        }
        println!("{user}: {admitted} of 10 requests admitted");
    }
    Ok(())
}
