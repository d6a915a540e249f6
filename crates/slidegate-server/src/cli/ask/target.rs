//! Whoever is asked, opened.

use std::time::Duration;

use anyhow::{Error, anyhow};
use slidegate::store::{Store, When};
use slidegate::testing::block_on;
use slidegate::{Applied, ChargeRequest};
use slidegate_sqlite::{SqliteOptions, SqliteStore};

use super::answer::Answer;
use super::location::{Location, make_directory};
use super::question::Question;
use super::server::Server;
use crate::stores::{Opened, StoreUrl};

/// How long a Redis may take to answer. A server must not keep its callers waiting for long; a script would rather wait than
/// fail because a machine was busy.
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
    /// Its calls block, so no runtime is started for them.
    File(Box<SqliteStore>),
    Opened(Box<Opened>),
    Server(Server),
}

/// Why there is no answer.
#[derive(Debug)]
pub(in crate::cli) enum Failure {
    /// The store did not give one, and the outage policy may.
    Store(Error),
    /// The request cannot be answered as it is.
    Other(Error),
}

impl Failure {
    /// Either, where no policy answers.
    pub(in crate::cli) fn into_error(self) -> Error {
        match self {
            Self::Store(error) | Self::Other(error) => error,
        }
    }
}

impl Target {
    pub(in crate::cli) fn open(location: &Location) -> Result<Self, Failure> {
        match location {
            Location::Own(path) => {
                make_directory(path).map_err(Failure::Store)?;
                Self::file(&SqliteOptions::new(path))
            }
            Location::Store(StoreUrl::Sqlite(options)) => Self::file(options),
            Location::Store(StoreUrl::Redis(options)) => {
                let patient = options.as_ref().clone().deadline(REDIS_DEADLINE);
                let patient = patient.map_err(|error| Failure::Other(error.into()))?;
                Self::opened(&StoreUrl::Redis(Box::new(patient)))
            }
            Location::Store(url) => Self::opened(url),
            Location::Server(url) => Ok(Self::Server(Server::new(url.clone()))),
        }
    }

    fn opened(url: &StoreUrl) -> Result<Self, Failure> {
        let opened = Opened::open(url).map_err(|error| Failure::Store(error.into()))?;
        Ok(Self::Opened(Box::new(opened)))
    }

    fn file(options: &SqliteOptions) -> Result<Self, Failure> {
        let store = SqliteStore::open(options).map_err(|error| Failure::Store(error.into()))?;
        Ok(Self::File(Box::new(store)))
    }

    /// Asks once.
    pub(in crate::cli) fn ask(&self, verb: Verb, question: &Question) -> Result<Answer, Failure> {
        match self {
            Self::Server(server) => server.ask(verb, question),
            Self::File(store) => block_on(asked(&**store, verb, question)),
            Self::Opened(opened) => opened.wait(asked(&opened.store, verb, question)),
        }
    }

    /// Forgets the key of one of the charges.
    pub(in crate::cli) fn reset(
        &self,
        question: &Question,
        request: &ChargeRequest<'_>,
    ) -> Result<Applied, Failure> {
        match self {
            Self::Server(server) => server.reset(request),
            Self::File(store) => block_on(forgotten(&**store, question, request)),
            Self::Opened(opened) => opened.wait(forgotten(&opened.store, question, request)),
        }
    }
}

async fn asked(store: &impl Store, verb: Verb, question: &Question) -> Result<Answer, Failure> {
    let admission = question.admission().map_err(Failure::Other)?.ok_or_else(only_there)?;
    let decision = match verb {
        Verb::Check => store.check(When::Now, &admission).await.map(|outcome| outcome.decision),
        Verb::Peek => store.peek(When::Now, &admission).await,
    };
    let decision = decision.map_err(|error| Failure::Store(error.into()))?;
    Ok(Answer::decided(&decision, question))
}

async fn forgotten(
    store: &impl Store,
    question: &Question,
    request: &ChargeRequest<'_>,
) -> Result<Applied, Failure> {
    let (rule, key) = question.located(request).map_err(Failure::Other)?.ok_or_else(only_there)?;
    store.reset(When::Now, rule, key).await.map_err(|error| Failure::Store(error.into()))
}

/// Rules by name alone are asked of servers only, which [`super::Meant::of`] sees to.
fn only_there() -> Failure {
    Failure::Other(anyhow!("rule: is known to a server only; give --store http://HOST:PORT"))
}
