//! How a promise says that it is broken.

/// Ends a promise with a story unless something holds.
macro_rules! ensure {
    ($holds:expr, $($story:tt)+) => {
        if !$holds {
            return Err(format!($($story)+));
        }
    };
}

/// Ends a promise with a story and both values unless they are equal.
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
