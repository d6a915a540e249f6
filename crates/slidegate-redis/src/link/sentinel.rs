//! Sentinel: asks for the address of the primary, and connects to it.
//!
//! The sentinels are asked in order, beginning with the last one that answered. One that hangs costs at most the connect
//! timeout. A sentinel may not know yet that its primary was demoted, so the role of the server is checked too.
//!
//! Every new connection of a lane asks again, so a lane follows a failover when its connection breaks, when the server is
//! silent, and when the server takes no writes. That is not enough: after a planned failover, or behind a partition of the
//! network, the old primary takes writes for seconds, and they are lost. So a watch asks every second over a standing
//! connection, and the lanes leave a server that is not the primary any more before their next round trip. Rejected: a
//! subscription to `+switch-master`. It would save most of that second, and a sentinel that hangs would end it unnoticed.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{Pipeline, ProtocolVersion, Value, from_redis_value};
use slidegate::store::RefusalCause;
use tokio::time::{sleep, timeout};

use super::error::ConnectError;
use super::target::Target;
use super::wire::Wire;
use crate::call_error::CallError;
use crate::endpoint::{Address, SentinelServers};
use crate::options::RedisOptions;

/// The interval at which the watch asks.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The sentinels of one primary.
#[derive(Debug)]
pub(super) struct Sentinels {
    /// With the sentinels' own login.
    members: Box<[Target]>,
    /// The one that answered last.
    first: AtomicUsize,
    /// The name under which the sentinels watch the primary.
    master: String,
    /// How to log in to the primary. The sentinels give its address.
    primary: Target,
    /// The address that they gave last.
    named: Mutex<Option<Address>>,
    /// How often that address has changed.
    generation: AtomicU64,
}

impl Sentinels {
    pub(super) fn new(options: &RedisOptions, servers: &SentinelServers) -> Result<Self, ConnectError> {
        let primary = Target::new(options, servers.addresses[0].clone())?;
        // RESP2: a sentinel of Redis 5 does not know HELLO.
        let login = servers.login.clone().set_protocol(ProtocolVersion::RESP2);
        let sentinel =
            |address: &_| Target { address: Clone::clone(address), login: login.clone(), ..primary.clone() };
        let members = servers.addresses.iter().map(sentinel).collect();
        let (first, named, generation) = (AtomicUsize::new(0), Mutex::default(), AtomicU64::new(0));
        Ok(Self { members, first, master: servers.master.clone(), primary, named, generation })
    }

    /// Whether a connection leads to the server that the sentinels named last.
    pub(super) fn is_current(&self, wire: &Wire) -> bool {
        wire.generation == self.generation.load(Ordering::Acquire)
    }

    /// Asks for the primary every second, for as long as it is polled.
    pub(super) async fn watch(&self) {
        let mut connected = None;
        loop {
            sleep(WATCH_INTERVAL).await;
            connected = match connected.take() {
                Some((index, wire)) => self.watch_over(index, wire).await,
                // The next connection of a lane would find out as well; this one stays open.
                None => self.find_primary().await.ok().map(|found| (found.sentinel, found.wire)),
            };
        }
    }

    /// Asks one sentinel again. `None` if it does not answer: then the next one is asked.
    async fn watch_over(&self, index: usize, mut wire: Wire) -> Option<(usize, Wire)> {
        let sentinel = &self.members[index];
        let asked = timeout(sentinel.timeout, self.ask(sentinel, &mut wire)).await;
        asked.ok()?.ok()?;
        Some((index, wire))
    }

    /// Connects to the primary.
    pub(super) async fn open(&self) -> Result<Wire, ConnectError> {
        let Found { target, generation, .. } = self.find_primary().await?;
        let mut wire = Wire::open(&target).await?;
        wire.check_is_primary(&target).await?;
        wire.generation = generation;
        Ok(wire)
    }

    /// Asks the sentinels one after the other.
    async fn find_primary(&self) -> Result<Found, ConnectError> {
        let (first, count) = (self.first.load(Ordering::Relaxed), self.members.len());
        let mut failures = Vec::new();
        for index in (first..first + count).map(|index| index % count) {
            let sentinel = &self.members[index];
            let asking = async {
                let mut wire = Wire::open_any_version(sentinel).await?;
                let (target, generation) = self.ask(sentinel, &mut wire).await?;
                Ok(Found { target, generation, sentinel: index, wire })
            };
            match timeout(sentinel.timeout, asking).await.unwrap_or_else(|_| Err(sentinel.timed_out())) {
                Ok(found) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(found);
                }
                Err(error) => failures.push(error),
            }
        }
        Err(self.no_primary(&failures))
    }

    /// Asks one sentinel. Returns the primary, and the generation of its address.
    async fn ask(&self, sentinel: &Target, wire: &mut Wire) -> Result<(Target, u64), ConnectError> {
        let mut request = Pipeline::new();
        request.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
        let refused = |why: String, cause| ConnectError::Refused {
            address: sentinel.address.to_string(),
            why: sentinel.redacted(&why),
            cause,
        };
        match wire.ask(&request, sentinel).await? {
            Value::Nil => {
                let why = format!("this sentinel watches no primary with the name `{}`", self.master);
                Err(refused(why, RefusalCause::Other))
            }
            Value::ServerError(error) => {
                let CallError { cause, why, .. } = CallError::from_reply(&error);
                if cause == RefusalCause::Forbidden {
                    let why = sentinel.redacted(&format!(
                        "{} {}",
                        error.code(),
                        error.details().unwrap_or_default()
                    ));
                    return Err(ConnectError::Login { address: sentinel.address.to_string(), why });
                }
                Err(refused(why.into(), cause))
            }
            reply => match from_redis_value::<(String, u16)>(reply) {
                Ok((host, port)) => {
                    let target = self.primary.at(&host, port);
                    let generation = self.note(&target.address);
                    Ok((target, generation))
                }
                Err(_) => Err(refused(
                    "its reply is no address; give the addresses of sentinels".to_owned(),
                    RefusalCause::Other,
                )),
            },
        }
    }

    /// Notes the address that a sentinel has given; returns its generation.
    fn note(&self, address: &Address) -> u64 {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.as_ref() == Some(address) {
            return self.generation.load(Ordering::Acquire);
        }
        *named = Some(address.clone());
        self.generation.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The error of all sentinels: that of a refused login, which only the operator can correct, else all of them.
    fn no_primary(&self, failures: &[ConnectError]) -> ConnectError {
        let login = failures.iter().find_map(|failure| match failure {
            ConnectError::Login { address, why } => {
                Some(ConnectError::SentinelLogin { address: address.clone(), why: why.clone() })
            }
            _ => None,
        });
        login.unwrap_or_else(|| {
            let why: Vec<_> = failures.iter().map(ConnectError::cause).collect();
            ConnectError::NoPrimary { master: self.master.clone(), why: why.join("; ") }
        })
    }
}

/// The answer of a sentinel.
struct Found {
    target: Target,
    generation: u64,
    /// The index of the sentinel, and the connection to it.
    sentinel: usize,
    wire: Wire,
}

/// For errors.
impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the primary `{}` of Sentinel", self.master)
    }
}
