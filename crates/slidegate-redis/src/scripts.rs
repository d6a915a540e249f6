//! The Lua scripts: one text per verb, joined from the files in `scripts/`.
//!
//! `constants.lua` and `time.lua` come first, then the fast path of `check` and `peek`, then the general part: wide
//! numbers, values, the algorithms, and the verb's own file. Each algorithm is a branch of one function, so that a call
//! only builds the algorithm that it uses.

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
}

/// Lua branches: one file per condition.
macro_rules! branches {
    ($($word:literal $condition:literal $file:literal),+) => {
        concat!(
            $($word, " ", $condition, " then\n", include_str!(concat!("../scripts/", $file, ".lua")), "\n",)+
            "end\n",
        )
    };
}

/// The text of a script: `$fast` is its fast path, `$part` its own files.
macro_rules! joined {
    ($fast:expr, $($part:literal),+) => {
        concat!(
            include_str!("../scripts/constants.lua"),
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
                "elseif" "code == SORTED_SET" "sorted-set"
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
                "elseif" "name == 'gcra'" "fast-gcra"
            ),
            include_str!("../scripts/fast-end.lua"),
        )
    };
}

macro_rules! scripts {
    ($($constant:ident $name:literal $doc:literal ($fast:expr; $($part:literal),+);)+) => {
        $(
            #[doc = $doc]
            pub static $constant: LazyLock<Script> =
                LazyLock::new(|| Script::new($name, joined!($fast, $($part),+)));
        )+

        /// The script of every verb.
        #[must_use]
        pub fn all() -> Vec<&'static Script> {
            vec![$(&$constant),+]
        }
    };
}

scripts! {
    CHECK "check" "Decides and charges." (fast!("true", "false"); "check", "admission");
    PEEK "peek" "Decides without charging." (fast!("false", "false"); "peek", "admission");
    REFUND "refund" "Takes back an admission." (""; "refund", "receipt");
    SETTLE "settle" "Replaces the cost of an admission." (""; "settle", "receipt");
    CREDIT "credit" "Gives back the oldest units." (""; "credit");
    RESET "reset" "Deletes the state of a key." (""; "reset");
    INSPECT "inspect" "Reports the use of every limit." (""; "inspect");
    CHANGE "change" "Applies a live change of a rule." (""; "change");
}

/// [`CHECK`] with a binary reply, which only this crate decodes.
pub(crate) static BINARY_CHECK: LazyLock<Script> =
    LazyLock::new(|| Script::new("check", joined!(fast!("true", "true"), "check", "admission")));

/// [`PEEK`] with a binary reply, which only this crate decodes.
pub(crate) static BINARY_PEEK: LazyLock<Script> =
    LazyLock::new(|| Script::new("peek", joined!(fast!("false", "true"), "peek", "admission")));

/// The secret that receipts are signed with: the stored one, else the caller's.
pub(crate) static SECRET: LazyLock<Script> =
    LazyLock::new(|| Script::new("secret", include_str!("../scripts/secret.lua")));
