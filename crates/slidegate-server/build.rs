//! Passes the version of the compiler to the program, for the metric `slidegate_build_info`.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let version = text.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=BUILT_BY_RUSTC={version}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SLIDEGATE_REVISION");
}
