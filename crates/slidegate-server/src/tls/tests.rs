//! Certificates, good and bad, and their replacement.

pub(crate) mod certificates;

use std::sync::Arc;

use slidegate::time::{ManualClock, WallClock};

use super::acceptor::TlsChange;
use super::{Tls, TlsError};
use crate::service::TlsFiles;
use certificates::Certificates;

fn files(certificates: &Certificates, name: &str) -> TlsFiles {
    TlsFiles {
        certificate: Some(certificates.path(&format!("{name}.pem"))),
        key: Some(certificates.path(&format!("{name}.key"))),
        client_ca: None,
    }
}

fn open(files: &TlsFiles) -> Result<Option<Tls>, TlsError> {
    Tls::open(files, &[b"http/1.1"], Arc::new(WallClock))
}

/// The error, with the directory left out.
fn error(certificates: &Certificates, files: &TlsFiles) -> String {
    let Err(error) = open(files) else { panic!("{files:?} are accepted") };
    error.to_string().replace(&certificates.text(""), "")
}

#[test]
fn bad_files_are_errors_that_name_setting_file_and_remedy() {
    let certificates = Certificates::new();
    certificates.issue("good");
    certificates.issue("other");
    certificates.issue_for("old", "20200101000000Z", "20210101000000Z");
    certificates.issue_for("young", "20900101000000Z", "21000101000000Z");
    certificates.write("garbage.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    certificates.write("empty.pem", "");
    certificates.write("long.pem", &"a".repeat((1 << 20) + 1));
    let of = |certificate: &str, key: &str, client_ca: Option<&str>| TlsFiles {
        certificate: Some(certificates.path(certificate)),
        key: Some(certificates.path(key)),
        client_ca: client_ca.map(|name| certificates.path(name)),
    };
    assert!(matches!(open(&TlsFiles::default()), Ok(None)), "no TLS");
    assert!(matches!(open(&files(&certificates, "good")), Ok(Some(_))));
    for (files, expected) in [
        (
            of("old.pem", "old.key", None),
            "tls.certificate: `old.pem` holds a certificate that expired on Fri, 01 Jan 2021 00:00:00 GMT; renew it",
        ),
        (
            of("young.pem", "young.key", None),
            "tls.certificate: `young.pem` holds a certificate that is valid only from Sun, 01 Jan 2090 00:00:00 GMT; check the clock, or wait",
        ),
        (
            of("good.pem", "other.key", None),
            "tls.key: `other.key` is not the private key of the certificate in `good.pem`; name the two files of one pair",
        ),
        (
            of("good.key", "good.key", None),
            "tls.certificate: `good.key` holds no certificate in PEM form; name a file with the line `-----BEGIN CERTIFICATE-----`",
        ),
        (
            of("empty.pem", "good.key", None),
            "tls.certificate: `empty.pem` holds no certificate in PEM form; ",
        ),
        (of("garbage.pem", "good.key", None), "tls.certificate: `garbage.pem` is not accepted: "),
        (
            of("long.pem", "good.key", None),
            "tls.certificate: `long.pem` has more than 1048576 bytes; name a PEM file",
        ),
        (
            of("good.pem", "good.pem", None),
            "tls.key: `good.pem` holds no unencrypted private key in PEM form; name a file with the line `-----BEGIN PRIVATE KEY-----`",
        ),
        (
            of("good.pem", "none.key", None),
            "tls.key: `none.key` cannot be read: No such file or directory (os error 2); check the path and its permissions",
        ),
        (
            of("good.pem", "good.key", Some("empty.pem")),
            "tls.client_ca: `empty.pem` holds no certificate in PEM form; ",
        ),
        (
            TlsFiles { key: None, ..of("good.pem", "", None) },
            "tls.key: is missing, and tls.certificate needs it; name its PEM file",
        ),
        (
            TlsFiles { certificate: None, ..of("", "good.key", None) },
            "tls.certificate: is missing, and tls.key needs it; ",
        ),
        (
            TlsFiles { certificate: None, key: None, ..of("", "", Some("ca.pem")) },
            "tls.certificate: is missing, and tls.client_ca needs it; ",
        ),
    ] {
        let error = error(&certificates, &files);
        assert!(error.starts_with(expected), "{error}\ninstead of\n{expected}");
    }
}

/// Before 1970 a wall clock shows zero.
#[test]
fn a_clock_before_1970_is_no_panic() {
    let certificates = Certificates::new();
    certificates.issue("good");
    let clock = Arc::new(ManualClock::at_us(0));
    let opened = Tls::open(&files(&certificates, "good"), &[b"http/1.1"], clock);
    assert!(matches!(opened, Err(TlsError::NotYetValid { .. })));
}

#[test]
fn replaced_files_come_into_force_and_bad_ones_are_reported_once() {
    let certificates = Certificates::new();
    certificates.issue("used");
    certificates.issue("next");
    certificates.issue_for("old", "20200101000000Z", "20210101000000Z");
    let tls = open(&files(&certificates, "used")).unwrap().unwrap();
    assert_eq!(tls.look(), None, "nothing has changed");
    // Half of a replacement is no failure yet, because the other half follows.
    std::fs::copy(certificates.path("next.pem"), certificates.path("used.pem")).unwrap();
    assert_eq!(tls.look(), None);
    certificates.replace("next", "used");
    assert_eq!(tls.look(), Some(TlsChange::Replaced));
    assert_eq!(tls.look(), None);
    certificates.replace("old", "used");
    assert_eq!(tls.look(), None);
    let Some(TlsChange::Refused(why)) = tls.look() else { panic!("a report") };
    assert!(why.contains("used.pem` holds a certificate that expired on "), "{why}");
    assert_eq!((tls.look(), tls.look()), (None, None), "one report");
    std::fs::remove_file(certificates.path("used.pem")).unwrap();
    assert_eq!(tls.look(), None);
    assert!(matches!(tls.look(), Some(TlsChange::Refused(why)) if why.contains("cannot be read")));
    certificates.replace("next", "used");
    assert_eq!(tls.look(), None, "the files in force again");
}
