//! Why TLS cannot be served with the given files.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::text::escaped;

/// A file and the setting that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFile {
    pub(super) setting: &'static str,
    pub(super) path: PathBuf,
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.setting, escaped(&self.path.display().to_string()))
    }
}

/// Why TLS cannot be served with the given files.
#[derive(Debug, Error)]
pub(crate) enum TlsError {
    #[error("{missing}: is missing, and {given} needs it; name its PEM file")]
    Missing { missing: &'static str, given: &'static str },
    #[error("{file} cannot be read: {why}; check the path and its permissions")]
    Unreadable { file: TlsFile, why: io::Error },
    #[error("{file} has more than {bytes_max} bytes; name a PEM file")]
    TooLong { file: TlsFile, bytes_max: u64 },
    #[error("{file} holds no {what} in PEM form; name a file with the line `-----BEGIN {label}-----`")]
    NotPem { file: TlsFile, what: &'static str, label: &'static str },
    #[error(
        "{key} is not the private key of the certificate in `{certificate}`; name the two files of one pair"
    )]
    Mismatched { key: TlsFile, certificate: String },
    #[error("{file} holds a certificate that expired on {date}; renew it")]
    Expired { file: TlsFile, date: String },
    #[error("{file} holds a certificate that is valid only from {date}; check the clock, or wait")]
    NotYetValid { file: TlsFile, date: String },
    #[error("{file} is not accepted: {why}; name a file that TLS 1.2 and 1.3 can use")]
    Refused { file: TlsFile, why: String },
}

impl TlsError {
    /// The setting whose value is wrong.
    pub(crate) fn setting(&self) -> &'static str {
        match self {
            Self::Missing { given, .. } => given,
            Self::Mismatched { key, .. } => key.setting,
            Self::Unreadable { file, .. }
            | Self::TooLong { file, .. }
            | Self::NotPem { file, .. }
            | Self::Expired { file, .. }
            | Self::NotYetValid { file, .. }
            | Self::Refused { file, .. } => file.setting,
        }
    }
}
