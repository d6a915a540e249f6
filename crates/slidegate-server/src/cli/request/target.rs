//! An opened store or a server connection, and the requests to it.

use anyhow::{Error, anyhow};
use slidegate::rule::OnStoreError;
use slidegate::{Admission, Applied, Charge, ChargeRequest, CheckError};
use slidegate_sqlite::SqliteOptions;
use slidegate_stores::StoreUrl;

use super::answer::{ChargeReceipt, CheckAnswer};
use super::location::{ServerUrl, StoreLocation, make_directory};
use super::plan::CommandRequest;
use super::server;
use crate::stores::{BlockingLimiter, OpenError};

/// Whether to charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Verb {
    Check,
    Peek,
}

/// An opened store or a server.
#[derive(Debug)]
pub(in crate::cli) enum Target {
    /// A store. If it could not be opened, the error says why, and the outage policy answers.
    Store(Box<BlockingLimiter>, Option<Error>),
    Server(ServerUrl),
}

impl Target {
    /// Opens a store or names a server. A store that cannot be opened is a target too, answered by the outage policy.
    pub(in crate::cli) fn open(location: &StoreLocation) -> Result<Self, Error> {
        let opened = match location {
            StoreLocation::Server(url) => return Ok(Self::Server(url.clone())),
            StoreLocation::UserFile(path) => match make_directory(path) {
                Ok(()) => BlockingLimiter::open_lazily(&StoreUrl::sqlite(SqliteOptions::new(path))),
                Err(error) => return Self::unopened(error),
            },
            StoreLocation::Store(url) => BlockingLimiter::open_lazily(url),
        };
        match opened {
            Ok(opened) => Ok(Self::Store(Box::new(opened), None)),
            Err(error @ OpenError::Open(_)) => Self::unopened(error.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn unopened(error: Error) -> Result<Self, Error> {
        Ok(Self::Store(Box::new(BlockingLimiter::failed(&error.to_string())?), Some(error)))
    }

    /// Sends a request once. An answer of the outage policy contains the error.
    pub(in crate::cli) fn ask(&self, verb: Verb, request: &CommandRequest) -> Result<CheckAnswer, Error> {
        let (opened, unopened) = match self {
            Self::Server(url) => return server::ask(url, verb, request),
            Self::Store(opened, unopened) => (opened, unopened),
        };
        let admission = request.admission()?;
        let limiter = opened.limiter.with_outage_policy(request.policy.or_else(|| deny_local(&admission)));
        let decided = opened.block_on(async {
            match verb {
                Verb::Check => limiter.decide_async(&admission).await,
                Verb::Peek => limiter.peek_admission_async(&admission).await,
            }
        });
        match (decided, unopened) {
            (Ok(decision), None) => Ok(CheckAnswer::from_decision(&decision)),
            (Ok(decision), Some(error)) => Ok(CheckAnswer::from_decision(&decision).with_store_error(error)),
            (Err(CheckError::Store(_)), Some(error)) => Err(anyhow!("{error:#}")),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Refunds a charge that this target answered.
    pub(super) fn refund(&self, receipt: &ChargeReceipt) -> Result<Applied, Error> {
        match (self, receipt) {
            (Self::Server(url), ChargeReceipt::Server(receipt)) => server::refund(url, receipt),
            (Self::Store(opened, _), ChargeReceipt::Store(receipt)) => {
                Ok(opened.block_on(opened.limiter.refund_async(receipt))?)
            }
            _ => Err(anyhow!("receipt: is of another store; ask the one that charged")),
        }
    }

    /// Resets the key of a charge.
    pub(in crate::cli) fn reset(
        &self,
        request: &CommandRequest,
        charge: &ChargeRequest<'_>,
    ) -> Result<Applied, Error> {
        let opened = match self {
            Self::Server(url) => return server::reset(url, charge),
            Self::Store(_, Some(error)) => return Err(anyhow!("{error:#}")),
            Self::Store(opened, None) => opened,
        };
        let (rule, key) = request.rule_and_key(charge)?;
        Ok(opened.block_on(opened.limiter.reset_async(rule, key))?)
    }
}

/// `Deny` if a rule has a limit within the process as its policy. A command counts in a process of its own, which would let
/// every command spend the whole share.
fn deny_local(admission: &Admission<'_>) -> Option<OnStoreError> {
    let is_local = |policy| matches!(policy, OnStoreError::Local(_));
    let mut rules = admission.asks().iter().map(Charge::rule);
    rules.any(|rule| !rule.shadow() && is_local(rule.on_store_error())).then_some(OnStoreError::Deny)
}
