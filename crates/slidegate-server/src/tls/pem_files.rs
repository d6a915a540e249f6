//! Reads the PEM files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ring::digest::{Context, SHA256};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::{TlsError, TlsFile};
use crate::service::TlsFiles;

/// Largest file: bundles of public authorities have a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The content of the PEM files.
pub(super) struct PemFiles {
    pub(super) certificate: PemFile,
    pub(super) key: PemFile,
    pub(super) client_ca: Option<PemFile>,
}

/// One PEM file.
pub(super) struct PemFile {
    pub(super) file: TlsFile,
    bytes: Vec<u8>,
}

impl PemFiles {
    /// Reads the files; `None` if none are given.
    pub(super) fn read(files: &TlsFiles) -> Result<Option<Self>, TlsError> {
        let missing = |missing, given| Err(TlsError::Missing { missing, given });
        let (certificate, key) = match (&files.certificate, &files.key, &files.client_ca) {
            (Some(certificate), Some(key), _) => (certificate, key),
            (Some(_), None, _) => return missing("tls.key", "tls.certificate"),
            (None, Some(_), _) => return missing("tls.certificate", "tls.key"),
            (None, None, Some(_)) => return missing("tls.certificate", "tls.client_ca"),
            (None, None, None) => return Ok(None),
        };
        Ok(Some(Self {
            certificate: PemFile::read("tls.certificate", certificate)?,
            key: PemFile::read("tls.key", key)?,
            client_ca: files
                .client_ca
                .as_deref()
                .map(|path| PemFile::read("tls.client_ca", path))
                .transpose()?,
        }))
    }

    /// A hash of all the content.
    pub(super) fn hash(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        for file in [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()].into_iter().flatten()
        {
            context.update(&(file.bytes.len() as u64).to_le_bytes());
            context.update(&file.bytes);
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(context.finish().as_ref());
        hash
    }
}

impl PemFile {
    fn read(setting: &'static str, path: &Path) -> Result<Self, TlsError> {
        let file = TlsFile { setting, path: path.to_owned() };
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
        match read {
            Err(why) => Err(TlsError::Unreadable { file, why }),
            Ok(_) if bytes.len() as u64 > FILE_BYTES_MAX => {
                Err(TlsError::TooLong { file, bytes_max: FILE_BYTES_MAX })
            }
            Ok(_) => Ok(Self { file, bytes }),
        }
    }

    /// Its certificates, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        certificates.ok().filter(|certificates| !certificates.is_empty()).ok_or_else(|| TlsError::NotPem {
            file: self.file.clone(),
            what: "certificate",
            label: "CERTIFICATE",
        })
    }

    /// Its first private key.
    pub(super) fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|_| TlsError::NotPem {
            file: self.file.clone(),
            what: "unencrypted private key",
            label: "PRIVATE KEY",
        })
    }
}
