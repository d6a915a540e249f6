//! Makes the configuration of rustls, and checks what rustls checks only when a client connects, or never.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use slidegate::time::Clock;

use super::error::{TlsError, TlsFile};
use super::pem_files::{PemFile, PemFiles};

/// Makes the configuration of a server.
pub(super) fn build(
    files: &PemFiles,
    protocols: &[&[u8]],
    clock: Arc<dyn Clock>,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let PemFiles { certificate, key, client_ca } = files;
    let (chain, private_key) = (certificate.certificates()?, key.private_key()?);
    let time = TimeOfClock(clock);
    for one in &chain {
        check_validity(one, &certificate.file, time.now(), &provider)?;
    }
    let builder = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(time))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&certificate.file, &error))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(client_ca) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities(client_ca)?, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| refused(&client_ca.file, &error))?)
        }
    };
    let mut config = builder.with_single_cert(chain, private_key).map_err(|error| match error {
        Error::InconsistentKeys(_) => TlsError::Mismatched {
            key: key.file.clone(),
            certificate: certificate.file.path.display().to_string(),
        },
        Error::InvalidCertificate(_) => refused(&certificate.file, &error),
        _ => refused(&key.file, &error),
    })?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

fn authorities(file: &PemFile) -> Result<Arc<RootCertStore>, TlsError> {
    let mut authorities = RootCertStore::empty();
    for certificate in file.certificates()? {
        authorities.add(certificate).map_err(|error| refused(&file.file, &error))?;
    }
    Ok(Arc::new(authorities))
}

/// Checks the dates of a certificate. rustls leaves those of the server's own to the clients.
fn check_validity(
    certificate: &CertificateDer<'_>,
    file: &TlsFile,
    now: UnixTime,
    provider: &CryptoProvider,
) -> Result<(), TlsError> {
    let parsed = ParsedCertificate::try_from(certificate).map_err(|error| refused(file, &error))?;
    let algorithms = provider.signature_verification_algorithms.all;
    // Nothing is trusted here, so the check always fails; but it looks at the dates first.
    let checked =
        verify_server_cert_signed_by_trust_anchor(&parsed, &RootCertStore::empty(), &[], now, algorithms);
    match checked {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Err(TlsError::Expired { file: file.clone(), date: date(not_after) })
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
            Err(TlsError::NotYetValid { file: file.clone(), date: date(not_before) })
        }
        _ => Ok(()),
    }
}

fn date(time: UnixTime) -> String {
    let since_epoch = Duration::from_secs(time.as_secs());
    // A certificate may be valid until a year that HTTP dates do not have.
    match time.as_secs() {
        0..253_402_300_800 => httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since_epoch),
        seconds => format!("{seconds} seconds since 1970"),
    }
}

fn refused(file: &TlsFile, why: &impl ToString) -> TlsError {
    TlsError::Refused { file: file.clone(), why: why.to_string() }
}

/// The time that rustls sees. Its own reading of the system clock panics before 1970.
struct TimeOfClock(Arc<dyn Clock>);

impl TimeOfClock {
    fn now(&self) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_micros(self.0.now_us()))
    }
}

impl fmt::Debug for TimeOfClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TimeOfClock")
    }
}

impl TimeProvider for TimeOfClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.now())
    }
}
