//! Worked examples of counting and of the boundary between windows.

use super::subject::{BOUNDARY_US, DAY_US, MINUTE_US, SECOND_US, Subject, rule};
use crate::rule::{Algorithm, Rule};
use crate::store::Store;

/// The weighted counter, W = 60 min, previous 70, current 40, 37.5 min into the window: 66.25 of 100.
pub async fn worked_example_1<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let (subject, rule) = (Subject::new(fresh).await, rule("api", &["100/60m"], Algorithm::SlidingCounter));
    let now_us = BOUNDARY_US + 37 * MINUTE_US + 30 * SECOND_US;
    subject.admit(BOUNDARY_US - MINUTE_US, &rule, 70).await?;
    subject.admit(now_us, &rule, 40).await?;
    ensure_eq!(subject.used(now_us, &rule).await?, 67, "40 + 70 x 0.375, rounded up");
    ensure!(subject.passes(now_us, &rule, 33).await?, "66.25 + 33 of 100 does not pass");
    ensure!(!subject.passes(now_us, &rule, 34).await?, "66.25 + 34 of 100 passes");
    Ok(())
}

/// The weighted counter, W = 60 s, 45 s into a window, at a limit of 5: three states, three answers.
pub async fn worked_example_2<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    let now_us = 1_745_000_145 * SECOND_US;
    let loose = rule("api", &["20/60s"], Algorithm::SlidingCounter);
    let five = rule("api", &["5/60s"], Algorithm::SlidingCounter);
    for (previous, current, allowed, used) in [(8, 3, false, 5), (4, 3, true, 5), (6, 3, false, 5)] {
        let subject = Subject::new(fresh).await;
        subject.admit(now_us - 60 * SECOND_US, &loose, previous).await?;
        subject.admit(now_us, &loose, current).await?;
        subject.change(now_us, &five).await?;
        let decision = subject.ask(now_us, &five, 1).await?;
        let found = (decision.allowed(), decision.used());
        ensure_eq!(found, (allowed, Some(used)), "previous {previous}, current {current}");
    }
    Ok(())
}

/// The log at 3720 s: the charge at 3650 s has expired, three remain, and each expires exactly W after it was
/// charged.
pub async fn worked_example_3<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for algorithm in Algorithm::ALL.into_iter().take(2) {
        let (subject, rule) = (Subject::new(fresh).await, rule("api", &["5/60s"], algorithm));
        for second in [3_650, 3_680, 3_695, 3_710] {
            subject.admit(second * SECOND_US, &rule, 1).await?;
        }
        ensure_eq!(subject.used(3_720 * SECOND_US, &rule).await?, 3, "{algorithm}: at 3720 s");
        subject.admit(3_720 * SECOND_US, &rule, 1).await?;
        for (second, left) in [(3_740, 3), (3_755, 2), (3_770, 1), (3_780, 0)] {
            let at_us = second * SECOND_US;
            ensure_eq!(subject.used(at_us - 1, &rule).await?, left + 1, "{algorithm}: before {second} s");
            ensure_eq!(subject.used(at_us, &rule).await?, left, "{algorithm}: at {second} s");
        }
    }
    Ok(())
}

/// The boundary: 5 per minute, 5 asked at 00:58 and 5 at 01:02.
pub async fn worked_example_4<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for (name, promised) in
        [("fixed-window", 10), ("sliding-log", 5), ("compact-log", 5), ("sliding-buckets", 5)]
    {
        let (before_us, after_us) = (BOUNDARY_US + 58 * SECOND_US, BOUNDARY_US + 62 * SECOND_US);
        straddle(fresh, (name, "5/1m"), before_us, after_us, promised).await?;
    }
    Ok(())
}

/// The boundary at scale: 50 per 10 s asked one second before and one second after it; 100 per minute at
/// 11:59:59 and 12:00:01.
pub async fn worked_example_5<S: Store>(fresh: &impl AsyncFn() -> S) -> Result<(), String> {
    for (name, promised) in [
        ("fixed-window", 100),
        ("sliding-log", 50),
        ("compact-log", 50),
        ("sliding-buckets", 50),
        ("sliding-counter", 55),
        ("gcra", 60),
    ] {
        let (before_us, after_us) = (BOUNDARY_US - SECOND_US, BOUNDARY_US + SECOND_US);
        straddle(fresh, (name, "50/10s"), before_us, after_us, promised).await?;
    }
    let noon_us = BOUNDARY_US + DAY_US / 2;
    for (name, promised) in [("fixed-window", 200), ("sliding-log", 100)] {
        straddle(fresh, (name, "100/1m"), noon_us - SECOND_US, noon_us + SECOND_US, promised).await?;
    }
    Ok(())
}

/// Asks for the whole limit, unit by unit, at each of two instants.
async fn straddle<S: Store>(
    fresh: &impl AsyncFn() -> S,
    (name, rate): (&str, &str),
    first_us: u64,
    second_us: u64,
    promised: u64,
) -> Result<(), String> {
    let subject = Subject::new(fresh).await;
    let rule: Rule = rule("api", &[rate], name.parse().expect("the names above are algorithms"));
    let mut admitted = 0;
    for at_us in [first_us, second_us] {
        for _ in 0..rule.cost_max() {
            admitted += u64::from(subject.ask(at_us, &rule, 1).await?.allowed());
        }
    }
    ensure_eq!(admitted, promised, "{name} {rate}: admitted across a boundary");
    Ok(())
}
