//! What a failure means for the call that it happened to.
//!
//! The one question is whether the call may have been executed. If it is known that it was not, it may be sent
//! again while its deadline allows that. If it is not known, sending it again might charge twice: then it is
//! [`StoreError::Ambiguous`], counted too much at worst and never too little.
//!
//! Error replies are known by their first word. Redis gives those of [`KNOWN`] before it executes anything or,
//! from inside a script, at its first write; our scripts read and check everything before that. A word that is
//! not known here may come from something between us and Redis and prove nothing, so it is ambiguous.

use redis::ServerError;
use slidegate::store::StoreError;

use Meaning::{Elsewhere, Later, Refused, SendText};

/// Longest text of a reply that is repeated in an error, in characters.
const SHOWN_MAX: usize = 300;

/// What failed, and what that means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) meaning: Meaning,
    pub(crate) why: Box<str>,
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Not executed: Redis does not know the script by its hash. Send its text.
    SendText,
    /// Not executed, and the same server may do it soon: send it again after a pause.
    Later,
    /// Not executed, and not by this server as long as it is what it is.
    Elsewhere,
    /// Not executed, and it would not be if it were sent again.
    Refused,
    /// Perhaps executed. Never sent again.
    Ambiguous,
}

/// Error replies by their first word, and the remedies.
const KNOWN: &[(&str, Meaning, &str)] = &[
    ("NOSCRIPT", SendText, "let the user of the store call EVAL as well as EVALSHA"),
    ("LOADING", Later, "wait until Redis has read its data"),
    ("BUSY", Later, "another client's script does not end: stop it with SCRIPT KILL"),
    ("TRYAGAIN", Later, "wait until the cluster has moved its slots"),
    ("CLUSTERDOWN", Later, "see CLUSTER INFO for what is missing"),
    ("MASTERDOWN", Later, "wait until the replica has found its primary, or give the primary's address"),
    ("MOVED", Elsewhere, CLUSTER),
    ("ASK", Elsewhere, CLUSTER),
    ("READONLY", Elsewhere, "this is a replica: give the address of the primary"),
    ("WRONGTYPE", Refused, "another program uses a key of ours: delete it, or choose another key_prefix"),
    ("OOM", Refused, "Redis is out of memory: raise maxmemory, or give the store an instance of its own"),
    ("NOPERM", Refused, "grant the store's user EVAL, EVALSHA, SCAN, INFO and its keys with ACL SETUSER"),
    ("NOAUTH", Refused, "give the password in the URL: redis://:PASSWORD@HOST"),
    ("WRONGPASS", Refused, "correct the user and the password in the URL"),
    ("DENIED", Refused, "give Redis a password and us the same, or let it listen where only we are"),
    ("MISCONF", Refused, "Redis cannot save its data and takes no writes: see its log"),
    ("NOREPLICAS", Refused, "Redis wants more replicas before it takes writes: see min-replicas-to-write"),
    ("CROSSSLOT", Refused, "charge keys together only if they share a hash tag: see key_template"),
    ("SLIDEGATE", Refused, "delete the key, or choose another key_prefix"),
    ("ERR", Refused, "see the text; where it names a script, this is a defect of slidegate"),
];

const CLUSTER: &str =
    "this is a node of a Redis Cluster, which is not supported yet: give a standalone Redis";
/// The remedy for all others.
const UNKNOWN: &str = "no Redis says that to a script: see what stands between it and us";

/// Words that Redis before 7 hides in an `ERR` when a script's write meets them.
const INSIDE_ERR: &[&str] = &["READONLY", "OOM", "WRONGTYPE", "MISCONF", "NOREPLICAS", "SLIDEGATE"];

impl Failure {
    /// What an error reply means.
    pub(crate) fn of_reply(error: &ServerError) -> Self {
        let (code, details) = (error.code(), error.details().unwrap_or_default());
        let shown: String = details.chars().take(SHOWN_MAX).collect();
        let (meaning, remedy) = known(code, details).unwrap_or((Meaning::Ambiguous, UNKNOWN));
        Self { meaning, why: format!("Redis says `{code} {shown}`; {remedy}").into() }
    }

    /// The reply is not of the form that was agreed on.
    pub(crate) fn not_understood(what: &str) -> Self {
        let why = format!("the reply to {what} is none that Redis gives; see what stands between it and us");
        Self { meaning: Meaning::Ambiguous, why: why.into() }
    }
}

