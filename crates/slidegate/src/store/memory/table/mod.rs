//! The tables of the memory store, from the outside in.
//!
//! ```text
//! layout       a rule in one geometry: a table per limit, a key in all of them or in none
//! limit_table  the states of one limit, and which receipts are void
//! split_table  one part while it is small, eight by the high bits of fingerprints from 2,048 keys on
//! any_part     a part of any algorithm, at the slot width that suits its keys
//! part         slots of (fingerprint, state) in one array, ascending, each at its home or a little behind
//! room         slots for new keys and bytes on the heap, within the budget
//! ```

pub(super) mod any_part;
pub(super) mod layout;
pub(super) mod limit_table;
pub(super) mod part;
pub(super) mod room;
pub(super) mod split_table;
