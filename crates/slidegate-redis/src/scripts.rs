//! The scripts: one text per verb, joined from the files in `scripts/`.

use std::sync::LazyLock;

/// A script as Redis runs it.
#[derive(Debug)]
pub struct Script {
    /// The verb.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The name that Redis knows the text by, once it has seen it: its SHA-1 in hexadecimal.
    pub sha: String,
}

impl Script {
    pub(crate) fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, sha: redis::Script::new(text).get_hash().to_owned() }
    }
}

/// Lua that takes one of several files, by its condition.
macro_rules! choice {
    ($($word:literal $condition:literal $file:literal),+) => {
        concat!(
            $($word, " ", $condition, " then\n", include_str!(concat!("../scripts/", $file, ".lua")), "\n",)+
            "end\n",
        )
    };
}

/// What every script begins with: time, wide numbers, values, and the algorithms, each of which is only made when
/// it is asked for.
macro_rules! joined {
    ($first:expr, $($part:literal),+) => {
        concat!(
            include_str!("../scripts/time.lua"),
            $first,
            include_str!("../scripts/wide.lua"),
            include_str!("../scripts/codec.lua"),
            "\nalgorithm = function(code)\n",
            choice!(
                "if" "code == 1" "sliding-log",
                "elseif" "code == 2" "compact-log",
                "elseif" "code == 3" "sliding-buckets",
                "elseif" "code == 4" "sliding-counter",
                "elseif" "code == 5" "fixed-window",
                "elseif" "code == 6" "gcra",
                "elseif" "code == 7" "sorted-set"
            ),
            "end\n",
            $(include_str!(concat!("../scripts/", $part, ".lua"))),+
        )
    };
}

/// The common case, without a function. It is told whether to charge, and whether to answer in short.
macro_rules! fast {
    ($charges:literal, $short:literal) => {
        concat!(
            "local charges, short = ", $charges, ", ", $short, "\n",
            include_str!("../scripts/fast.lua"),
            choice!(
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
    ($($constant:ident $name:literal $doc:literal ($first:expr; $($part:literal),+);)+) => {
        $(
            #[doc = $doc]
            pub static $constant: LazyLock<Script> =
                LazyLock::new(|| Script::new($name, joined!($first, $($part),+)));
        )+

        /// All of them.
        #[must_use]
        pub fn all() -> Vec<&'static Script> {
            vec![$(&$constant),+]
        }
    };
}

scripts! {
    CHECK "check" "Decides and charges." (fast!("true", "false"); "check", "asks");
    PEEK "peek" "Decides without charging." (fast!("false", "false"); "peek", "asks");
    REFUND "refund" "Takes back an admission." (""; "refund", "returns");
    SETTLE "settle" "Replaces the cost of an admission." (""; "settle", "returns");
    CREDIT "credit" "Gives back the oldest units." (""; "credit");
    RESET "reset" "Forgets a key." (""; "reset");
    INSPECT "inspect" "Says what is used." (""; "inspect");
    CHANGE "change" "Takes over a live change." (""; "change");
}

/// As [`CHECK`], with a reply that is only for us.
pub(crate) static SHORT_CHECK: LazyLock<Script> =
    LazyLock::new(|| Script::new("check", joined!(fast!("true", "true"), "check", "asks")));

/// As [`PEEK`], with a reply that is only for us.
pub(crate) static SHORT_PEEK: LazyLock<Script> =
    LazyLock::new(|| Script::new("peek", joined!(fast!("false", "true"), "peek", "asks")));

/// The secret of all who share the keys: the one that is there, or else the one that the caller has drawn.
pub(crate) static SECRET: LazyLock<Script> =
    LazyLock::new(|| Script::new("secret", include_str!("../scripts/secret.lua")));
