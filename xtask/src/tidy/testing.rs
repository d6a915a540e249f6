//! Product code does not use `slidegate::testing`, which is behind a feature.
//!
//! Below `crates/*/src/` only test code may name it: files and folders called `testing` or `tests`, and code after
//! `#[cfg(test)]`.

use super::Finding;
use super::file::File;
use super::mentions::mentions;

pub(super) fn check(file: &File) -> Vec<Finding> {
    if !file.is_rust() || !is_product(&file.path) {
        return Vec::new();
    }
    let tests_from = file.code.find("#[cfg(test)]\nmod ").unwrap_or(file.code.len());
    let named = mentions(&file.code, "slidegate").into_iter();
    let named = named.filter(|mention| mention.name == "testing" && mention.at < tests_from);
    let message = "`slidegate::testing` is for tests; move this into tests, or into a module named `testing`";
    named.map(|mention| Finding::new(mention.line(&file.code), message)).collect()
}

/// Whether a file is product code.
fn is_product(path: &str) -> bool {
    let Some((_, below)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
        return false;
    };
    !below.split(['/', '.']).any(|part| part == "testing" || part == "tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&File::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn product_code_that_names_testing_is_found() {
        for text in ["use slidegate::testing::block_on;", "use slidegate::{Rule, testing::Rng};"] {
            assert_eq!(lines("crates/slidegate-server/src/cli/request/target.rs", text), [1]);
            assert_eq!(lines("crates/slidegate-redis/src/store.rs", text), [1]);
        }
    }

    #[test]
    fn tests_may_name_it() {
        let text = "use slidegate::testing::ExpiringStore;";
        for path in [
            "crates/slidegate-sqlite/src/testing.rs",
            "crates/slidegate-server/src/http/tests/bodies.rs",
            "crates/slidegate-redis/tests/store/judge.rs",
            "bench/src/core/zipf.rs",
        ] {
            assert_eq!(lines(path, text), [0; 0], "{path}");
        }
        let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use slidegate::testing::Rng;\n}";
        assert_eq!(lines("crates/slidegate-redis/src/store.rs", text), [0; 0]);
    }
}
