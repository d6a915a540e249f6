//! Rules by name, overrides per key, and inline rules.
//!
//! A [`RuleSet`] holds the rules in force. A program parses a request into a [`ChargeRequest`], and
//! [`RuleSet::resolve`] turns it into a [`Charge`](crate::Charge), an unlimited key or a blocked one.
//! [`RuleSet::admission`] resolves several requests at once.
//!
//! ```
//! use slidegate::ruleset::{ChargeRequest, Override, Overrides, Resolved, RuleSet};
//! use slidegate::{Limiter, Rule};
//!
//! let mut overrides = Overrides::default();
//! overrides.add("ci-*", Override::Unlimited)?;
//! overrides.add("mallory", Override::Blocked)?;
//! let mut rules = RuleSet::new();
//! rules.insert_with(Rule::builder("api").limit("60/1m".parse()?).build()?, overrides);
//!
//! let limiter = Limiter::in_memory();
//! for (key, passes) in [("alice", true), ("ci-7", true), ("mallory", false)] {
//!     let request = ChargeRequest::named("api", key, 1);
//!     let allowed = match rules.resolve(&request)? {
//!         Resolved::Limited(charge) => limiter.check_all(&[charge])?.allowed(),
//!         Resolved::Unlimited(_) => true,
//!         Resolved::Blocked(_) => false,
//!     };
//!     assert_eq!(allowed, passes);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod inline_table;
mod nearest;
mod overrides;
mod request;
mod set;

pub use admission::{AdmissionError, AdmissionErrorKind};
#[doc(hidden)]
pub use nearest::nearest;
pub use overrides::{Override, OverrideError, Overrides, PATTERNS_MAX};
pub use request::{ChargeRequest, InlineRule, Resolved, RuleRef};
pub use set::{ResolveError, RuleSet};
