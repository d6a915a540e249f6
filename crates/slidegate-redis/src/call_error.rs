//! Errors of a call, and whether it may be retried.
//!
//! The one question is whether Redis may have executed the call. If it certainly did not, the call may be retried
//! until its deadline. Otherwise a retry might charge twice: the error is then [`StoreError::Ambiguous`], which counts
//! too much at worst and never too little.
//!
//! Error replies are classified by their first word. Redis sends those of [`KNOWN`] before it executes anything or,
//! from inside a script, at its first write; our scripts read and check everything before that. An unknown word may
//! come from a proxy between us and Redis and proves nothing, so it is ambiguous.

use redis::ServerError;
use slidegate::store::{RefusalCause, StoreError};

use ErrorClass::{Busy, Refused, Replica, Resharding, UnknownScript, WrongServer};
use RefusalCause::{DamagedState, Disk, Forbidden, ForeignValue, NewerVersion, Other, OutOfMemory, ReadOnly};

/// Longest text of a reply that an error repeats, in characters.
const REPLY_CHARS_MAX: usize = 300;

/// An error of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallError {
    pub(crate) class: ErrorClass,
    /// What Redis refused the call for, if it did.
    pub(crate) cause: RefusalCause,
    pub(crate) why: Box<str>,
    /// Where a node of a cluster redirects the call to: `MOVED` or `ASK` with a slot and an address.
    pub(crate) redirect: Option<Box<str>>,
}

/// Whether Redis may have executed a failed call, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// Not executed: nothing of it was sent.
    NotSent,
    /// Not executed: Redis does not know the script by its hash. Retry with its text.
    UnknownScript,
    /// Not executed, and the server may be ready soon: retry after a pause.
    Busy,
    /// Not executed: the server has been demoted. Retry once over a new connection, which may lead to the primary.
    Replica,
    /// Not executed: another node of a cluster has the keys.
    WrongServer,
    /// Not executed: a cluster is moving the slot, or has no owner for one. Retry after a pause, perhaps elsewhere.
    Resharding,
    /// Not executed, and a retry would fail too.
    Refused,
    /// Perhaps executed. Never retried.
    Ambiguous,
}

/// Error replies by their first word, what they refuse a call for, and the remedies.
const KNOWN: &[(&str, ErrorClass, RefusalCause, &str)] = &[
    ("NOSCRIPT", UnknownScript, Forbidden, "let the user of the store call EVAL as well as EVALSHA"),
    ("LOADING", Busy, Other, "wait until Redis has read its data"),
    ("BUSY", Busy, Other, "another client's script does not end: stop it with SCRIPT KILL"),
    ("TRYAGAIN", Resharding, Other, "wait until the cluster has moved its slots"),
    ("CLUSTERDOWN", Resharding, Other, "see CLUSTER INFO for what is missing"),
    (
        "MASTERDOWN",
        Busy,
        Other,
        "wait until the replica has found its primary, or give the primary's address",
    ),
    ("MOVED", WrongServer, Other, CLUSTER),
    ("ASK", WrongServer, Other, CLUSTER),
    ("READONLY", Replica, ReadOnly, "this is a replica: give the address of the primary"),
    (
        "WRONGTYPE",
        Refused,
        ForeignValue,
        "another program uses a key of ours: delete it, or choose another key_prefix",
    ),
    (
        "OOM",
        Refused,
        OutOfMemory,
        "Redis is out of memory: raise maxmemory, or give the store an instance of its own",
    ),
    (
        "NOPERM",
        Refused,
        Forbidden,
        "grant the store's user EVAL, EVALSHA, SCAN, INFO and its keys with ACL SETUSER",
    ),
    ("NOAUTH", Refused, Forbidden, "give the password in the URL: redis://:PASSWORD@HOST"),
    ("WRONGPASS", Refused, Forbidden, "correct the user and the password in the URL"),
    (
        "DENIED",
        Refused,
        Forbidden,
        "set a password in Redis and in the URL, or bind Redis to a private address",
    ),
    ("MISCONF", Refused, Disk, "Redis cannot save its data and takes no writes: see its log"),
    (
        "NOREPLICAS",
        Refused,
        ReadOnly,
        "Redis wants more replicas before it takes writes: see min-replicas-to-write",
    ),
    ("CROSSSLOT", Refused, Other, "charge keys together only if they share a hash tag: see key_template"),
    ("SLIDEGATE", Refused, Other, "delete the key, or choose another key_prefix"),
    ("ERR", Refused, Other, "see the text; where it names a script, this is a defect of slidegate"),
];

