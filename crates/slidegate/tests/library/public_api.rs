//! The list of public signatures in `tests/public_api.txt`: a change of the interface shows up in review.
//!
//! The list is read off the source as rustfmt lays it out, not off a compiler: an item begins at a line, and a block
//! ends at a brace in the column where it began.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const UPDATE: &str = "SLIDEGATE_BLESS=1 cargo test -p slidegate --test library public_api";

#[test]
fn the_public_interface_is_the_one_on_record() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let record = root.join("tests/public_api.txt");
    let found = signatures_under(&root.join("src"));
    if std::env::var_os("SLIDEGATE_BLESS").is_some() {
        fs::write(&record, found.join("\n") + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(&record).unwrap_or_default();
    let recorded: Vec<String> = recorded.lines().map(str::to_owned).collect();
    let difference = difference(&recorded, &found);
    assert!(
        difference.is_empty(),
        "the public interface differs from tests/public_api.txt:\n{}\nif that is wanted, update it: {UPDATE}",
        difference.join("\n")
    );
}

/// The lines that are in only one of two lists.
fn difference(recorded: &[String], found: &[String]) -> Vec<String> {
    let gone = recorded.iter().filter(|line| !found.contains(line)).map(|line| format!("- {line}"));
    let new = found.iter().filter(|line| !recorded.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// The signatures of all files, sorted: `module | impl or trait | item`.
fn signatures_under(source: &Path) -> Vec<String> {
    let mut found = BTreeSet::new();
    for file in files_under(source) {
        let module = module_of(file.strip_prefix(source).unwrap());
        let text = fs::read_to_string(&file).unwrap();
        found.extend(signatures(&text).into_iter().map(|item| format!("{module} | {item}")));
    }
    found.into_iter().collect()
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_under(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files
}

/// `store/memory/mod.rs` is `slidegate::store::memory`.
fn module_of(file: &Path) -> String {
    let parts = file.with_extension("");
    let parts = parts.iter().map(|part| part.to_str().unwrap());
    let named = parts.filter(|part| !["mod", "lib"].contains(part));
    std::iter::once("slidegate").chain(named).collect::<Vec<_>>().join("::")
}

/// The public items of one file, each on one line.
fn signatures(text: &str) -> Vec<String> {
    let lines = code_lines(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let public = lines[at].starts_with("pub ");
        let (header, after) = header(&lines, at);
        let block = if header.ends_with('{') { block(&lines, at, after) } else { &[] };
        at = after + block.len();
        let named = header.trim_end_matches('{').trim_end().to_owned();
        if public {
            found.push(without_value(&named));
        }
        let kind = |kind: &str| named.strip_prefix("pub ").is_some_and(|item| item.starts_with(kind));
        if named.starts_with("impl") || kind("struct ") {
            found.extend(members(block, |member| member.starts_with("pub "), &named));
        } else if kind("trait ") {
            found.extend(members(block, |_| true, &named));
        } else if kind("enum ") {
            let variants: Vec<&str> = block[..block.len() - 1].iter().map(|line| line.trim()).collect();
            found.push(format!("{named} | {}", tidy(&variants.join(" "))));
        }
    }
    found
}

/// The members of a block that are wanted, without their bodies.
fn members(block: &[&str], wanted: impl Fn(&str) -> bool, owner: &str) -> Vec<String> {
    let (mut found, mut at) = (Vec::new(), 0);
    // The last line is the brace that ends the block.
    while at + 1 < block.len() {
        let (header, after) = header(block, at);
        let body = if header.ends_with('{') { self::block(block, at, after).len() } else { 0 };
        if wanted(block[at].trim()) {
            let item = header.trim_end_matches(['{', ';', ',']).trim_end();
            found.push(format!("{owner} | {}", without_value(item)));
        }
        at = after + body;
    }
    found
}

/// The lines without comments, attributes and test code.
fn code_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let line = lines[at].trim();
        if line.is_empty() || line.starts_with("//") {
            at += 1;
        } else if line.starts_with("#[") || line.starts_with("#![") {
            let for_tests = line == "#[cfg(test)]" || line == "#[cfg(doctest)]";
            while !lines[at].trim_end().ends_with(']') {
                at += 1;
            }
            at += 1;
            if for_tests {
                let (header, after) = header(&lines, at);
                at = after + if header.ends_with('{') { block(&lines, at, after).len() } else { 0 };
            }
        } else {
            kept.push(lines[at]);
            at += 1;
        }
    }
    kept
}

/// The beginning of an item on one line, and where it ends: at its brace or semicolon, or at the comma of a field.
fn header(lines: &[&str], start: usize) -> (String, usize) {
    let first = lines[start].trim();
    let item = first.trim_start_matches("pub ");
    // The braces of a `use` are part of it, and so are those of a value.
    let whole = ["use ", "const ", "static ", "type "].iter().any(|kind| item.starts_with(kind))
        && !item.starts_with("const fn");
    let field = !first.contains('(') && first.ends_with(',');
    let ends = |line: &str| {
        let line = line.trim_end();
        line.ends_with(';') || field || (!whole && (line.ends_with('{') || line.ends_with('}')))
    };
    let length = lines[start..].iter().position(|line| ends(line)).unwrap_or(lines.len() - start - 1) + 1;
    let joined: Vec<&str> = lines[start..start + length].iter().map(|line| line.trim()).collect();
    (tidy(&joined.join(" ")), start + length)
}

/// The lines from `inside` to the brace in the column of the item, that brace included.
fn block<'l, 't>(lines: &'l [&'t str], item: usize, inside: usize) -> &'l [&'t str] {
    let column = lines[item].len() - lines[item].trim_start().len();
    let ends = |line: &str| line.trim_start().starts_with('}') && line.find('}') == Some(column);
    let length =
        lines[inside..].iter().position(|line| ends(line)).map_or(lines.len() - inside, |last| last + 1);
    &lines[inside..inside + length]
}

