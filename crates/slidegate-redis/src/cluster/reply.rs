//! What the reply of a node means for a call: done, to be sent elsewhere, or to be sent again later.

use redis::Value;
use slidegate::store::StoreError;

use super::redirect::{NodeAddress, Redirect};
use crate::call_error::ErrorClass;
use crate::link::CallResult;

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The result of the call.
    Done(Result<Value, StoreError>),
    /// Not executed: another node owns the slot.
    Moved(Redirect),
    /// Not executed: the slot is moving, and the keys of this call are at the other node already.
    Ask(Redirect),
    /// Not executed: the slot will be ready soon.
    Later(StoreError),
    /// Not executed: the node cannot be used, and another one may have taken its slots.
    Lost(StoreError),
    /// The result of the call, and a reason to look for another owner before the next one.
    Doubtful(StoreError),
}

impl Outcome {
    /// Classifies the answer of the node at `asked`.
    pub(super) fn of(result: CallResult, asked: &NodeAddress) -> Self {
        let error = match result {
            Ok(reply) => return Self::Done(Ok(reply)),
            Err(error) => error,
        };
        match error.class {
            ErrorClass::WrongServer => {
                let reply = error.redirect.as_deref().unwrap_or_default();
                match Redirect::parse(reply, asked) {
                    Some(redirect) if reply.starts_with("ASK ") => Self::Ask(redirect),
                    Some(redirect) => Self::Moved(redirect),
                    None => Self::Lost(error.into()),
                }
            }
            ErrorClass::Resharding => Self::Later(error.into()),
            ErrorClass::NotSent | ErrorClass::Replica => Self::Lost(error.into()),
            ErrorClass::Busy | ErrorClass::Ambiguous => Self::Doubtful(error.into()),
            ErrorClass::UnknownScript | ErrorClass::Refused => Self::Done(Err(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;
    use crate::call_error::CallError;

    fn asked() -> NodeAddress {
        NodeAddress { host: "a".into(), port: 1 }
    }

    fn outcome(reply: &str) -> Outcome {
        match parse_redis_value(format!("-{reply}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => Outcome::of(Err(CallError::from_reply(&error)), &asked()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn error_replies_of_a_cluster_are_classified() {
        assert!(matches!(outcome("MOVED 7 b:2"), Outcome::Moved(Redirect { slot: 7, .. })));
        assert!(matches!(outcome("ASK 7 b:2"), Outcome::Ask(Redirect { slot: 7, .. })));
        for malformed in ["MOVED", "ASK 99999 b:2"] {
            assert!(matches!(outcome(malformed), Outcome::Lost(_)), "{malformed}");
        }
        for later in
            ["TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster is down"]
        {
            assert!(matches!(outcome(later), Outcome::Later(_)), "{later}");
        }
        let replica = outcome("READONLY You can't write against a read only replica.");
        assert!(matches!(replica, Outcome::Lost(_)), "{replica:?}");
        let loading = outcome("LOADING Redis is loading the dataset in memory");
        assert!(matches!(loading, Outcome::Doubtful(StoreError::Unavailable { .. })), "{loading:?}");
        assert!(matches!(outcome("OOM command not allowed"), Outcome::Done(Err(StoreError::Refused { .. }))));
    }

    /// Only what was certainly not executed may be sent to another node.
    #[test]
    fn an_ambiguous_call_has_its_result() {
        for error in [outcome("SURPRISE"), Outcome::of(Err(CallError::ambiguous("x")), &asked())] {
            assert!(matches!(error, Outcome::Doubtful(StoreError::Ambiguous { .. })), "{error:?}");
        }
        let unsent = Outcome::of(Err(CallError::not_sent("x")), &asked());
        assert!(matches!(unsent, Outcome::Lost(StoreError::Unavailable { .. })), "{unsent:?}");
        assert!(matches!(Outcome::of(Ok(Value::Int(1)), &asked()), Outcome::Done(Ok(_))));
    }
}
