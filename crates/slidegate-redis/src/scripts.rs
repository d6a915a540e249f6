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

/// What every script begins with: time, wide numbers, values, and the algorithms, each of which is only made when
/// it is asked for.
macro_rules! joined {
    ($first:expr, $($part:literal),+) => {
        concat!(
            include_str!("../scripts/time.lua"),
            $first,
            include_str!("../scripts/wide.lua"),
            include_str!("../scripts/codec.lua"),
            "\nalgorithm = function(code)\nif code == 1 then\n",
            include_str!("../scripts/sliding-log.lua"),
            "\nelseif code == 2 then\n",
            include_str!("../scripts/compact-log.lua"),
            "\nelseif code == 3 then\n",
            include_str!("../scripts/sliding-buckets.lua"),
            "\nelseif code == 4 then\n",
            include_str!("../scripts/sliding-counter.lua"),
            "\nelseif code == 5 then\n",
            include_str!("../scripts/fixed-window.lua"),
            "\nelseif code == 6 then\n",
            include_str!("../scripts/gcra.lua"),
            "\nelseif code == 7 then\n",
            include_str!("../scripts/sorted-set.lua"),
            "\nend\nend\n",
            $(include_str!(concat!("../scripts/", $part, ".lua"))),+
        )
    };
}

/// The common case, without a function. It is told whether to charge, and whether to answer in short.
macro_rules! fast {
    ($charges:literal, $short:literal) => {
        concat!(
            "local charges, short = ",
            $charges,
            ", ",
            $short,
            "\n",
            include_str!("../scripts/fast.lua"),
            "if name == 'sliding-log' then\n",
            include_str!("../scripts/fast-sliding-log.lua"),
            "elseif name == 'sliding-counter' then\n",
            include_str!("../scripts/fast-sliding-counter.lua"),
            "elseif name == 'compact-log' then\n",
            include_str!("../scripts/fast-compact-log.lua"),
            "elseif name == 'sliding-buckets' then\n",
            include_str!("../scripts/fast-sliding-buckets.lua"),
            "elseif name == 'fixed-window' then\n",
            include_str!("../scripts/fast-fixed-window.lua"),
            "elseif name == 'gcra' then\n",
            include_str!("../scripts/fast-gcra.lua"),
            "end\n",
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

#[cfg(feature = "testing")]
const LOOKED: &str =
    "local value, beside = redis.call('DUMP', KEYS[1]), redis.call('DUMP', KEYS[1] .. '%state')
return (value or beside) and (value or '') .. (beside or '')";

/// The bytes of a state, whatever it is kept in; for tests that compare them.
#[cfg(feature = "testing")]
pub(crate) static LOOK: LazyLock<Script> = LazyLock::new(|| Script::new("look", LOOKED));

/// The secret of all who share the keys: the one that is there, or else the one that the caller has drawn.
pub(crate) static SECRET: LazyLock<Script> =
    LazyLock::new(|| Script::new("secret", include_str!("../scripts/secret.lua")));