const CLUSTER: &str = "this is a node of a cluster: give its address as redis+cluster://HOST:PORT";
/// The remedy for all others.
const UNKNOWN: &str = "Redis does not send this to a script: check proxies between it and us";

/// A script has used a key that has moved to another node, which may have been after its first write. Only sorted sets
/// have such keys: those of other states are declared, and checked before the script runs.
const NON_LOCAL: &str = "attempted to access a non local key";

/// The second word of the errors of our scripts.
const OWN_CAUSES: &[(&str, RefusalCause)] =
    &[("foreign:", ForeignValue), ("newer:", NewerVersion), ("damaged:", DamagedState)];

/// Words that Redis before 7 wraps in an `ERR` when a write inside a script fails with them.
const INSIDE_ERR: &[&str] = &["READONLY", "OOM", "WRONGTYPE", "MISCONF", "NOREPLICAS", "SLIDEGATE"];

impl CallError {
    /// Classifies an error reply.
    pub(crate) fn from_reply(error: &ServerError) -> Self {
        let (code, details) = (error.code(), error.details().unwrap_or_default());
        let shown: String = details.chars().take(REPLY_CHARS_MAX).collect();
        let (class, cause, remedy) = known(code, details).unwrap_or((ErrorClass::Ambiguous, Other, UNKNOWN));
        let redirect = (class == WrongServer).then(|| format!("{code} {details}").into());
        Self { class, cause, why: format!("Redis says `{code} {shown}`; {remedy}").into(), redirect }
    }

    /// Nothing of the call was sent.
    pub(crate) fn not_sent(why: impl Into<Box<str>>) -> Self {
        Self { class: ErrorClass::NotSent, cause: Other, why: why.into(), redirect: None }
    }

    /// The call was sent, and it is not known whether Redis executed it.
    pub(crate) fn ambiguous(why: impl Into<Box<str>>) -> Self {
        Self { class: ErrorClass::Ambiguous, cause: Other, why: why.into(), redirect: None }
    }

    /// The reply to `command` has an unknown form.
    pub(crate) fn malformed_reply(command: &str) -> Self {
        Self::ambiguous(format!("the reply to {command} is malformed; check proxies between Redis and us"))
    }
}

/// The caller's error once there is no retry.
impl From<CallError> for StoreError {
    fn from(CallError { class, cause, why, .. }: CallError) -> Self {
        match class {
            ErrorClass::NotSent | Busy | WrongServer | Resharding => Self::Unavailable { why },
            UnknownScript | Replica | Refused => Self::Refused { cause, why },
            ErrorClass::Ambiguous => Self::Ambiguous { why },
        }
    }
}

/// What an error reply with this first word refuses for.
pub(crate) fn known_cause(code: &str) -> RefusalCause {
    known(code, "").map_or(Other, |(_, cause, _)| cause)
}

