//! Mostly one: a list that costs no allocation for a single item.
//!
//! Most admissions are one charge of a rule with one limit, and a decision must not allocate for them.

use std::ops::{Deref, DerefMut};

/// One item in place, or several on the heap.
#[derive(Debug, Clone)]
pub(crate) enum Few<T> {
    One([T; 1]),
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// Appends an item.
    pub(crate) fn push(&mut self, item: T) {
        let before = std::mem::replace(self, Self::Many(Vec::new()));
        *self = match before {
            Self::Many(items) if items.is_empty() => Self::One([item]),
            Self::One([first]) => Self::Many(vec![first, item]),
            Self::Many(mut items) => {
                items.push(item);
                Self::Many(items)
            }
        };
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(item) => item,
            Self::Many(items) => items,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(item) => item,
            Self::Many(items) => items,
        }
    }
}

impl<T: PartialEq> PartialEq for Few<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Few<T> {}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            Self::One([item]) => (Some(item), Vec::new()),
            Self::Many(items) => (None, items),
        };
        one.into_iter().chain(many)
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut few = Self::default();
        for item in items {
            few.push(item);
        }
        few
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_is_kept_in_place() {
        let few: Few<u64> = [7].into_iter().collect();
        assert!(matches!(few, Few::One([7])));
        assert_eq!(&*few, [7]);
    }

    #[test]
    fn none_and_several_are_lists() {
        assert!(Few::<u64>::default().is_empty());
        let mut few: Few<u64> = (0..3).collect();
        few[1] = 9;
        few.push(5);
        assert_eq!(&*few, [0, 9, 2, 5]);
        assert_eq!(few, [0, 9, 2, 5].into_iter().collect());
    }
}
