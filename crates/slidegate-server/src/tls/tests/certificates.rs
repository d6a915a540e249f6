//! Certificates made by openssl, and clients that use them. The tests of HTTP and of the program use them too.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A TLS connection of a client.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

const CONFIG: &str = "
[ca]
default_ca = own
[own]
database = index.txt
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
policy = names
[names]
commonName = supplied
";
const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

/// A directory with an authority, `ca.pem`, and its certificates. Dropping it removes it.
pub(crate) struct Certificates(PathBuf);

impl Certificates {
    /// An authority without certificates.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("slidegate-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a directory for the test");
        let certificates = Self(folder);
        certificates.write("ca.cnf", CONFIG);
        certificates.write("index.txt", "");
        certificates.write("names", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
        certificates
            .openssl(&format!("req -x509 {KEY} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"));
        certificates
    }

    /// Makes `NAME.pem` and `NAME.key`, valid now.
    pub(crate) fn issue(&self, name: &str) {
        self.issue_for(name, "20200101000000Z", "21000101000000Z");
    }

    /// Makes `NAME.pem` and `NAME.key`, valid between these instants.
    pub(crate) fn issue_for(&self, name: &str, from: &str, until: &str) {
        self.openssl(&format!("req {KEY} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        self.openssl(&format!(
            "ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca.key -extfile names -startdate {from} -enddate \
             {until} -in {name}.csr -out {name}.pem"
        ));
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// The path as text.
    pub(crate) fn text(&self, file: &str) -> String {
        self.path(file).to_str().expect("a path of text").to_owned()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path(file), text).expect("a file for the test");
    }

    /// Replaces certificate and key `to` by those of `from`.
    pub(crate) fn replace(&self, from: &str, to: &str) {
        for extension in ["pem", "key"] {
            let (from, to) = (format!("{from}.{extension}"), format!("{to}.{extension}"));
            std::fs::copy(self.path(&from), self.path(&to)).expect("a copy");
        }
    }

    /// The certificate in a file.
    pub(crate) fn certificate(&self, name: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.path(&format!("{name}.pem"))).expect("a certificate")
    }

    /// Connects as a client that trusts `ca.pem`, with a certificate of its own if `client` is given. Ends with the
    /// handshake, as far as the client sees it.
    pub(crate) fn connect(
        &self,
        address: SocketAddr,
        client: Option<(&Self, &str)>,
    ) -> io::Result<TlsStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate("ca")).expect("an authority");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match client {
            None => config.with_no_client_auth(),
            Some((issuer, name)) => {
                let key = PrivateKeyDer::from_pem_file(issuer.path(&format!("{name}.key"))).expect("a key");
                config.with_client_auth_cert(vec![issuer.certificate(name)], key).expect("a pair")
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
    }

    fn openssl(&self, line: &str) {
        let output = Command::new("openssl").args(line.split_whitespace()).current_dir(&self.0).output();
        let output = output.expect("openssl is installed; Debian: `apt-get install openssl`");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        // A directory that stays behind does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
