//! Accepts TLS connections, and follows the files of the certificate.
//!
//! The files are read periodically and compared by content: that finds every way of replacing them, also a swapped
//! symbolic link, without a watch that can be lost. Open connections keep the certificate of their handshake.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use slidegate::time::Clock;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::{Accept, TlsAcceptor};

use super::error::TlsError;
use super::pem_files::PemFiles;
use super::server_config;
use crate::service::TlsFiles;

/// Time between two looks at the files.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// TLS with the certificate in force.
pub(crate) struct Tls {
    files: TlsFiles,
    /// What clients may ask for within TLS (ALPN).
    protocols: &'static [&'static [u8]],
    clock: Arc<dyn Clock>,
    config: ArcSwap<ServerConfig>,
    last_look: Mutex<LastLook>,
}

/// What the last look found.
struct LastLook {
    /// The hash of the files in force.
    in_force: [u8; 32],
    /// Why the files on disk cannot be put in force, and whether that has been reported.
    failure: Option<(String, bool)>,
}

/// A change that is worth a line in the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TlsChange {
    Replaced,
    /// The files on disk are not accepted; those before stay in force.
    Refused(String),
}

impl Tls {
    /// Reads the files; `None` if none are given. `protocols` are those of the wire, as ALPN names them.
    pub(crate) fn open(
        files: &TlsFiles,
        protocols: &'static [&'static [u8]],
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, TlsError> {
        let Some(read) = PemFiles::read(files)? else { return Ok(None) };
        let config = server_config::build(&read, protocols, Arc::clone(&clock))?;
        let last_look = LastLook { in_force: read.hash(), failure: None };
        Ok(Some(Self {
            files: files.clone(),
            protocols,
            clock,
            config: ArcSwap::from_pointee(config),
            last_look: Mutex::new(last_look),
        }))
    }

    /// Begins the handshake of an accepted connection, with the certificate in force now.
    pub(crate) fn accept(&self, stream: TcpStream) -> Accept<TcpStream> {
        TlsAcceptor::from(self.config.load_full()).accept(stream)
    }

    /// Follows the files, and logs their changes.
    pub(crate) async fn watch(&self) -> Infallible {
        loop {
            sleep(LOOK_PERIOD).await;
            match self.look() {
                None => {}
                Some(TlsChange::Replaced) => {
                    tracing::info!("the TLS certificate was replaced; new connections get the new one");
                }
                Some(TlsChange::Refused(why)) => {
                    tracing::error!("{why}; until then the TLS certificate from before stays in force");
                }
            }
        }
    }

    /// Reads the files and puts them in force if they have changed. A failure is reported when the next look finds it
    /// again, once: certificate and key are seldom replaced in the same instant.
    pub(super) fn look(&self) -> Option<TlsChange> {
        let mut last = self.last_look.lock().unwrap_or_else(PoisonError::into_inner);
        let read = match self.changed(last.in_force) {
            Ok(changed) => changed,
            Err(error) => {
                let why = error.to_string();
                let (is_known, is_reported) = match &last.failure {
                    Some((known, reported)) => (*known == why, *reported),
                    None => (false, false),
                };
                let reports = is_known && !is_reported;
                last.failure = Some((why.clone(), is_known));
                return reports.then_some(TlsChange::Refused(why));
            }
        };
        last.failure = None;
        let (hash, config) = read?;
        last.in_force = hash;
        self.config.store(Arc::new(config));
        Some(TlsChange::Replaced)
    }

    /// The hash and configuration of the files, if they differ from those in force.
    fn changed(&self, in_force: [u8; 32]) -> Result<Option<([u8; 32], ServerConfig)>, TlsError> {
        let Some(read) = PemFiles::read(&self.files)? else { return Ok(None) };
        let hash = read.hash();
        if hash == in_force {
            return Ok(None);
        }
        let config = server_config::build(&read, self.protocols, Arc::clone(&self.clock))?;
        Ok(Some((hash, config)))
    }
}
