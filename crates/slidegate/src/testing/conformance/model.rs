//! The differential test against the model.

use crate::testing::{Coverage, Event, ExpiringStore, differential, trace};

const SEEDS: u64 = 10;
const STEPS: usize = 400;

/// Seeded traces over all verbs give the answers of a slow and obvious model, field by field, and cover
/// every case; [`Event::Forgotten`] only if the store can be swept on demand.
pub async fn equals_the_model<S: ExpiringStore>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let mut coverage = Coverage::default();
    let mut sweeps = false;
    for algorithm in trace::algorithms() {
        for seed in 0..SEEDS {
            let store = fresh().await;
            differential::run(&store, seed, algorithm, STEPS, &mut coverage).await?;
            sweeps = store.sweep(0).await.is_some();
        }
    }
    let mut events = Event::ALL.to_vec();
    events.retain(|event| sweeps || *event != Event::Forgotten);
    let missing = coverage.missing_of(&events, &trace::algorithms(), 1);
    ensure!(missing.is_empty(), "cases that no trace has met: {}", missing.join(", "));
    Ok(())
}
