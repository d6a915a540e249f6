//! Symbols that some code may not use. clippy.toml bans them too where it can; these rules also apply behind an
//! `expect`.

use super::Finding;
use super::code::is_word;
use super::file::File;

struct BannedSymbol {
    symbol: &'static str,
    /// The rule applies below this path,
    under: &'static str,
    /// but not below these.
    except: &'static [&'static str],
    message: &'static str,
}

const BANNED: &[BannedSymbol] = &[
    BannedSymbol {
        symbol: "f32",
        under: "crates/slidegate/src/",
        except: &["crates/slidegate/src/testing"],
        message: "a float in the library; count in whole units and microseconds, products in u128",
    },
    BannedSymbol {
        symbol: "f64",
        under: "crates/slidegate/src/",
        // Serde hands over `headroom: 0.05` as a float; it becomes text at once.
        except: &["crates/slidegate/src/testing", "crates/slidegate/src/serialization.rs"],
        message: "a float in the library; count in whole units and microseconds, products in u128",
    },
    BannedSymbol {
        symbol: "thread::sleep",
        under: "",
        except: &["crates/slidegate/src/time/"],
        message: "a real sleep; take a Clock, in tests a ManualClock",
    },
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    let excepted = |rule: &BannedSymbol| rule.except.iter().any(|path| file.path.starts_with(path));
    let holds = |rule: &&BannedSymbol| file.path.starts_with(rule.under) && !excepted(rule);
    let find = |rule: &'static BannedSymbol| {
        let lines = file.code_lines().filter(|(_, code)| contains_word(code, rule.symbol));
        lines.map(|(line, _)| Finding::new(line, rule.message))
    };
    BANNED.iter().filter(holds).flat_map(find).collect()
}

/// Whether `text` contains `word` as a whole word.
pub(super) fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let runs_on = |outside: Option<char>, end: Option<char>| {
            outside.is_some_and(is_word) && end.is_some_and(is_word)
        };
        let after = &text[at + word.len()..];
        !runs_on(text[..at].chars().next_back(), word.chars().next())
            && !runs_on(after.chars().next(), word.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&File::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn every_symbol_is_found_where_it_is_banned() {
        for rule in BANNED {
            let path = format!("{}store/mod.rs", rule.under);
            assert_eq!(lines(&path, &format!("\nlet x = {}(1);\n", rule.symbol)), [2], "{}", rule.symbol);
            for path in rule.except {
                assert_eq!(lines(path, &format!("{}\n", rule.symbol)), [0; 0], "{}", rule.symbol);
            }
        }
    }

    #[test]
    fn prose_and_longer_names_are_not_symbols() {
        assert_eq!(lines("crates/slidegate/src/rate.rs", "// f64\nlet f64_free = \"f32\";\n"), [0; 0]);
        assert_eq!(lines("bench/src/main.rs", "let share: f64 = 0.5;\n"), [0; 0]);
    }
}
