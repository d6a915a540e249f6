//! Round trips of the states of every algorithm, and fuzzing with random and damaged bytes.

use super::*;
use crate::receipt::ChargePlace;
use crate::rule::Decimal;
use crate::testing::{Rng, trace};

const SECOND_US: u64 = 1_000_000;

fn bytes_of(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.write(&mut bytes);
    bytes
}

fn read(bytes: &[u8]) -> Result<State, BytesError> {
    let mut reader = Reader::new(bytes);
    let state = State::read(&mut reader)?;
    reader.end().map(|()| state)
}

fn limits(rng: &mut Rng) -> Limit {
    let algorithm = *rng.pick(&trace::algorithms());
    let units = *rng.pick(&[1, 3, 20, 300, 1 << 31, LIMIT_MAX]);
    let window = Duration::from_millis(*rng.pick(&[1, 7, 1_000, 60_000, 86_400_000, 34_560_000_000]));
    Limit::new(Rate::new(units, window).unwrap(), Decimal::ZERO, algorithm)
}

/// One random operation on a state; returns its result as text.
fn step(state: &mut State, rng: &mut Rng, now_us: u64, places: &mut Vec<ChargePlace>) -> String {
    let limit = *state.limit();
    let most = limit.units().min(1 << rng.below(40));
    let cost = rng.between(1, most);
    let ruling = state.decide(&limit, now_us, cost);
    match rng.below(8) {
        0 => format!("{:?}", state.credit(&limit, now_us, cost)),
        1 if !places.is_empty() => {
            let place = *rng.pick(places);
            format!("{:?}", state.refund(now_us, &place, cost))
        }
        2 => {
            state.charge_excess(&limit, now_us, cost.saturating_mul(16));
            format!("{:?}", state.usage(&limit, now_us))
        }
        _ if ruling.allowed() => {
            places.push(state.charge(&limit, now_us, cost));
            format!("{ruling:?}")
        }
        _ => format!("{ruling:?}"),
    }
}

/// The time of the next step: mostly a little later, sometimes a window, sometimes set back.
fn later(rng: &mut Rng, limit: &Limit, now_us: u64) -> u64 {
    let stepped = match rng.below(10) {
        0 => now_us.saturating_sub(rng.below(2 * limit.window_us())),
        1 => now_us + rng.below(3 * limit.window_us()),
        2 => now_us,
        _ => now_us + rng.below(limit.window_us() / 8),
    };
    stepped.min(TIME_MAX_US)
}

#[test]
fn a_state_that_was_read_back_behaves_like_the_original() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let limit = limits(&mut rng);
        let (mut state, mut places, mut now_us) = (State::new(limit), Vec::new(), 1_745_000_000 * SECOND_US);
        for index in 0..120 {
            let mut back = read(&bytes_of(&state)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(bytes_of(&back), bytes_of(&state), "seed {seed}, step {index}");
            assert_eq!(back.ends_us(), state.ends_us(), "seed {seed}, step {index}");
            assert_eq!(back.charged_by_us(), state.charged_by_us(), "seed {seed}, step {index}");
            let (mut same, mut its_places) = (rng.clone(), places.clone());
            let result = step(&mut state, &mut rng, now_us, &mut places);
            assert_eq!(step(&mut back, &mut same, now_us, &mut its_places), result, "seed {seed}, {limit:?}");
            assert_eq!(its_places, places, "seed {seed}, step {index}");
            now_us = later(&mut rng, &limit, now_us);
        }
    }
}

/// Runs random operations on a state read from untrusted bytes.
fn exercise(mut state: State, rng: &mut Rng) {
    let limit = *state.limit();
    let mut places = Vec::new();
    let starts = [0, state.charged_by_us(), state.ends_us(), TIME_MAX_US - limit.window_us(), TIME_MAX_US];
    for start_us in starts {
        let mut now_us = start_us.min(TIME_MAX_US);
        for _ in 0..6 {
            step(&mut state, rng, now_us, &mut places);
            let back = read(&bytes_of(&state)).expect("a state round-trips after every operation");
            assert_eq!(back.usage(&limit, now_us), state.usage(&limit, now_us));
            now_us = later(rng, &limit, now_us);
        }
    }
    let raised = Limit::enforcing(limit.rate(), limit.rate().limit(), limit.algorithm()).unwrap();
    let _ = state.changed(&raised, TIME_MAX_US).usage(&raised, 0);
}

#[test]
fn any_bytes_are_a_state_or_an_error() {
    let mut accepted = 0;
    for seed in 0..60_000 {
        let mut rng = Rng::new(seed);
        let limit = limits(&mut rng);
        let mut bytes = Vec::new();
        write_limit(&mut bytes, &limit);
        for _ in 0..rng.below(14) {
            match rng.below(4) {
                0 => write_number(&mut bytes, rng.draw()),
                1 => write_number(&mut bytes, rng.draw() >> rng.below(64)),
                _ => bytes.push(u8::try_from(rng.below(4)).unwrap()),
            }
        }
        if let Ok(state) = read(&bytes) {
            accepted += 1;
            exercise(state, &mut rng);
        }
    }
    assert!(accepted > 500, "only {accepted} inputs were states: too few for a meaningful test");
}

#[test]
fn a_damaged_state_is_a_state_or_an_error() {
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let limit = limits(&mut rng);
        let (mut state, mut places, mut now_us) = (State::new(limit), Vec::new(), 1_745_000_000 * SECOND_US);
        for _ in 0..rng.below(30) {
            step(&mut state, &mut rng, now_us, &mut places);
            now_us = later(&mut rng, &limit, now_us);
        }
        let mut bytes = bytes_of(&state);
        for _ in 0..rng.between(1, 3) {
            let at = usize::try_from(rng.below(bytes.len() as u64)).unwrap();
            match rng.below(3) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] ^= 1 << rng.below(8),
                _ => bytes[at] = u8::try_from(rng.below(256)).unwrap(),
            }
        }
        if let Ok(state) = read(&bytes) {
            exercise(state, &mut rng);
        }
    }
}

#[test]
fn ordinary_states_are_small() {
    let bytes = |algorithm| {
        let limit = Limit::of("9500/24h", algorithm);
        let mut state = State::new(limit);
        for index in 0..95 {
            state.charge(&limit, (1_745_000_000 + index * 900) * SECOND_US, 100);
        }
        bytes_of(&state).len()
    };
    let sizes = Algorithm::ALL.map(bytes);
    assert_eq!(sizes, [591, 687, 170, 17, 15, 37], "95 calls of cost 100 in a day");
}
