//! Parses the dependencies of a `Cargo.toml`. A TOML parser would be a dependency for forty lines.

/// The name of the package; `None` if the root of a workspace has none.
pub(super) fn package_name(manifest: &str) -> Option<&str> {
    let (_, package) = manifest.split_once("[package]")?;
    let line = package.lines().find(|line| line.starts_with("name"))?;
    line.split('"').nth(1)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dependency<'a> {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) name: &'a str,
    pub(super) optional: bool,
    /// For tests, examples and benchmarks only.
    pub(super) dev: bool,
}

/// Dependencies of every kind, one per line or one per table. The root of the workspace is no package, so
/// `[workspace.dependencies]` is not read.
pub(super) fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = "";
    for (index, line) in manifest.lines().enumerate() {
        let text = line.trim();
        let header = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        section = header.unwrap_or(section);
        let name = match header {
            Some(header) => own_table(header),
            None if section.ends_with("dependencies") => {
                text.split_once(['=', '.', ' ']).map(|(name, _)| name)
            }
            None => None,
        };
        let dev = section.contains("dev-dependencies");
        found.extend(name.map(|name| Dependency { line: index + 1, name, optional: false, dev }));
        if section.contains("dependencies")
            && let Some(dependency) = found.last_mut()
        {
            dependency.read(text);
        }
    }
    found
}

/// The dependency with its own table.
fn own_table(header: &str) -> Option<&str> {
    header.rsplit_once("dependencies.").map(|(_, name)| name)
}

impl<'a> Dependency<'a> {
    fn read(&mut self, text: &'a str) {
        self.optional |= text.contains("optional = true");
        // A renamed dependency counts under its real name.
        if let Some((_, rest)) = text.split_once("package = \"") {
            self.name = rest.split('"').next().unwrap_or(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
[package]
name = \"example\"
keywords = [\"a\"]

[dependencies]
anyhow = \"1\"
serde = { workspace = true, optional = true }
text = { package = \"bstr\", version = \"1\" }

[dev-dependencies]
proptest.workspace = true

[target.'cfg(unix)'.dependencies.rustix]
version = \"1\"
features = [
    \"fs\",
]
optional = true

[lints]
workspace = true
";

    #[test]
    fn every_form_is_parsed() {
        let read: Vec<_> = dependencies(MANIFEST)
            .iter()
            .map(|found| (found.line, found.name, found.optional, found.dev))
            .collect();
        assert_eq!(package_name(MANIFEST), Some("example"));
        assert_eq!(package_name("[workspace]\n"), None);
        let expected = [
            (6, "anyhow", false, false),
            (7, "serde", true, false),
            (8, "bstr", false, false),
            (11, "proptest", false, true),
            (13, "rustix", true, false),
        ];
        assert_eq!(read, expected);
    }
}
