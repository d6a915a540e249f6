//! The Lua scripts, one per verb, for callers in other languages.
//!
//! Load a script once with `SCRIPT LOAD` and call it by its hash:
//!
//! ```text
//! SCRIPT LOAD <Script::text>
//! EVALSHA <Script::sha> 1 sg:{alice}:api "" 4711 5 sliding-log 60 60000000
//! ```
//!
//! This call of [`CHECK`] charges 5 units of a limit of 60 a minute. A comment in each text describes its `KEYS`, its
//! `ARGV` and its reply. If Redis answers `NOSCRIPT`, as after a restart, load the script again.

// A text is joined from the files in `scripts/`. `constants.lua`, `arguments.lua` and `time.lua` come first, then the
// fast path of `check` and `peek`, then the general part: wide numbers, values, the algorithms, and the verb's own file. Each
// algorithm is a branch of one function, so that a call only builds the algorithm that it uses. Named constants are
// replaced by their values.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A script as Redis runs it.
#[derive(Debug)]
pub struct Script {
    /// The verb.
    pub name: &'static str,
    /// The text of the script.
    pub text: &'static str,
    /// The SHA-1 of the text in hexadecimal, as `EVALSHA` takes it.
    pub sha: String,
}

impl Script {
    pub(crate) fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, sha: redis::Script::new(text).get_hash().to_owned() }
    }

    /// A script joined from files. Its text lives as long as the process, as scripts are statics.
    fn joined(name: &'static str, text: &str) -> Self {
        Self::new(name, with_literals(text).leak())
    }
}

/// Replaces named constants by their values. A constant is a line `local NAME = VALUE -- reason`, or several names and
/// values after commas; it stays as a comment, and its value counts up to the next line that defines the name.
///
/// Left as locals they would cost in every call, because each Lua function captures the locals that it uses.
fn with_literals(text: &str) -> String {
    let mut constants = BTreeMap::new();
    let mut replaced = String::with_capacity(text.len());
    for line in text.lines() {
        let (code, comment) = line.split_at(line.find("--").unwrap_or(line.len()));
        if let Some(defined) = definition(code) {
            constants.extend(defined);
            replaced.push_str("-- ");
            replaced.push_str(line.trim_start());
        } else {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let mut rest = code;
            while let Some(start) = rest.find(is_letter) {
                let (before, word) = rest.split_at(start);
                let (word, after) = word.split_at(word.find(|c| !is_letter(c)).unwrap_or(word.len()));
                replaced.push_str(before);
                replaced.push_str(constants.get(word).unwrap_or(&word));
                rest = after;
            }
            replaced.push_str(rest);
            replaced.push_str(comment);
        }
        replaced.push('\n');
    }
    replaced
}

/// The constants that a line of code defines, if it does nothing else.
fn definition(code: &str) -> Option<Vec<(&str, &str)>> {
    let (names, values) = code.trim().strip_prefix("local ")?.split_once(" = ")?;
    let (names, values): (Vec<_>, Vec<_>) = (names.split(", ").collect(), values.split(", ").collect());
    let is_name =
        |name: &&str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_literal = |value: &&str| value.starts_with(|c: char| c.is_ascii_digit() || c == '\'');
    let constant = names.len() == values.len() && names.iter().all(is_name) && values.iter().all(is_literal);
    constant.then(|| names.into_iter().zip(values).collect())
}

/// Lua branches: the files of each condition.
macro_rules! branches {
    ($($word:literal $condition:literal $($file:literal)+),+) => {
        concat!(
            $(
                $word, " ", $condition, " then\n",
                $(include_str!(concat!("../scripts/", $file, ".lua")), "\n",)+
            )+
            "end\n",
        )
    };
}

/// The check of the arguments of other programs. `$takes` says what the verb takes.
macro_rules! arguments {
    (one key) => {
        arguments!("{ keys_min = 1, keys_max = 1, keys = 'one key and one charge', charges = 1 }")
    };
    (charges) => {
        arguments!("{ keys_min = 1, keys_max = 1e6, keys = 'one key for every charge', charges = #KEYS }")
    };
    (states) => {
        arguments!("{ keys_min = 1, keys_max = 1e6, keys = 'the keys of one rule and one charge', charges = 1 }")
    };
    (receipt, $actual:literal) => {
        arguments!(concat!(
            "{ keys_min = 2, keys_max = 1e6, keys = 'one key for every charge, then the record of the receipt', ",
            "charges = #KEYS - 1, receipt = true, actual = ", $actual, " }"
        ))
    };
    ($takes:expr) => {
        concat!("local takes = ", $takes, "\n", include_str!("../scripts/arguments.lua"))
    };
}

