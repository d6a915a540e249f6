//! An opened store or server, and what is asked of it.

use std::time::Duration;

use anyhow::{Error, anyhow};
use slidegate::{Applied, ChargeRequest, CheckError};
use slidegate_sqlite::SqliteOptions;
use slidegate_stores::StoreUrl;

use super::answer::Answer;
use super::location::{Location, ServerUrl, make_directory};
use super::question::Question;
use super::server;
use crate::stores::{BlockingLimiter, OpenError};

/// How long a Redis may take to answer. A server must not keep its callers waiting for long; a script had better wait
/// than fail because a machine was busy.
const REDIS_DEADLINE: Duration = Duration::from_secs(2);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Verb {
    Check,
    Peek,
}

/// A store or a server that can be asked now.
#[derive(Debug)]
pub(in crate::cli) enum Target {
    /// A store. Where it could not be opened, the error says why, and the outage policy answers for it.
    Store(Box<BlockingLimiter>, Option<Error>),
    Server(ServerUrl),
}

impl Target {
    /// Opens it. A store that is not there is a target all the same.
    pub(in crate::cli) fn open(location: &Location) -> Result<Self, Error> {
        let opened = match location {
            Location::Server(url) => return Ok(Self::Server(url.clone())),
            Location::Own(path) => match make_directory(path) {
                Ok(()) => BlockingLimiter::open(&StoreUrl::sqlite(SqliteOptions::new(path))),
                Err(error) => return Self::unopened(error),
            },
            Location::Store(url) if url.kind() == "redis" => {
                BlockingLimiter::open(&url.clone().deadline(REDIS_DEADLINE)?)
            }
            Location::Store(url) => BlockingLimiter::open(url),
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

    /// Asks once. What the outage policy answers says why.
    pub(in crate::cli) fn ask(&self, verb: Verb, question: &Question) -> Result<Answer, Error> {
        let (opened, unopened) = match self {
            Self::Server(url) => return server::ask(url, verb, question),
            Self::Store(opened, unopened) => (opened, unopened),
        };
        let admission = question.admission()?;
        let limiter = opened.limiter.with_outage_policy(question.policy);
        let decided = opened.block_on(async {
            match verb {
                Verb::Check => limiter.decide_async(&admission).await,
                Verb::Peek => limiter.peek_admission_async(&admission).await,
            }
        });
        match (decided, unopened) {
            (Ok(decision), None) => Ok(Answer::decided(&decision)),
            (Ok(decision), Some(error)) => Ok(Answer::decided(&decision).because(error)),
            (Err(CheckError::Store(_)), Some(error)) => Err(anyhow!("{error:#}")),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Forgets the key of one of the charges.
    pub(in crate::cli) fn reset(
        &self,
        question: &Question,
        request: &ChargeRequest<'_>,
    ) -> Result<Applied, Error> {
        let opened = match self {
            Self::Server(url) => return server::reset(url, request),
            Self::Store(_, Some(error)) => return Err(anyhow!("{error:#}")),
            Self::Store(opened, None) => opened,
        };
        let (rule, key) = question.located(request)?;
        Ok(opened.block_on(opened.limiter.reset_async(rule, key))?)
    }
}
