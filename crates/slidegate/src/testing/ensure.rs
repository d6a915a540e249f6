//! Assertions that return an error instead of panicking, for promises.

/// Returns an error with this message unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($story:tt)+) => {
        if !$holds {
            return Err(format!($($story)+));
        }
    };
}

/// Returns an error with this message and both values unless they are equal.
macro_rules! ensure_eq {
    ($found:expr, $promised:expr, $($story:tt)+) => {
        match ($found, $promised) {
            (found, promised) => {
                if found != promised {
                    let story = format!($($story)+);
                    return Err(format!("{story}: found {found:?}, promised {promised:?}"));
                }
            }
        }
    };
}
