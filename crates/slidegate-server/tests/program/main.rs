//! The program as its users run it: arguments and input in, output and exit status out.

mod command_line;
mod config_files;
mod control_characters;
mod demo;
mod flows;
mod inline_rules;
mod large_files;
mod live_change;
mod malformed_lines;
mod program;
mod readme;
#[path = "../../../slidegate-redis/tests/common/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with other tests, which use the rest")]
mod server;
mod shared_store;
mod worked_examples;
