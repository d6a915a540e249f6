//! The Lua scripts, one per verb, for callers in other languages.
//!
//! Load a script once with `SCRIPT LOAD` and call it by its hash:
//!
//! ```text
//! SCRIPT LOAD <Script::text>
//! EVALSHA <Script::sha> 1 sg:{alice}:api "" 4711 5 sliding-log 60 60000000
//! ```
//!
//! This call of [`CHECK`] charges 5 units of a limit of 60 a minute. The comment at the top of each text is its contract:
//! `KEYS`, `ARGV`, the reply, errors, TTL, clock, and an example. If Redis answers `NOSCRIPT`, as after a restart, load the
//! script again.
//!
//! [`short`] has scripts of at most 150 lines for one charge of one limit of one algorithm. They answer as [`CHECK`] and
//! [`PEEK`] do, or with an error that names those.

// A text is joined from the files in `scripts/`: the contract, then `constants.lua`, `arguments.lua` and `time.lua`, then
// the fast path of `check` and `peek`, then the general part: wide numbers, values, the algorithms, and the verb's own
// file. Each algorithm is a branch of one function, so that a call only builds the algorithm that it uses. Named
// constants are replaced by their values.

mod joining;
mod shorter;

use std::sync::LazyLock;

use joining::{Constants, with_literals};
pub use shorter::short;

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
        Self::new(name, with_literals(text, Constants::new()).leak())
    }
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

/// The contract of a verb that writes or only reads.
macro_rules! contract {
    ($verb:literal, $access:literal) => {
        concat!(
            include_str!(concat!("../scripts/contract/", $verb, ".lua")),
            include_str!("../scripts/contract/errors.lua"),
            include_str!(concat!("../scripts/contract/end-", $access, ".lua")),
            "\n",
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

/// The text of a script: `$contract` explains it, `$arguments` checks its arguments, `$fast` is its fast path, `$part` its
/// own files.
macro_rules! joined {
    ($contract:expr, $arguments:expr, $fast:expr, $($part:literal),+) => {
        concat!(
            $contract,
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

/// The fast path, for a script that charges or not, and with a text-safe or a binary reply.
macro_rules! fast {
    ($charging:literal, text) => {
        fast!($charging, "false", "fast-reply-text")
    };
    ($charging:literal, binary) => {
        fast!($charging, "true", "fast-reply-binary")
    };
    ($charging:literal, $binary_reply:literal, $reply:literal) => {
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
            include_str!("../scripts/fast-write.lua"),
            include_str!(concat!("../scripts/", $reply, ".lua")),
            include_str!("../scripts/fast-end.lua"),
        )
    };
}

macro_rules! scripts {
    ($($constant:ident $name:literal $access:literal $doc:literal ($arguments:expr, $fast:expr; $($part:literal),+);)+) => {
        $(
            #[doc = $doc]
            pub static $constant: LazyLock<Script> = LazyLock::new(|| {
                Script::joined($name, joined!(contract!($name, $access), $arguments, $fast, $($part),+))
            });
        )+

        /// The script of every verb.
        #[must_use]
        pub fn all() -> Vec<&'static Script> {
            vec![$(&$constant),+]
        }
    };
}

scripts! {
    CHECK "check" "writes" "Decides and charges." (arguments!(charges), fast!("true", text); "admission");
    PEEK "peek" "reads" "Decides without charging." (arguments!(charges), fast!("false", text); "admission");
    REFUND "refund" "writes" "Takes back an admission." (arguments!(receipt, "false"), ""; "refund", "receipt");
    SETTLE "settle" "writes" "Replaces the cost of an admission."
        (arguments!(receipt, "true"), ""; "settle", "receipt");
    CREDIT "credit" "writes" "Gives back the oldest units." (arguments!(one key), ""; "credit");
    RESET "reset" "writes" "Deletes the state of a key." (arguments!(one key), ""; "reset");
    INSPECT "inspect" "reads" "Reports the use of every limit." (arguments!(one key), ""; "inspect");
    CHANGE "change" "writes" "Applies a live change of a rule." (arguments!(states), ""; "change");
}

/// [`CHECK`] with a binary reply, which only this crate decodes. Its arguments are not checked: this crate makes them.
pub(crate) static BINARY_CHECK: LazyLock<Script> =
    LazyLock::new(|| Script::joined("check", joined!("", "", fast!("true", binary), "admission")));

/// [`PEEK`] with a binary reply, which only this crate decodes.
pub(crate) static BINARY_PEEK: LazyLock<Script> =
    LazyLock::new(|| Script::joined("peek", joined!("", "", fast!("false", binary), "admission")));

/// Takes back charges of an admission that was not completed, without a record.
pub(crate) static GIVE_BACK: LazyLock<Script> =
    LazyLock::new(|| Script::joined("give-back", joined!("", "", "", "give-back", "receipt")));

/// The secret that receipts are signed with: the stored one, else the caller's.
pub(crate) static SECRET: LazyLock<Script> =
    LazyLock::new(|| Script::new("secret", include_str!("../scripts/secret.lua")));

#[cfg(test)]
mod tests {
    use super::*;

    /// One or two screens, before any code.
    const CONTRACT_LINES_MAX: usize = 60;

    #[test]
    fn the_contract_of_every_script_is_at_its_top() {
        for script in all() {
            let contract: Vec<&str> = script
                .text
                .lines()
                .take_while(|line| line.starts_with("--"))
                .take(CONTRACT_LINES_MAX)
                .collect();
            let contract = contract.join("\n");
            let first = format!("-- slidegate, script `{}`: ", script.name);
            assert!(contract.starts_with(&first), "{contract}");
            for part in ["evalsha $sha", "KEYS", "ARGV", "Reply", "Errors", "TTL", "Clock", "Cluster"] {
                assert!(contract.contains(part), "{}: {part} is missing in\n{contract}", script.name);
            }
        }
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
