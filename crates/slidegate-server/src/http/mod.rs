//! HTTP: JSON in, JSON out, over whichever store.
//!
//! The file list is the path of a request: `server` accepts its connection and hands it to a thread, `connection`
//! serves it under the eyes of `watch`, in the `plain` way or else with hyper, `gate` and `route` say whether and where it goes, `body` reads what
//! it asks for (`slow_body` says what is wrong with it), `handlers` ask the service, `reply` and `rate_headers` write
//! the answer, and `problem` is every answer that is none.
//!
//! `admin` and `openapi` answer those who run the server instead of those who ask it.
//!
//! A route is an arm in [`route`], an arm in [`handlers`] and one in [`openapi`].

mod admin;
mod body;
mod connection;
mod explanation;
mod farewell;
mod gate;
mod handlers;
mod openapi;
mod plain;
mod problem;
mod rate_headers;
mod reply;
mod route;
mod server;
mod slow_body;
mod stream;
mod watch;

#[cfg(test)]
mod tests;

pub(crate) use server::Server;
