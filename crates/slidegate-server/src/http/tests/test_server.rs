//! A test server in this process.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use slidegate::RuleSet;
use slidegate::time::{Clock, SystemClock};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::client::{Client, HttpAnswer};
use crate::http::{Drained, Server};
use crate::service::{Service, Settings};

/// Several on any machine, because a test must not depend on connections sharing a thread.
const THREADS: usize = 3;

/// A running server. Dropping it stops it.
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Drained>>,
}

impl TestServer {
    /// Starts a server in memory with these rules (the text of a configuration file).
    pub(super) fn start(rules: &str) -> Self {
        Self::start_with(rules, |_| {})
    }

    /// Starts a server with changed settings.
    pub(super) fn start_with(rules: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let rules = crate::config::Config::parse("test.yaml", rules).unwrap().into_rules();
        Self::start_on(rules, change)
    }

    /// Starts a server with a rule set.
    pub(super) fn start_on(rules: RuleSet, change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_at(Arc::new(SystemClock::new()), rules, change)
    }

    /// Starts a server with a clock.
    pub(super) fn start_at(
        clock: Arc<dyn Clock>,
        rules: RuleSet,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings =
            Settings { http: "127.0.0.1:0".parse().unwrap(), threads: THREADS, ..Settings::default() };
        change(&mut settings);
        let (stop, stopped) = oneshot::channel();
        let (address_sender, address) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let service = Service::open(&settings, rules, Arc::clone(&clock)).await.unwrap();
                let server = Server::bind(&settings, service, clock, None).unwrap();
                address_sender.send(server.address()).unwrap();
                server.run(async { drop(stopped.await) }, pending()).await.unwrap()
            })
        });
        let address = address.recv().expect("the server starts");
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    /// A new connection.
    pub(super) fn connect(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    /// Sends one request on a new connection.
    pub(super) fn ask(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        self.connect().ask(method, path, body)
    }

    /// Sends one POST on a new connection.
    pub(super) fn post(&self, path: &str, body: &str) -> HttpAnswer {
        self.ask("POST", path, body)
    }

    /// Tells the server to stop; does not wait.
    pub(super) fn begin_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).unwrap();
        }
    }

    /// Stops the server and waits for its end.
    pub(super) fn ended(mut self) -> Drained {
        self.begin_to_stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}
