//! Tokens: what a caller may do.
//!
//! A configuration holds the SHA-256 hash of a token and never the token itself, so that its readers cannot call the
//! server. A fast hash suffices because a token is random: there is no dictionary to try.

use std::sync::Arc;

use arc_swap::ArcSwap;
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq;

/// Shortest and longest token, in bytes.
pub(crate) const TOKEN_BYTES_MIN: usize = 16;
pub(crate) const TOKEN_BYTES_MAX: usize = 4_096;
/// Bytes of a hash.
pub(crate) const HASH_BYTES: usize = 32;

/// What a token permits. No scope includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// To decide, and to refund or settle what was admitted.
    Check,
    /// To read rules, usage and metrics.
    Read,
    /// To change what others have used, and the rules in force.
    Admin,
}

impl Scope {
    /// All scopes, as users write them.
    pub(crate) const NAMES: [&str; 3] = ["check", "read", "admin"];
    const ALL: [Self; 3] = [Self::Check, Self::Read, Self::Admin];

    /// The scope of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scopes([bool; 3]);

impl Scopes {
    pub(crate) const ALL: Self = Self([true; 3]);

    /// Adds a scope; returns whether it is new.
    pub(crate) fn insert(&mut self, scope: Scope) -> bool {
        !std::mem::replace(&mut self.0[scope as usize], true)
    }

    pub(crate) fn contains(self, scope: Scope) -> bool {
        self.0[scope as usize]
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    fn union(self, other: Self) -> Self {
        Self(Scope::ALL.map(|scope| self.contains(scope) || other.contains(scope)))
    }
}

/// The hash of a token, and its scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) hash: [u8; HASH_BYTES],
    pub(crate) scopes: Scopes,
}

impl Token {
    pub(crate) fn new(token: &str, scopes: Scopes) -> Self {
        Self { hash: hash_of(token.as_bytes()), scopes }
    }
}

/// The tokens that a server accepts; several at a time, so that one can replace another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tokens(pub(crate) Vec<Token>);

impl Tokens {
    /// Whether callers need no token.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scopes of the token that a caller sent, if it is one of these.
    ///
    /// The time does not depend on which of them it is, nor on how much of a hash is equal.
    pub(crate) fn scopes_of(&self, sent: &[u8]) -> Option<Scopes> {
        // A hash does not tell the length of its token, which may be short enough to be guessed.
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&sent.len()) {
            return None;
        }
        let sent = hash_of(sent);
        let equal = |token: &Token| bool::from(token.hash.ct_eq(&sent)).then_some(token.scopes);
        let found: Vec<Option<Scopes>> = self.0.iter().map(equal).collect();
        found.into_iter().flatten().reduce(Scopes::union)
    }
}

/// The tokens in force, which a reload replaces.
#[derive(Debug)]
pub(crate) struct LiveTokens(ArcSwap<Tokens>);

impl LiveTokens {
    pub(crate) fn new(tokens: Tokens) -> Self {
        Self(ArcSwap::from_pointee(tokens))
    }

    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Tokens>> {
        self.0.load()
    }

    /// Replaces the tokens; returns whether they differ.
    pub(crate) fn replace(&self, tokens: Tokens) -> bool {
        let differs = **self.load() != tokens;
        if differs {
            self.0.store(Arc::new(tokens));
        }
        differs
    }
}

/// The hash of a token.
pub(crate) fn hash_of(token: &[u8]) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(digest(&SHA256, token).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "correct-horse-battery-staple";

    fn scopes(names: &[&str]) -> Scopes {
        let mut scopes = Scopes::default();
        for name in names {
            assert!(scopes.insert(Scope::named(name).unwrap()), "{name}");
        }
        scopes
    }

    #[test]
    fn a_token_has_its_own_scopes_and_no_others() {
        let tokens = Tokens(vec![
            Token::new("another-token-of-other-length", scopes(&["admin"])),
            Token::new(SENT, scopes(&["check", "read"])),
        ]);
        let found = tokens.scopes_of(SENT.as_bytes()).unwrap();
        let found = Scope::NAMES.map(|name| found.contains(Scope::named(name).unwrap()));
        assert_eq!(found, [true, true, false]);
        assert_eq!(Tokens::default().scopes_of(SENT.as_bytes()), None);
    }

    #[test]
    fn a_token_that_differs_in_the_first_or_last_byte_is_none_of_them() {
        let tokens = Tokens(vec![Token::new(SENT, Scopes::ALL)]);
        for at in [0, SENT.len() - 1] {
            let mut other = SENT.as_bytes().to_vec();
            other[at] ^= 1;
            assert_eq!(tokens.scopes_of(&other), None, "{at}");
        }
        for other in [&SENT[1..], &SENT[..SENT.len() - 1], "", &format!("{SENT} ")] {
            assert_eq!(tokens.scopes_of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_short_token_is_refused_though_its_hash_is_listed() {
        let tokens = Tokens(vec![Token::new("hunter2", Scopes::ALL)]);
        assert_eq!(tokens.scopes_of(b"hunter2"), None);
    }

    /// A token file and the configuration may list the same token.
    #[test]
    fn a_token_that_is_listed_twice_has_the_scopes_of_both() {
        let tokens = Tokens(vec![Token::new(SENT, scopes(&["check"])), Token::new(SENT, scopes(&["admin"]))]);
        assert_eq!(tokens.scopes_of(SENT.as_bytes()), Some(scopes(&["check", "admin"])));
    }
}
