//! TLS: trusted certificates, and the client certificate.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::options::{OptionsError, RedisOptions};

/// Trusted root certificates from PEM.
pub(crate) fn roots(pem: &[u8]) -> Result<Arc<RootCertStore>, OptionsError> {
    let name = "root_certificates";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(name, pem)? {
        roots.add(certificate).map_err(|error| malformed(name, &error))?;
    }
    Ok(Arc::new(roots))
}

/// The root certificates that the system trusts.
fn system_roots() -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    // Trust stores hold old certificates that rustls cannot parse; the others suffice.
    let (parsed, _) = roots.add_parsable_certificates(loaded.certs);
    if parsed == 0 {
        let why = "the system trusts no certificates; install its package of them, or give root_certificates";
        return Err(why.into());
    }
    Ok(Arc::new(roots))
}

/// The client certificate with its key, which `Debug` does not show.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

impl Identity {
    pub(crate) fn new(pem: &[u8], key: &[u8]) -> Result<Self, OptionsError> {
        let name = "client_certificate";
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| malformed(name, &error))?;
        Ok(Self { chain: certificates(name, pem)?, key: Arc::new(key) })
    }
}

/// The configuration of a connection. It names the cryptography provider, because the process may have installed none,
/// or two.
pub(crate) fn config(options: &RedisOptions) -> Result<Arc<ClientConfig>, String> {
    let roots = options.roots.clone().map_or_else(system_roots, Ok)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { chain, key }) => {
            let config = builder.with_client_auth_cert(chain.clone(), key.clone_key());
            config.map_err(|error| format!("client_certificate: {error}"))?
        }
    };
    Ok(Arc::new(config))
}

fn certificates(name: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, OptionsError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let parsed = parsed.map_err(|error| malformed(name, &error))?;
    if parsed.is_empty() {
        return Err(malformed(name, &"no certificate is in it"));
    }
    Ok(parsed)
}

fn malformed(name: &'static str, why: &impl ToString) -> OptionsError {
    OptionsError::Certificate { name, why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_certificates_are_refused() {
        for pem in [&b""[..], b"hello", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let error = roots(pem).unwrap_err();
            assert!(matches!(error, OptionsError::Certificate { name: "root_certificates", .. }), "{error}");
            let error = Identity::new(pem, pem).unwrap_err();
            assert!(matches!(error, OptionsError::Certificate { name: "client_certificate", .. }), "{error}");
        }
    }
}
