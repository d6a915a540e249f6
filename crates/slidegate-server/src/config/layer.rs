//! Settings as one source gives them, and how the sources go over each other: flags over environment over file
//! over defaults.

use std::net::SocketAddr;
use std::time::Duration;

use super::mistake::Source;
use crate::service::{Bounds, HeaderSet, Secret, Settings};
use slidegate_stores::StoreUrl;

/// A value, and who gave it.
#[derive(Debug, Clone)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

/// Declares the settings once: a source that may give each of them, and what wins.
macro_rules! layer {
    ($($field:ident: $type:ty,)*) => {
        /// Settings as one source gives them; each is good in itself, and none need be there.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct Layer {
            $(pub(crate) $field: Option<Given<$type>>,)*
        }

        impl Layer {
            /// These settings, and those of `below` where there are none.
            #[must_use]
            pub(crate) fn over(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)* }
            }
        }
    };
}

layer! {
    http: SocketAddr,
    threads: usize,
    store: StoreUrl,
    deadline: Duration,
    memory_budget: u64,
    token: Secret,
    hosts: Vec<String>,
    headers: Vec<HeaderSet>,
    inline_rules: bool,
    body_bytes: usize,
    header_bytes: usize,
    connections: usize,
    request_time: Duration,
    idle_time: Duration,
    drain_time: Duration,
}

impl Settings {
    /// What the server runs with: flags over environment over file over defaults.
    pub(crate) fn layered(flags: Layer, environment: Layer, file: Layer) -> Self {
        let layer = flags.over(environment).over(file);
        let default = Self::default();
        let bounds = default.bounds;
        let deadline = value(layer.deadline, default.deadline);
        Self {
            http: value(layer.http, default.http),
            threads: value(layer.threads, default.threads),
            store: value(layer.store, default.store),
            deadline,
            memory_budget: layer.memory_budget.map(|given| given.value).or(default.memory_budget),
            token: layer.token.map(|given| given.value).or(default.token),
            hosts: value(layer.hosts, default.hosts),
            headers: value(layer.headers, default.headers),
            bounds: Bounds {
                body_bytes: value(layer.body_bytes, bounds.body_bytes),
                header_bytes: value(layer.header_bytes, bounds.header_bytes),
                connections: value(layer.connections, bounds.connections),
                request_time: value(layer.request_time, bounds.request_time),
                idle_time: value(layer.idle_time, bounds.idle_time),
                drain_time: value(layer.drain_time, bounds.drain_time),
            },
        }
    }
}

fn value<T>(given: Option<Given<T>>, default: T) -> T {
    given.map_or(default, |given| given.value)
}

#[cfg(test)]
mod tests {
    use super::super::setting;
    use super::*;

    fn layer(settings: &[(&str, &str)]) -> Layer {
        let mut layer = Layer::default();
        for (field, text) in settings {
            setting::set(&mut layer, field, &[(*text).to_owned()], &Source::Flag(format!("--{field}")))
                .unwrap();
        }
        layer
    }

    #[test]
    fn flags_go_over_the_environment_over_the_file_over_defaults() {
        let flags = layer(&[("http", "127.0.0.1:1")]);
        let environment = layer(&[("http", "127.0.0.1:2"), ("deadline", "20ms")]);
        let file = layer(&[("http", "127.0.0.1:3"), ("deadline", "30ms"), ("bounds.connections", "7")]);
        let settings = Settings::layered(flags, environment, file);
        assert_eq!(settings.http.port(), 1);
        assert_eq!(settings.deadline, Duration::from_millis(20));
        assert_eq!(settings.bounds.connections, 7);
        assert_eq!(settings.bounds.body_bytes, Bounds::default().body_bytes);
        assert_eq!(settings.headers, [HeaderSet::Draft11]);
    }
}
