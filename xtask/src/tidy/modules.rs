//! Dependencies between modules.
//!
//! A dependency is a path in code that begins with the crate: `crate::rule::Limit`. A link in a comment is none.

use super::Finding;
use super::file::File;
use super::mentions::mentions;

const LIBRARY: &str = "crates/slidegate/src/";
const SERVER: &str = "crates/slidegate-server/src/";

enum MayUse {
    Only(&'static [&'static str]),
    /// Every module further up in the table.
    AllAbove,
}

/// The library, from the bottom up.
const LIBRARY_MODULES: &[(&str, MayUse)] = &[
    ("few", MayUse::Only(&[])),
    ("time", MayUse::Only(&[])),
    ("error", MayUse::Only(&[])),
    ("rate", MayUse::Only(&[])),
    ("key", MayUse::Only(&[])),
    ("rule", MayUse::Only(&["rate"])),
    ("charge", MayUse::Only(&["key", "rule"])),
    ("ruleset", MayUse::Only(&["charge", "key", "rate", "rule"])),
    ("receipt", MayUse::Only(&["few", "key", "rule"])),
    ("decision", MayUse::Only(&["charge", "error", "few", "key", "receipt", "rule"])),
    ("serialization", MayUse::Only(&["decision", "rate", "rule"])),
    ("algorithm", MayUse::AllAbove),
    ("store", MayUse::AllAbove),
    ("guard", MayUse::AllAbove),
    ("limiter", MayUse::AllAbove),
    ("testing", MayUse::AllAbove),
];

/// The server, from the top down: a module names only modules of later lines. The wires translate independently and
/// leave every decision to the service.
const SERVER_LAYERS: &[&[&str]] = &[
    &["main"],
    &["cli"],
    &["grpc", "http", "replay", "resp"],
    &["reload", "tls"],
    &["config"],
    &["service"],
    &["metrics", "receipts", "stores", "tokens", "top"],
    &["rules"],
    &["stripe", "text"],
];

/// Modules of the server that never use a store. A replay uses one directly.
const WIRES: &[&str] = &["grpc", "http", "resp"];

/// Paths that name a store: the module of the library, the module of the server, and the crates.
const STORES: &[(&str, &str)] = &[("slidegate", "store"), ("crate", "stores")];
const STORE_CRATES: &[&str] = &["slidegate_redis", "slidegate_sqlite", "slidegate_stores"];

pub(super) fn check(file: &File) -> Vec<Finding> {
    let in_library = file.path.strip_prefix(LIBRARY).filter(|_| file.is_rust());
    let in_server = file.path.strip_prefix(SERVER).filter(|_| file.is_rust());
    match (in_library.map(module), in_server.map(module)) {
        // `lib.rs` lists the modules and re-exports from all of them.
        (Some("lib"), _) => Vec::new(),
        (Some(module), _) => check_library(module, &file.code, file.path.ends_with("/tests.rs")),
        (_, Some(module)) => check_server(module, &file.code),
        _ => Vec::new(),
    }
}

/// The top-level module that a path below `src/` belongs to.
fn module(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or(path)
}

fn check_library(module: &str, code: &str, all_tests: bool) -> Vec<Finding> {
    let Some(place) = LIBRARY_MODULES.iter().position(|(name, _)| *name == module) else {
        return vec![Finding::new(
            1,
            format!("no dependencies are defined for `{module}`; add it to {}", file!()),
        )];
    };
    let (above, from_here) = LIBRARY_MODULES.split_at(place);
    let may_use = |name: &str| match from_here[0].1 {
        MayUse::Only(names) => names.contains(&name),
        MayUse::AllAbove => above.iter().any(|(other, _)| *other == name),
    };
    let tests_from = code.find("#[cfg(test)]\nmod ").unwrap_or(code.len());
    let mut found = Vec::new();
    for mention in mentions(code, "crate") {
        let in_tests = (all_tests || mention.at > tests_from) && mention.name == "testing";
        if mention.name == module || may_use(mention.name) || in_tests {
            continue;
        }
        let message = if LIBRARY_MODULES.iter().any(|(name, _)| *name == mention.name) {
            format!("`{module}` names `{}`, which is not below it; reverse the dependency", mention.name)
        } else {
            format!("`crate::{}` hides its module; name it through the module", mention.name)
        };
        found.push(Finding::new(mention.line(code), message));
    }
    found
}

