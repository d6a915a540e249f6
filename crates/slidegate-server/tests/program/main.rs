//! The program as its users run it: arguments and input in, output and exit status out.

#[path = "../../src/http/tests/client.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "tests inside the program use the rest")]
mod client;
mod command_line;
mod config_files;
mod control_characters;
mod demo;
mod flows;
mod inline_rules;
mod large_files;
mod live_change;
mod malformed_lines;
#[path = "../../src/http/tests/mischief.rs"]
#[allow(dead_code, reason = "tests inside the program use the rest")]
mod mischief;
mod program;
mod readme;
mod reloading;
mod schemathesis;
mod serve;
#[path = "../../../slidegate-redis/tests/common/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with other tests, which use the rest")]
mod server;
mod serving;
mod shared_store;
mod validate;
mod worked_examples;