fn known(code: &str, details: &str) -> Option<(ErrorClass, RefusalCause, &'static str)> {
    if code == "ERR" && details.contains(NON_LOCAL) {
        return Some((ErrorClass::Ambiguous, Other, "the keys of a sorted set are moving to another node"));
    }
    let inside = details.split_whitespace().map(|word| word.trim_start_matches('-'));
    let inside = inside.into_iter().find(|word| code == "ERR" && INSIDE_ERR.contains(word));
    let word = inside.unwrap_or(code);
    let &(_, class, cause, remedy) = KNOWN.iter().find(|(known, ..)| *known == word)?;
    let own = OWN_CAUSES.iter().find(|(own, _)| word == "SLIDEGATE" && details.contains(own));
    Some((class, own.map_or(cause, |(_, own)| *own), remedy))
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn call_error(reply: &str) -> CallError {
        match parse_redis_value(format!("-{reply}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => CallError::from_reply(&error),
            other => panic!("{other:?}"),
        }
    }

    /// Replies as Redis 5 to 8 write them.
    const REPLIES: &[(&str, ErrorClass)] = &[
        ("NOSCRIPT No matching script. Please use EVAL.", UnknownScript),
        ("LOADING Redis is loading the dataset in memory", Busy),
        ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", Busy),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Resharding),
        ("CLUSTERDOWN Hash slot not served", Resharding),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", Busy),
        ("MOVED 3999 127.0.0.1:6381", WrongServer),
        ("ASK 3999 127.0.0.1:6381", WrongServer),
        ("READONLY You can't write against a read only replica.", Replica),
        ("ERR Error running script (call to f_e0): @user_script:1: @user_script: 1: -READONLY You", Replica),
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
        (
            "ERR Script attempted to access a non local key in a cluster node script: e0, on @user_script:7.",
            ErrorClass::Ambiguous,
        ),
        ("upstream failure", ErrorClass::Ambiguous),
        ("NOTBUSY No scripts in execution right now.", ErrorClass::Ambiguous),
        ("SOMETHING new", ErrorClass::Ambiguous),
    ];

    /// Only an unknown reply leaves open whether the call charged.
    #[test]
    fn every_error_reply_is_classified() {
        for &(reply, class) in REPLIES {
            assert_eq!(call_error(reply).class, class, "{reply}");
            let error = StoreError::from(call_error(reply));
            assert_eq!(error.maybe_charged(), class == ErrorClass::Ambiguous, "{reply}: {error}");
            let unavailable = matches!(error, StoreError::Unavailable { .. });
            assert_eq!(unavailable, matches!(class, Busy | WrongServer | Resharding), "{reply}: {error}");
        }
        for (code, ..) in KNOWN {
            assert!(REPLIES.iter().any(|(reply, _)| reply.starts_with(code)), "{code} has no example");
        }
        assert!(StoreError::from(CallError::malformed_reply("SCAN")).maybe_charged());
    }

    /// An operator acts on the cause, so it must not depend on how a version of Redis words or wraps the reply.
    #[test]
    fn a_refusal_has_a_cause() {
        for (reply, expected) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory),
            (
                "ERR Error running script (call to f_e0): @user_script:1: -OOM command not allowed",
                OutOfMemory,
            ),
            ("READONLY You can't write against a read only replica.", ReadOnly),
            ("ERR Error running script (call to f_e0): @user_script: 1: -READONLY You", ReadOnly),
            ("MISCONF Redis is configured to save RDB snapshots, but it's unable to persist", Disk),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", ForeignValue),
            ("SLIDEGATE foreign: a value of this key is not ours", ForeignValue),
            (
                "SLIDEGATE newer: a value of this key has a version that this script does not know",
                NewerVersion,
            ),
            ("SLIDEGATE damaged: a value of this key is cut off", DamagedState),
            ("SLIDEGATE large: a sorted set keeps one member per unit", Other),
            ("NOAUTH Authentication required.", Forbidden),
            ("ERR value is not a foreign: integer", Other),
        ] {
            match StoreError::from(call_error(reply)) {
                StoreError::Refused { cause, .. } => assert_eq!(cause, expected, "{reply}"),
                other => panic!("{reply}: {other:?}"),
            }
        }
    }

    #[test]
    fn errors_repeat_the_reply_and_name_the_remedy() {
        let error = StoreError::from(call_error("OOM command not allowed when used memory > 'maxmemory'."));
        assert_eq!(
            error.to_string(),
            "store: refused, so nothing was charged: Redis says `OOM command not allowed when used memory > \
             'maxmemory'.`; Redis is out of memory: raise maxmemory, or give the store an instance of its own"
        );
        let long = call_error(&format!("ERR {}", "x".repeat(10_000))).why.len();
        assert!(long < 500, "{long}");
    }
}
