//! Stores for the suite to judge: some that break a promise, and one that has nothing in common with ours.

mod faulty_store;
mod model_backed_store;

pub use faulty_store::{Fault, FaultyStore};
pub use model_backed_store::ModelBackedStore;
