//! An opened store or server, and what is asked of it.

use std::time::Duration;

use anyhow::{Error, anyhow};
use slidegate::{Applied, ChargeRequest, CheckError};
use slidegate_sqlite::SqliteOptions;
use slidegate_stores::StoreUrl;

use super::answer::Answer;
use super::location::{Location, make_directory};
use super::question::Question;
use super::server::Server;
use crate::stores::{OpenError, Opened};

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
    Store(Box<Opened>),
    /// A store that could not be opened, and what the outage policy answers for it.
    Unopened(Box<Opened>, Error),
    Server(Server),
}

impl Target {
    /// Opens it. A store that is not there is a target all the same: the outage policy answers for it.
    pub(in crate::cli) fn open(location: &Location) -> Result<Self, Error> {
        let opened = match location {
            Location::Server(url) => return Ok(Self::Server(Server::new(url.clone()))),
            Location::Own(path) => match make_directory(path) {
                Ok(()) => Opened::open(&StoreUrl::sqlite(SqliteOptions::new(path))),
                Err(error) => {
                    return Ok(Self::Unopened(Box::new(Opened::failed(&error.to_string())?), error));
                }
            },
            Location::Store(url) if url.kind() == "redis" => {
                Opened::open(&url.clone().deadline(REDIS_DEADLINE)?)
            }
            Location::Store(url) => Opened::open(url),
        };
        match opened {
            Ok(opened) => Ok(Self::Store(Box::new(opened))),
            Err(error @ OpenError::Open(_)) => {
                Ok(Self::Unopened(Box::new(Opened::failed(&error.to_string())?), error.into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks once. What the outage policy answers says why.
    pub(in crate::cli) fn ask(&self, verb: Verb, question: &Question) -> Result<Answer, Error> {
        let (opened, unopened) = match self {
            Self::Server(server) => return server.ask(verb, question),
            Self::Store(opened) => (opened, None),
            Self::Unopened(opened, error) => (opened, Some(error)),
        };
        let admission = question.admission()?.ok_or_else(only_there)?;
        let limiter = opened.limiter.with_outage_policy(question.policy());
        let decided = opened.wait(async {
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
            Self::Server(server) => return server.reset(request),
            Self::Unopened(_, error) => return Err(anyhow!("{error:#}")),
            Self::Store(opened) => opened,
        };
        let (rule, key) = question.located(request)?.ok_or_else(only_there)?;
        Ok(opened.wait(opened.limiter.reset_async(rule, key))?)
    }
}

/// Rules by name alone are asked of servers only, which [`super::Meant::of`] sees to.
fn only_there() -> Error {
    anyhow!("rule: is known to a server only; give --store http://HOST:PORT")
}
