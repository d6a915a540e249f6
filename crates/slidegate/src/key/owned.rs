//! Keys that own their text: those with a tag, and the shards of a key.
//!
//! Such a key is one text too, as a charge has room for one. It begins with a control character, which no key and no
//! tag has, so it is equal to no plain key:
//!
//! ```text
//! alice                       the key alice
//! 1F t 1F alice               the key alice with the tag t
//! 1E 3 1E alice               shard 3 of the key alice
//! 1E 3 1E 1F t 1F alice       shard 3 of the key alice with the tag t
//! ```

use super::{KEY_BYTES_MAX, Key, KeyError, bad_character};

/// Around a tag.
const TAG_SIGN: char = '\u{1f}';
/// Around the number of a shard.
const SHARD_SIGN: char = '\u{1e}';

/// A key with a tag, or a shard of a key.
///
/// A state is found by its rule, its key and, where one is given, its tag: `alice` and `alice` with a tag have separate
/// counts. On Redis Cluster all keys of one tag are in one slot, so that they can be charged together in one step.
///
/// ```
/// use slidegate::{Limiter, OwnedKey, Rule};
///
/// let (limiter, api) = (Limiter::in_memory(), Rule::new("api", "1/1m")?);
/// let tagged = OwnedKey::tagged("alice", "team:7")?;
/// assert_eq!((tagged.key().as_str(), tagged.key().tag()), ("alice", Some("team:7")));
/// assert!(limiter.check(&api, "alice")?.allowed());
/// assert!(limiter.check(&api, &tagged)?.allowed(), "a state of its own");
/// assert!(!limiter.check(&api, &tagged)?.allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedKey(Box<str>);

impl OwnedKey {
    /// A key with a tag; together they have at most [`KEY_BYTES_MAX`] bytes.
    pub fn tagged(key: &str, tag: &str) -> Result<Self, KeyError> {
        Key::new(key)?;
        Key::check_tag(tag)?;
        let bytes = key.len() + tag.len();
        if bytes > KEY_BYTES_MAX {
            return Err(KeyError::TagTooLong { bytes });
        }
        Ok(Self(format!("{TAG_SIGN}{tag}{TAG_SIGN}{key}").into()))
    }

    /// The key, borrowed.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        Key(&self.0)
    }
}

impl From<Key<'_>> for OwnedKey {
    fn from(key: Key<'_>) -> Self {
        Self(key.identity().into())
    }
}

impl<'a> Key<'a> {
    /// The key of that [`identity`](Key::identity).
    pub fn from_identity(identity: &'a str) -> Result<Self, KeyError> {
        let key = Self(identity);
        if key.is_plain() {
            return Self::new(identity);
        }
        let owned = match key.tag() {
            Some(tag) => OwnedKey::tagged(key.as_str(), tag)?,
            None => OwnedKey::from(Self::new(key.as_str())?),
        };
        let owned = key.shard().map_or(owned.clone(), |shard| owned.key().of_shard(shard));
        if *owned.0 == *identity { Ok(key) } else { Self::new(identity) }
    }

    /// Checks the characters of a tag. How long it may be depends on the key.
    pub fn check_tag(tag: &str) -> Result<(), KeyError> {
        if tag.is_empty() {
            return Err(KeyError::TagEmpty);
        }
        match bad_character(tag) {
            Some((offset, character)) => Err(KeyError::TagCharacter { character, offset }),
            None => Ok(()),
        }
    }

    /// The tag, if it has one.
    #[must_use]
    pub fn tag(self) -> Option<&'a str> {
        let (_, unsharded) = self.parts();
        Some(unsharded.strip_prefix(TAG_SIGN)?.split_once(TAG_SIGN)?.0)
    }

    /// The number of the shard, if it is a shard of a key.
    #[must_use]
    pub fn shard(self) -> Option<u16> {
        self.parts().0
    }

    /// The whole key that it is a shard of; itself if it is not a shard.
    #[must_use]
    pub fn unsharded(self) -> Self {
        Self(self.parts().1)
    }

    /// The shard of that number of the whole key.
    #[must_use]
    pub fn of_shard(self, shard: u16) -> OwnedKey {
        OwnedKey(format!("{SHARD_SIGN}{shard}{SHARD_SIGN}{}", self.unsharded().0).into())
    }

    /// The text of the key without tag and shard.
    #[cold]
    pub(super) fn text_of_parts(self) -> &'a str {
        let (_, unsharded) = self.parts();
        let tagged = unsharded.strip_prefix(TAG_SIGN).and_then(|tagged| tagged.split_once(TAG_SIGN));
        tagged.map_or(unsharded, |(_, key)| key)
    }

    /// Whether it has neither tag nor shard.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        self.0.as_bytes().first().is_none_or(|&first| first > 0x1f)
    }

    /// The number of the shard, and the rest.
    fn parts(self) -> (Option<u16>, &'a str) {
        let sharded = self.0.strip_prefix(SHARD_SIGN).and_then(|rest| rest.split_once(SHARD_SIGN));
        match sharded.and_then(|(shard, rest)| Some((shard.parse().ok()?, rest))) {
            Some((shard, rest)) => (Some(shard), rest),
            None => (None, self.0),
        }
    }
}

