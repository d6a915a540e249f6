//! The classical sorted set with one member per unit, by EVALSHA over multiplexed connections.

use anyhow::{Context, Result};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo, Pipeline, Script};
use slidegate::testing::Rng;

use super::{AsyncLimiter, Request};
use crate::scenario::Load;

/// The script that the tests compare the store with.
const SCRIPT: &str = include_str!("../../../../crates/slidegate-redis/tests/store/judge/classical.lua");

pub(crate) struct Classical {
    connections: Vec<MultiplexedConnection>,
    sha: String,
    name: String,
    load: Load,
}

impl Classical {
    pub(crate) async fn connect(url: &str, connections: u16, name: &str, load: Load) -> Result<Self> {
        let address = url.into_connection_info()?;
        let client = Client::open(address.set_tcp_settings(TcpSettings::default().set_nodelay(true)))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let mut opened = Vec::new();
        for _ in 0..connections {
            opened.push(client.get_multiplexed_async_connection_with_config(&config).await?);
        }
        let script = Script::new(SCRIPT);
        let first = opened.first_mut().context("at least one connection")?;
        script.prepare_invoke().load_async(first).await?;
        Ok(Self { connections: opened, sha: script.get_hash().to_owned(), name: name.to_owned(), load })
    }

    fn connection(&self, number: u64) -> MultiplexedConnection {
        let index = number % self.connections.len() as u64;
        self.connections[usize::try_from(index).expect("an index")].clone()
    }

    fn call(&self, request: Request) -> Cmd {
        let Load { window_us, limit, cost, .. } = self.load;
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.sha).arg(1).arg(format!("sg:{{user:{}}}:{}", request.key, self.name));
        call.arg(request.at_us).arg(window_us).arg(limit).arg(cost).arg(unique(request.number));
        call
    }
}

/// Makes members unique in a fleet: 48 random bits, as many as the store's own calls draw.
fn unique(number: u64) -> String {
    format!("{:012x}", Rng::new(number).draw() >> 16)
}

impl AsyncLimiter for Classical {
    async fn decide(&self, request: Request) -> Result<bool> {
        let mut connection = self.connection(request.number);
        let (allowed, _used): (bool, u64) = self.call(request).query_async(&mut connection).await?;
        Ok(allowed)
    }

    async fn decide_many(&self, requests: &[Request]) -> Result<u64> {
        let mut pipeline = Pipeline::with_capacity(requests.len());
        for request in requests {
            pipeline.add_command(self.call(*request));
        }
        let mut connection = self.connection(requests[0].number / requests.len() as u64);
        let answers: Vec<(bool, u64)> = pipeline.query_async(&mut connection).await?;
        Ok(answers.into_iter().map(|(allowed, _used)| u64::from(allowed)).sum())
    }
}