/// What callers are told once it is not tried again.
impl From<Failure> for StoreError {
    fn from(Failure { meaning, why }: Failure) -> Self {
        match meaning {
            Later | Elsewhere => Self::Unavailable { why },
            SendText | Refused => Self::Refused { why },
            Meaning::Ambiguous => Self::Ambiguous { why },
        }
    }
}

fn known(code: &str, details: &str) -> Option<(Meaning, &'static str)> {
    let inside = details.split_whitespace().map(|word| word.trim_start_matches('-'));
    let inside = inside.into_iter().find(|word| code == "ERR" && INSIDE_ERR.contains(word));
    let word = inside.unwrap_or(code);
    KNOWN.iter().find(|(known, ..)| *known == word).map(|&(_, meaning, remedy)| (meaning, remedy))
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn failure(reply: &str) -> Failure {
        match parse_redis_value(format!("-{reply}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => Failure::of_reply(&error),
            other => panic!("{other:?}"),
        }
    }

    /// Replies as Redis 5 to 8 write them.
    const REPLIES: &[(&str, Meaning)] = &[
        ("NOSCRIPT No matching script. Please use EVAL.", SendText),
        ("LOADING Redis is loading the dataset in memory", Later),
        ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", Later),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Later),
        ("CLUSTERDOWN Hash slot not served", Later),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", Later),
        ("MOVED 3999 127.0.0.1:6381", Elsewhere),
        ("ASK 3999 127.0.0.1:6381", Elsewhere),
        ("READONLY You can't write against a read only replica.", Elsewhere),
        (
            "ERR Error running script (call to f_e0): @user_script:1: @user_script: 1: -READONLY You",
            Elsewhere,
        ),
        ("WRONGTYPE Operation against a key holding the wrong kind of value script: e0e1", Refused),
        ("ERR Error running script (call to f_e0e1): @user_script:1: WRONGTYPE Operation against", Refused),
        ("OOM command not allowed when used memory > 'maxmemory'. script: e0e1, on @user_script:1.", Refused),
        ("NOPERM this user has no permissions to run the 'evalsha' command", Refused),
        ("NOAUTH Authentication required.", Refused),
        ("WRONGPASS invalid username-password pair or user is disabled.", Refused),
        ("DENIED Redis is running in protected mode", Refused),
        ("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist", Refused),
        ("NOREPLICAS Not enough good replicas to write.", Refused),
        ("CROSSSLOT Keys in request don't hash to the same slot", Refused),
        ("SLIDEGATE sg:{alice}:api: not a state of ours", Refused),
        ("ERR user_script:1: Script attempted to access nonexistent global variable 'x'", Refused),
        ("ERR Error compiling script (new function): user_script:1: '=' expected", Refused),
        ("ERR", Refused),
        ("upstream failure", Meaning::Ambiguous),
        ("NOTBUSY No scripts in execution right now.", Meaning::Ambiguous),
        ("SOMETHING new", Meaning::Ambiguous),
    ];

    /// Only what is not known leaves open whether it was charged.
    #[test]
    fn every_reply_has_its_meaning() {
        for &(reply, meaning) in REPLIES {
            assert_eq!(failure(reply).meaning, meaning, "{reply}");
            let error = StoreError::from(failure(reply));
            assert_eq!(error.maybe_charged(), meaning == Meaning::Ambiguous, "{reply}: {error}");
            let unavailable = matches!(error, StoreError::Unavailable { .. });
            assert_eq!(unavailable, matches!(meaning, Later | Elsewhere), "{reply}: {error}");
        }
        for (code, ..) in KNOWN {
            assert!(REPLIES.iter().any(|(reply, _)| reply.starts_with(code)), "{code} has no example");
        }
        assert!(StoreError::from(Failure::not_understood("SCAN")).maybe_charged());
    }

    #[test]
    fn errors_repeat_the_reply_and_name_the_remedy() {
        let error = StoreError::from(failure("OOM command not allowed when used memory > 'maxmemory'."));
        assert_eq!(
            error.to_string(),
            "store: refused, so nothing was charged: Redis says `OOM command not allowed when used memory > \
             'maxmemory'.`; Redis is out of memory: raise maxmemory, or give the store an instance of its own"
        );
        let long = failure(&format!("ERR {}", "x".repeat(10_000))).why.len();
        assert!(long < 500, "{long}");
    }
}