/// What is accepted as a key: a text, which is checked, a [`Key`], or an [`OwnedKey`].
pub trait IntoKey<'a> {
    /// The key.
    fn into_key(self) -> Result<Key<'a>, KeyError>;
}

impl<'a, T: AsRef<str> + ?Sized> IntoKey<'a> for &'a T {
    #[inline]
    fn into_key(self) -> Result<Key<'a>, KeyError> {
        Key::new(self.as_ref())
    }
}

impl<'a> IntoKey<'a> for &'a OwnedKey {
    fn into_key(self) -> Result<Key<'a>, KeyError> {
        Ok(self.key())
    }
}

impl<'a> IntoKey<'a> for Key<'a> {
    #[inline]
    fn into_key(self) -> Result<Key<'a>, KeyError> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 8] = ["a", "alice", "t", "alice/t", "t/alice", "a:b", "{t}{a}", "k\u{e4}se"];

    /// The toy version joins key and tag with a character that either may contain.
    #[test]
    fn no_two_of_key_tag_and_shard_are_one_state() {
        let mut identities = Vec::new();
        for key in TEXTS {
            let tagged = TEXTS.iter().map(|tag| OwnedKey::tagged(key, tag).unwrap());
            let unsharded: Vec<OwnedKey> = tagged.chain([Key::new(key).unwrap().into()]).collect();
            let shards = unsharded.iter().flat_map(|key| [0, 1, 10].map(|shard| key.key().of_shard(shard)));
            identities.extend(shards.chain(unsharded.iter().cloned()));
        }
        let count = identities.len();
        identities.sort();
        identities.dedup();
        assert_eq!(identities.len(), count);
    }

    #[test]
    fn the_parts_are_found_again() {
        for (key, tag) in TEXTS.iter().flat_map(|key| TEXTS.map(|tag| (*key, tag))) {
            let owned = OwnedKey::tagged(key, tag).unwrap();
            let tagged = owned.key();
            assert_eq!((tagged.as_str(), tagged.tag(), tagged.shard()), (key, Some(tag), None));
            let shard = tagged.of_shard(7);
            let shard = shard.key();
            assert_eq!((shard.as_str(), shard.tag(), shard.shard()), (key, Some(tag), Some(7)));
            assert_eq!((shard.unsharded(), tagged.unsharded()), (tagged, tagged));
            for identity in [tagged.identity(), shard.identity()] {
                assert_eq!(Key::from_identity(identity).unwrap().identity(), identity);
            }
        }
        let plain = Key::new("alice").unwrap();
        assert_eq!((plain.as_str(), plain.tag(), plain.shard()), ("alice", None, None));
        assert_eq!(plain.of_shard(3).key().of_shard(4).key().shard(), Some(4), "not a shard of a shard");
    }

    #[test]
    fn a_text_that_looks_like_an_identity_is_not_a_key() {
        let identity = OwnedKey::tagged("alice", "t").unwrap();
        assert!(matches!(Key::new(identity.key().identity()), Err(KeyError::Control { .. })));
        for text in [
            "\u{1f}",
            "\u{1f}t",
            "\u{1f}\u{1f}alice",
            "\u{1f}t\u{1f}",
            "\u{1e}03\u{1e}a",
            "\u{1e}x\u{1e}a",
            "",
        ] {
            assert!(Key::from_identity(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn tags_are_checked_like_keys() {
        let error = |key, tag| OwnedKey::tagged(key, tag).unwrap_err();
        assert_eq!(error("", "t"), KeyError::Empty);
        assert_eq!(error("alice", ""), KeyError::TagEmpty);
        assert_eq!(error("alice", "a\nb"), KeyError::TagCharacter { character: '\n', offset: 1 });
        assert_eq!(error("alice", "\u{202e}"), KeyError::TagCharacter { character: '\u{202e}', offset: 0 });
        let (key, tag) = ("k".repeat(300), "t".repeat(213));
        assert_eq!(error(&key, &tag), KeyError::TagTooLong { bytes: 513 });
        assert!(OwnedKey::tagged(&key, &tag[1..]).is_ok());
        assert_eq!(
            error(&key, &tag).to_string(),
            "tag: has 513 bytes together with the key, at most 512 are allowed; shorten it or use a hash of it"
        );
    }
}
