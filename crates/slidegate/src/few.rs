//! A list that does not allocate for a single item.

/// Most admissions are one charge of a rule with one limit, and a decision must not allocate for them.
pub(crate) type Few<T> = smallvec::SmallVec<[T; 1]>;
