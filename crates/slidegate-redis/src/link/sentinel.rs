//! Sentinel: asks for the address of the primary, and connects to it.
//!
//! The sentinels are asked in order, beginning with the last one that answered. One that hangs costs at most the connect
//! timeout. A sentinel may not know yet that its primary was demoted, so the role of the server is checked too.
//!
//! There is no connection to a sentinel meanwhile: every new connection of a lane asks again. A lane connects again when
//! its connection breaks, when it is silent, and when the server takes no writes, so it follows a failover as soon as the
//! sentinels have decided it. Rejected: a subscription to `+switch-master`. It would tell a lane nothing earlier, because
//! Sentinel itself closes the connections to a demoted primary, and it costs a standing connection per process.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis::{Pipeline, ProtocolVersion, Value, from_redis_value};
use tokio::time::timeout;

use super::error::ConnectError;
use super::target::Target;
use super::wire::Wire;
use crate::call_error::CallError;
use crate::endpoint::SentinelServers;
use crate::options::RedisOptions;

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
}

impl Sentinels {
    pub(super) fn new(options: &RedisOptions, servers: &SentinelServers) -> Result<Self, ConnectError> {
        let primary = Target::new(options, servers.addresses[0].clone())?;
        // RESP2: a sentinel of Redis 5 does not know HELLO.
        let login = servers.login.clone().set_protocol(ProtocolVersion::RESP2);
        let sentinel =
            |address: &_| Target { address: Clone::clone(address), login: login.clone(), ..primary.clone() };
        let members = servers.addresses.iter().map(sentinel).collect();
        Ok(Self { members, first: AtomicUsize::new(0), master: servers.master.clone(), primary })
    }

    /// Connects to the primary.
    pub(super) async fn open(&self) -> Result<Wire, ConnectError> {
        let target = self.find_primary().await?;
        let mut wire = Wire::open(&target).await?;
        wire.check_is_primary(&target).await?;
        Ok(wire)
    }

    /// Asks the sentinels one after the other.
    async fn find_primary(&self) -> Result<Target, ConnectError> {
        let (first, count) = (self.first.load(Ordering::Relaxed), self.members.len());
        let mut failures = Vec::new();
        for index in (first..first + count).map(|index| index % count) {
            let sentinel = &self.members[index];
            let asked = timeout(sentinel.timeout, self.ask(sentinel)).await;
            match asked.unwrap_or_else(|_| Err(sentinel.timed_out())) {
                Ok(primary) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(primary);
                }
                Err(error) => failures.push(error),
            }
        }
        Err(self.no_primary(&failures))
    }

    /// Asks one sentinel.
    async fn ask(&self, sentinel: &Target) -> Result<Target, ConnectError> {
        let mut wire = Wire::open_any_version(sentinel).await?;
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
                Err(refused(why, slidegate::store::RefusalCause::Other))
            }
            Value::ServerError(error) => {
                let error = CallError::from_reply(&error);
                Err(refused(error.why.into(), error.cause))
            }
            reply => match from_redis_value::<(String, u16)>(reply) {
                Ok((host, port)) => Ok(self.primary.at(&host, port)),
                Err(_) => Err(refused(
                    "its reply is no address; give the addresses of sentinels".to_owned(),
                    slidegate::store::RefusalCause::Other,
                )),
            },
        }
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

/// For errors.
impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the primary `{}` of Sentinel", self.master)
    }
}
