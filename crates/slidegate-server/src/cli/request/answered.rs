//! A request with its final answer, whose charge can be given back.

use super::answer::CheckAnswer;
use super::target::Target;
use super::waiting::FinalAnswer;

/// An answered request.
#[derive(Debug)]
pub(in crate::cli) struct AnsweredRequest {
    pub(in crate::cli) answer: CheckAnswer,
    /// Why there was no further retry.
    pub(in crate::cli) gave_up: Option<String>,
    /// The store or server that answered; `None` if an override did.
    target: Option<Target>,
}

impl AnsweredRequest {
    pub(super) fn new(FinalAnswer { answer, gave_up }: FinalAnswer, target: Option<Target>) -> Self {
        Self { answer, gave_up, target }
    }

    /// Gives back the charge of an answer that came to nothing, and says for an error what became of it.
    pub(in crate::cli) fn give_back(&self) -> String {
        match (&self.target, &self.answer.receipt) {
            (Some(target), Some(receipt)) => match target.refund(receipt) {
                Ok(_) => "the charge was given back".to_owned(),
                Err(error) => format!("the charge stays, because it cannot be given back: {error:#}"),
            },
            // The line before says whether the store may have charged.
            _ if self.answer.degraded => "the store gave no receipt".to_owned(),
            _ => "nothing was charged".to_owned(),
        }
    }
}
