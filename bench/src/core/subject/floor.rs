//! The floor: a hash table of counters, without time, limits or threads.

use hashbrown::HashMap;

use super::Worker;

#[derive(Default)]
pub(crate) struct Floor(HashMap<Box<str>, u64>);

impl Worker for Floor {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        if let Some(count) = self.0.get_mut(key) {
            *count += 1;
        } else {
            self.0.insert(key.into(), 1);
        }
        true
    }
}
