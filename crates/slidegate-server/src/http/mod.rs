//! HTTP: JSON in, JSON out, over any store.
//!
//! The file list is the path of a request: `server` accepts its connection and assigns it to a thread, `connection`
//! serves it under a `watchdog`, on the `fast_path` or with hyper, `access`, `route` and `query` decide whether and where
//! it goes, `collect_body` collects its body within the `buffer_bound`, `body` parses it (`body_errors` explains its
//! mistakes), `handlers` call the service, `reply` and
//! `rate_headers` encode the answer, `problem` encodes errors, and `drain_unread` closes the connection.
//!
//! `admin` and `openapi` serve operators and tools.
//!
//! To add a route, add an arm in [`route`], an arm in [`handlers`] and one in [`openapi`].

mod access;
mod admin;
mod body;
mod body_errors;
mod buffer_bound;
mod collect_body;
mod connection;
mod drain_unread;
mod explanation;
mod fast_path;
mod handlers;
mod memory_return;
mod openapi;
mod problem;
mod query;
mod rate_headers;
mod reply;
mod route;
mod server;
mod watchdog;
mod watched_stream;

#[cfg(test)]
mod tests;

pub(crate) use server::{Drained, Server};
