//! TLS for the wires: turns an accepted TCP connection into a TLS stream.
//!
//! `pem_files` reads the certificate, the key and the authorities of clients, `server_config` checks them and makes the
//! configuration of rustls, [`Tls`] accepts connections with it and follows the files.
//!
//! Handshakes have no time limit of their own; the wire sets one, as for the first request.

mod acceptor;
mod error;
mod pem_files;
mod server_config;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use acceptor::Tls;
pub(crate) use error::TlsError;
