//! Dependencies between crates, read from each `Cargo.toml`.

use super::Finding;
use super::file::File;
use super::manifest::{Dependency, dependencies, package_name};

/// The published libraries.
const LIBRARIES: &[&str] =
    &["slidegate", "slidegate-redis", "slidegate-sqlite", "slidegate-stores", "slidegate-tower"];

/// The crates of the workspace, and which of them each may depend on. Nothing depends on `bench` or `xtask`.
const WORKSPACE: &[(&str, &[&str])] = &[
    ("slidegate", &[]),
    ("slidegate-redis", &["slidegate"]),
    ("slidegate-sqlite", &["slidegate"]),
    ("slidegate-stores", &["slidegate", "slidegate-redis", "slidegate-sqlite"]),
    ("slidegate-tower", &["slidegate"]),
    ("slidegate-server", LIBRARIES),
    ("slidegate-bench", LIBRARIES),
    ("xtask", &[]),
];

/// Crates that the library must not depend on, and whether an optional feature may.
const BANNED: &[(&str, bool)] = &[
    ("anyhow", false),
    ("async-std", false),
    ("axum", false),
    ("hyper", false),
    ("redis", false),
    ("rusqlite", false),
    ("serde", true),
    ("serde_json", true),
    ("smol", false),
    ("tokio", true),
    ("tonic", false),
    ("tower", false),
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    if file.path != "Cargo.toml" && !file.path.ends_with("/Cargo.toml") {
        return Vec::new();
    }
    let Some(package) = package_name(&file.text) else {
        return Vec::new();
    };
    let Some((_, may_use)) = WORKSPACE.iter().find(|(name, _)| *name == package) else {
        let message = format!("no dependencies are defined for `{package}`; add it to {}", file!());
        return vec![Finding::new(1, message)];
    };
    let mut found = Vec::new();
    for Dependency { line, name, optional, dev } in dependencies(&file.text) {
        // Tests depend on their own crate to enable its test features.
        let itself = dev && name == package;
        if WORKSPACE.iter().any(|(own, _)| *own == name) && !may_use.contains(&name) && !itself {
            let remedy = "which is not below it; reverse the dependency";
            found.push(Finding::new(line, format!("`{package}` depends on `{name}`, {remedy}")));
        }
        let excused = |may_be_optional: bool| dev || may_be_optional && optional;
        let banned = BANNED.iter().any(|(other, may_be)| *other == name && !excused(*may_be));
        if package == "slidegate" && banned {
            let remedy = "move the code that needs it to a crate above";
            found.push(Finding::new(line, format!("the library depends on `{name}`; {remedy}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(package: &str, rest: &str) -> Vec<usize> {
        let text = format!("[package]\nname = \"{package}\"\n{rest}");
        check(&File::new("somewhere/Cargo.toml", &text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn dependencies_that_point_up_are_found_in_every_kind_of_table() {
        for kind in
            ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"]
        {
            assert_eq!(lines("slidegate", &format!("[{kind}]\nslidegate-server.workspace = true\n")), [4]);
            assert_eq!(lines("slidegate-redis", &format!("[{kind}]\nslidegate-sqlite = \"1\"\n")), [4]);
            assert_eq!(lines("slidegate-server", &format!("[{kind}.slidegate-bench]\npath = \"x\"\n")), [3]);
            assert_eq!(lines("slidegate-bench", &format!("[{kind}]\nxtask = {{ path = \"x\" }}\n")), [4]);
            assert_eq!(
                lines("slidegate", &format!("[{kind}]\ngate = {{ package = \"slidegate-tower\" }}\n")),
                [4]
            );
        }
    }

    #[test]
    fn banned_dependencies_of_the_library_are_found() {
        for &(name, optional) in BANNED {
            assert_eq!(lines("slidegate", &format!("[dependencies]\n{name} = \"1\"\n")), [4], "{name}");
            let feature = format!("[dependencies]\n{name} = {{ version = \"1\", optional = true }}\n");
            assert_eq!(lines("slidegate", &feature).is_empty(), optional, "{name}");
            let feature = format!("[dependencies.{name}]\nversion = \"1\"\noptional = true\n");
            assert_eq!(lines("slidegate", &feature).is_empty(), optional, "{name}");
            assert_eq!(lines("slidegate", &format!("[dev-dependencies]\n{name} = \"1\"\n")), [0; 0]);
            assert_eq!(lines("slidegate-server", &format!("[dependencies]\n{name} = \"1\"\n")), [0; 0]);
        }
    }

    #[test]
    fn an_unlisted_crate_is_found() {
        assert_eq!(lines("slidegate-surprise", ""), [1]);
        assert_eq!(
            check(&File::new("Cargo.toml", "[workspace]\n[workspace.dependencies]\ntokio = \"1\"\n")),
            []
        );
    }
}
