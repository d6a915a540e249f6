//! A store that is open, and what drives its calls.

use std::io;
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use slidegate::store::{
    BudgetError, CheckError, LimitUsage, MemoryStore, Outcome, ReturnError, Stats, Store, StoreError, When,
};
use slidegate::{Admission, Applied, Decision, Key, Receipt, Rule};
use slidegate_redis::{ConnectError, OptionsError, RedisStore};
use slidegate_sqlite::SqliteStore;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

use super::StoreUrl;

/// Whichever store was asked for.
#[derive(Debug)]
pub(crate) enum AnyStore {
    Memory(Box<MemoryStore>),
    Sqlite(Box<SqliteStore>),
    Redis(Box<RedisStore>),
}

impl AnyStore {
    /// Opens the store of a server, on the runtime that this is called on, with the secret that its receipts are signed
    /// with. The runtime must run for as long as the store is used.
    pub(crate) async fn open(
        url: &StoreUrl,
        deadline: Duration,
        memory_budget: Option<u64>,
    ) -> Result<(Self, [u8; 32]), OpenError> {
        match url {
            StoreUrl::Memory => {
                let store = memory_budget.map_or_else(|| Ok(MemoryStore::new()), MemoryStore::with_budget)?;
                let mut secret = [0; 32];
                SystemRandom::new().fill(&mut secret).map_err(|_| OpenError::Random)?;
                Ok((Self::Memory(Box::new(store)), secret))
            }
            StoreUrl::Sqlite(options) => {
                let store = SqliteStore::open(options)?;
                let secret = store.secret()?;
                Ok((Self::Sqlite(Box::new(store)), secret))
            }
            StoreUrl::Redis(options) => {
                let options = options.as_ref().clone().deadline(deadline)?;
                let store = RedisStore::connect(&options).await?;
                let secret = store.secret().await?;
                Ok((Self::Redis(Box::new(store)), secret))
            }
        }
    }

    /// What metrics call it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Sqlite(_) => "sqlite",
            Self::Redis(_) => "redis",
        }
    }

    /// What it holds, if it is in this process.
    pub(crate) fn stats(&self) -> Option<Stats> {
        match self {
            Self::Memory(store) => Some(store.stats()),
            Self::Sqlite(_) | Self::Redis(_) => None,
        }
    }
}

/// A store, and the runtime that its calls run on.
#[derive(Debug)]
pub(crate) struct Opened {
    runtime: Runtime,
    pub(crate) store: AnyStore,
}

impl Opened {
    /// Opens a store for a program that does one thing at a time.
    pub(crate) fn open(url: &StoreUrl) -> Result<Self, OpenError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(OpenError::Runtime)?;
        let store = match url {
            StoreUrl::Memory => AnyStore::Memory(Box::default()),
            StoreUrl::Sqlite(options) => AnyStore::Sqlite(Box::new(SqliteStore::open(options)?)),
            StoreUrl::Redis(options) => {
                AnyStore::Redis(Box::new(runtime.block_on(RedisStore::connect(options))?))
            }
        };
        Ok(Self { runtime, store })
    }

    /// Waits for the answer of a call.
    pub(crate) fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }
}

/// Why a store could not be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// The system refuses what a runtime needs.
    #[error("cannot start: the system refuses what waiting needs (such as an epoll)")]
    Runtime(#[source] io::Error),
    /// The file cannot be used.
    #[error(transparent)]
    Sqlite(#[from] slidegate_sqlite::OpenError),
    /// The Redis is not there, or not as it should be.
    #[error(transparent)]
    Redis(#[from] ConnectError),
    /// It is there, and cannot be used as asked.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// It is there, and does not give the secret that receipts are signed with.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A memory budget that is none.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// There is nothing to sign receipts with.
    #[error("cannot start: the system gives no random numbers; see getrandom(2)")]
    Random,
}

/// Asks whichever store it is the same.
macro_rules! each {
    ($any:expr, $store:ident => $call:expr) => {
        match $any {
            AnyStore::Memory($store) => $call,
            AnyStore::Sqlite($store) => $call,
            AnyStore::Redis($store) => $call,
        }
    };
}

impl Store for AnyStore {
    async fn check<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Outcome<'a>, StoreError> {
        each!(self, store => Store::check(&**store, when, admission).await)
    }

    async fn check_batch<'a>(
        &self,
        when: When,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Outcome<'a>, StoreError>> {
        each!(self, store => Store::check_batch(&**store, when, admissions).await)
    }

    async fn peek<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        each!(self, store => Store::peek(&**store, when, admission).await)
    }

    async fn refund(&self, when: When, receipt: &Receipt<'_>) -> Result<Applied, ReturnError> {
        each!(self, store => Store::refund(&**store, when, receipt).await)
    }

    async fn settle(&self, when: When, receipt: &Receipt<'_>, actual: u64) -> Result<Applied, ReturnError> {
        each!(self, store => Store::settle(&**store, when, receipt, actual).await)
    }

    async fn credit(&self, when: When, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        each!(self, store => Store::credit(&**store, when, rule, key, units).await)
    }

    async fn reset(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        each!(self, store => Store::reset(&**store, when, rule, key).await)
    }

    async fn inspect(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        each!(self, store => Store::inspect(&**store, when, rule, key).await)
    }

    async fn change(&self, when: When, rule: &Rule) -> Result<(), StoreError> {
        each!(self, store => Store::change(&**store, when, rule).await)
    }
}