/// The name and type of a constant, without its value.
fn without_value(item: &str) -> String {
    let constant = item.contains("const ") && !item.contains("fn ");
    let end = if constant { item.find(" = ").unwrap_or(item.len()) } else { item.len() };
    item[..end].trim_end_matches(';').to_owned()
}

/// The same on one line as rustfmt would write it.
fn tidy(item: &str) -> String {
    let mut item = item.to_owned();
    for (wide, narrow) in [("( ", "("), (", )", ")"), (" )", ")"), ("< ", "<"), (", >", ">"), (", }", " }")] {
        item = item.replace(wide, narrow);
    }
    if item.starts_with("pub use ") { item.replace("{ ", "{").replace(" }", "}") } else { item }
}

#[test]
fn signatures_are_read_off_the_source() {
    let text = r#"
//! pub fn in_a_comment();
use std::fmt;
pub use few::{
    First,
    Second,
};
mod few;
pub(crate) fn hidden() {}
/// Documented.
#[derive(Debug)]
pub struct Point<'a> {
    /// pub nothing
    pub across: u64,
    #[expect(
        dead_code, reason = "pub"
    )]
    pub(crate) down: u64,
    name: &'a str,
}
pub struct Unit(u64);
pub const MAX: usize = {
    64
};
pub enum Kind {
    #[error(
        "pub fn"
    )]
    Some {
        /// Count.
        count: usize,
    },
    None,
}
impl<'a> Point<'a> {
    pub const ZERO: u64 = 0;
    pub fn new(
        across: u64,
        down: u64,
    ) -> Self {
        let point = Self { across, down };
        point
    }
    fn private(&self) {
        pub_like();
    }
    pub(super) fn inner(&self) {}
    pub async fn later<T>(&self) -> T
    where
        T: Default,
    {
        T::default()
    }
}
pub trait Shape: Send {
    const SIDES: usize = 1;
    type Edge;
    fn area(&self) -> u64;
    fn sides(&self) -> usize {
        Self::SIDES
    }
}
#[cfg(test)]
pub mod tests {
    pub fn unseen() {}
}
#[cfg(test)]
pub mod more_tests;
pub fn last() -> u64 {
    1
}
"#;
    let expected = [
        "pub use few::{First, Second}",
        "pub struct Point<'a>",
        "pub struct Point<'a> | pub across: u64",
        "pub struct Unit(u64)",
        "pub const MAX: usize",
        "pub enum Kind",
        "pub enum Kind | Some { count: usize }, None,",
        "impl<'a> Point<'a> | pub const ZERO: u64",
        "impl<'a> Point<'a> | pub fn new(across: u64, down: u64) -> Self",
        "impl<'a> Point<'a> | pub async fn later<T>(&self) -> T where T: Default,",
        "pub trait Shape: Send",
        "pub trait Shape: Send | const SIDES: usize",
        "pub trait Shape: Send | type Edge",
        "pub trait Shape: Send | fn area(&self) -> u64",
        "pub trait Shape: Send | fn sides(&self) -> usize",
        "pub fn last() -> u64",
    ];
    assert_eq!(signatures(text), expected);
    let (recorded, found) = (vec!["a".to_owned(), "b".to_owned()], vec!["b".to_owned(), "c".to_owned()]);
    assert_eq!(difference(&recorded, &found), ["- a", "+ c"]);
}