/// The text of a script: `$arguments` checks its arguments, `$fast` is its fast path, `$part` its own files.
macro_rules! joined {
    ($arguments:expr, $fast:expr, $($part:literal),+) => {
        concat!(
            include_str!("../scripts/constants.lua"),
            $arguments,
            include_str!("../scripts/time.lua"),
            $fast,
            include_str!("../scripts/wide.lua"),
            include_str!("../scripts/codec.lua"),
            "\nmake_algorithm = function(code)\n",
            branches!(
                "if" "code == SLIDING_LOG" "sliding-log",
                "elseif" "code == COMPACT_LOG" "compact-log",
                "elseif" "code == SLIDING_BUCKETS" "sliding-buckets",
                "elseif" "code == SLIDING_COUNTER" "sliding-counter",
                "elseif" "code == FIXED_WINDOW" "fixed-window",
                "elseif" "code == GCRA" "gcra",
                "elseif" "code == SORTED_SET" "other-units" "sorted-set"
            ),
            "end\n",
            $(include_str!(concat!("../scripts/", $part, ".lua"))),+
        )
    };
}

/// The fast path, for a script that charges or not, and with a binary reply or not.
macro_rules! fast {
    ($charging:literal, $binary_reply:literal) => {
        concat!(
            "local charging, binary_reply = ", $charging, ", ", $binary_reply, "\n",
            include_str!("../scripts/fast-begin.lua"),
            branches!(
                "if" "name == 'sliding-log'" "fast-sliding-log",
                "elseif" "name == 'sliding-counter'" "fast-sliding-counter",
                "elseif" "name == 'compact-log'" "fast-compact-log",
                "elseif" "name == 'sliding-buckets'" "fast-sliding-buckets",
                "elseif" "name == 'fixed-window'" "fast-fixed-window",
                "elseif" "name == 'gcra'" "fast-gcra",
                "elseif" "name == 'sliding-log/sorted-set'" "fast-sorted-set"
            ),
            include_str!("../scripts/fast-end.lua"),
        )
    };
}

macro_rules! scripts {
    ($($constant:ident $name:literal $doc:literal ($arguments:expr, $fast:expr; $($part:literal),+);)+) => {
        $(
            #[doc = $doc]
            pub static $constant: LazyLock<Script> =
                LazyLock::new(|| Script::joined($name, joined!($arguments, $fast, $($part),+)));
        )+

        /// The script of every verb.
        #[must_use]
        pub fn all() -> Vec<&'static Script> {
            vec![$(&$constant),+]
        }
    };
}

scripts! {
    CHECK "check" "Decides and charges." (arguments!(charges), fast!("true", "false"); "check", "admission");
    PEEK "peek" "Decides without charging." (arguments!(charges), fast!("false", "false"); "peek", "admission");
    REFUND "refund" "Takes back an admission." (arguments!(receipt, "false"), ""; "refund", "receipt");
    SETTLE "settle" "Replaces the cost of an admission." (arguments!(receipt, "true"), ""; "settle", "receipt");
    CREDIT "credit" "Gives back the oldest units." (arguments!(one key), ""; "credit");
    RESET "reset" "Deletes the state of a key." (arguments!(one key), ""; "reset");
    INSPECT "inspect" "Reports the use of every limit." (arguments!(one key), ""; "inspect");
    CHANGE "change" "Applies a live change of a rule." (arguments!(states), ""; "change");
}

/// [`CHECK`] with a binary reply, which only this crate decodes. Its arguments are not checked: this crate makes them.
pub(crate) static BINARY_CHECK: LazyLock<Script> =
    LazyLock::new(|| Script::joined("check", joined!("", fast!("true", "true"), "check", "admission")));

/// [`PEEK`] with a binary reply, which only this crate decodes.
pub(crate) static BINARY_PEEK: LazyLock<Script> =
    LazyLock::new(|| Script::joined("peek", joined!("", fast!("false", "true"), "peek", "admission")));

/// Takes back charges of an admission that was not completed, without a record.
pub(crate) static GIVE_BACK: LazyLock<Script> =
    LazyLock::new(|| Script::joined("give-back", joined!("", "", "give-back", "receipt")));

/// The secret that receipts are signed with: the stored one, else the caller's.
pub(crate) static SECRET: LazyLock<Script> =
    LazyLock::new(|| Script::new("secret", include_str!("../scripts/secret.lua")));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_replaced_up_to_their_next_definition() {
        let text = "local A, B = 7, '>I6' -- reason\nlocal a = A + A_B * f(B, 'A') -- A stays\n  local A = 0x1F\nreturn A\n";
        let expected = "-- local A, B = 7, '>I6' -- reason\nlocal a = 7 + A_B * f('>I6', '7') -- A stays\n\
                        -- local A = 0x1F\nreturn 0x1F\n";
        assert_eq!(with_literals(text), expected);
        let other = "local a = 7\nlocal A = f(1)\nlocal A, B = 1\nA = 3\n";
        assert_eq!(with_literals(other), other);
    }

    #[test]
    fn no_constant_is_left_in_a_script() {
        for script in all() {
            let code = script.text.lines().map(|line| line.split("--").next().unwrap_or_default());
            for line in code {
                assert!(
                    !line.contains("SECOND_US") && !line.contains("BODY_BYTES"),
                    "{}: {line}",
                    script.name
                );
            }
        }
    }
}
