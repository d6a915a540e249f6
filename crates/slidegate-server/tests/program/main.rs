//! The program as its users run it: arguments and input in, output and exit status out.

#[path = "../../src/tls/tests/certificates.rs"]
#[allow(dead_code, reason = "tests inside the program use the rest")]
mod certificates;
#[path = "../../src/http/tests/client.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "tests inside the program use the rest")]
mod client;
mod command_line;
mod config_files;
mod control_characters;
mod cron;
mod demo;
mod disclosure;
#[path = "../../src/http/tests/fuzzed_bodies.rs"]
#[allow(dead_code, reason = "tests inside the program use the rest")]
mod fuzzed_bodies;
mod given_back;
mod half_sent_bodies;
mod hashed_keys;
mod inline_rules;
mod key_templates;
mod large_files;
mod live_change;
mod local_store;
mod log;
mod malformed_lines;
mod operations;
mod overrides;
mod program;
mod readme;
mod reload;
mod run;
mod schemathesis;
mod serve;
#[path = "../../../slidegate-redis/tests/store/common/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with other tests, which use the rest")]
mod server;
mod server_as_store;
mod server_process;
mod shared_store;
mod shells;
mod signals;
mod snapshots;
mod store_failures;
mod store_settings;
mod tags;
mod take_over;
mod tls;
mod tokens;
mod validate;
mod wait;
mod worked_examples;
