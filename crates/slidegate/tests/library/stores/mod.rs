//! Stores for the conformance suite: faulty ones, and one that shares no code with ours.

mod faulty_store;
mod model_backed_store;

pub use faulty_store::{Fault, FaultyStore};
pub use model_backed_store::ModelBackedStore;