fn check_server(module: &str, code: &str) -> Vec<Finding> {
    let Some(layer) = SERVER_LAYERS.iter().position(|layer| layer.contains(&module)) else {
        return vec![Finding::new(
            1,
            format!("no dependencies are defined for `{module}`; add it to {}", file!()),
        )];
    };
    let not_below = SERVER_LAYERS[..=layer].concat();
    let mut found: Vec<_> = mentions(code, "crate")
        .into_iter()
        .filter(|mention| mention.name != module && not_below.contains(&mention.name))
        .map(|mention| (mention.line(code), mention.name))
        .collect();
    if WIRES.contains(&module) {
        for &(root, store) in STORES {
            let named = mentions(code, root).into_iter().filter(|mention| mention.name == store);
            found.extend(named.map(|mention| (mention.line(code), mention.name)));
        }
        for &store in STORE_CRATES {
            let named = mentions(code, store).into_iter();
            found.extend(named.map(|mention| (mention.line(code), store)));
        }
    }
    let remedy = "which is not below it; go through the service";
    found
        .into_iter()
        .map(|(line, name)| Finding::new(line, format!("`{module}` names `{name}`, {remedy}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&File::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn dependencies_that_point_up_are_found() {
        for (path, text) in [
            ("time.rs", "use crate::rate::Rate;"),
            ("rule/mod.rs", "use crate::decision::Decision;"),
            ("rule/limit.rs", "fn f() { crate::algorithm::g() }"),
            ("decision/mod.rs", "use crate::algorithm::Usage;"),
            ("receipt.rs", "use crate::charge::Charge;"),
            ("algorithm/gcra.rs", "use crate::store::Memory;"),
            ("store/memory.rs", "use crate::limiter::Limiter;"),
            ("store/memory.rs", "macro_rules! m { () => { $crate::guard::x } }"),
        ] {
            assert_eq!(lines(&format!("{LIBRARY}{path}"), text), [1], "{path}: {text}");
        }
    }

    #[test]
    fn dependencies_that_point_down_pass() {
        for (path, text) in [
            ("rule/limit.rs", "use crate::rate::Rate;\nuse crate::rule::Decimal;"),
            ("algorithm/state.rs", "use crate::receipt::{Place, Position};"),
            ("testing/model.rs", "use crate::{limiter::Limiter, store};"),
            ("rule/mod.rs", "/// See [`crate::algorithm`].\nconst A: &str = \"crate::store::x\";"),
            ("lib.rs", "pub use crate::store::Memory;"),
        ] {
            assert_eq!(lines(&format!("{LIBRARY}{path}"), text), [0; 0], "{path}: {text}");
        }
    }

    #[test]
    fn groups_are_parsed() {
        let text = "use crate::{\n    key::{self, store},\n    rule::Rule,\n    store::Memory,\n};";
        assert_eq!(lines(&format!("{LIBRARY}charge.rs"), text), [4]);
    }

    #[test]
    fn tests_may_use_testing_and_nothing_else_above() {
        let text =
            "#[cfg(test)]\nmod tests {\n    use crate::testing::model;\n    use crate::store::Memory;\n}";
        assert_eq!(lines(&format!("{LIBRARY}algorithm/gcra.rs"), text), [4]);
        assert_eq!(lines(&format!("{LIBRARY}algorithm/gcra.rs"), "use crate::testing::model;"), [1]);
        let text = "use crate::testing::model;\nuse crate::store::Memory;";
        assert_eq!(lines(&format!("{LIBRARY}algorithm/gcra/tests.rs"), text), [2]);
    }

    #[test]
    fn hidden_dependencies_are_found() {
        assert_eq!(lines(&format!("{LIBRARY}time.rs"), "use crate::Limiter;"), [1]);
        assert_eq!(lines(&format!("{LIBRARY}surprise.rs"), ""), [1]);
    }

    #[test]
    fn layers_of_the_server_name_only_layers_below() {
        let ordered = SERVER_LAYERS.concat();
        for (layer, modules) in SERVER_LAYERS.iter().enumerate() {
            for module in *modules {
                let below = SERVER_LAYERS[layer + 1..].concat();
                for other in ordered.iter().filter(|other| *other != module) {
                    let text = format!("\nuse crate::{other}::Thing;");
                    let is_store = WIRES.contains(module) && *other == "stores";
                    let expected: &[usize] = if below.contains(other) && !is_store { &[] } else { &[2] };
                    assert_eq!(lines(&format!("{SERVER}{module}/mod.rs"), &text), expected);
                    assert_eq!(lines(&format!("{SERVER}{module}.rs"), &text), expected);
                }
            }
        }
    }

    #[test]
    fn a_module_of_the_server_without_a_layer_is_found() {
        assert_eq!(lines(&format!("{SERVER}surprise/mod.rs"), ""), [1]);
    }

    #[test]
    fn wires_that_use_a_store_are_found() {
        for (module, expected) in [("http", &[1][..]), ("grpc", &[1]), ("resp", &[1]), ("replay", &[])] {
            for text in [
                "use slidegate::{Rule, store::MemoryStore};",
                "use crate::stores::AnyStore;",
                "use slidegate_redis::RedisStore;",
            ] {
                assert_eq!(lines(&format!("{SERVER}{module}/mod.rs"), text), expected, "{module}: {text}");
            }
        }
    }
}
