//! Data on stdout, errors on stderr.

use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Error, Result};

use crate::config::ConfigError;
use crate::text::escaped;

/// Writes data and flushes it.
pub(super) fn write_data(data: &[u8], out: &mut impl Write) -> Result<()> {
    written(out.write_all(data).and_then(|()| out.flush()))
}

/// The result of a write to stdout. A closed pipe is not an error: its reader, such as `head`, has what it wants.
pub(super) fn written(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
}

/// Writes an error, as a line per mistake. A closed stderr is ignored.
pub(super) fn write_error(error: &Error, err: &mut impl Write) {
    for line in error_lines(error) {
        let _ = writeln!(err, "error: {line}");
    }
}

/// A line per mistake of a configuration, one line of any other error. Invisible characters are escaped: paths and the
/// texts of servers may contain them.
pub(super) fn error_lines(error: &Error) -> Vec<String> {
    match error.downcast_ref::<ConfigError>() {
        Some(ConfigError { mistakes }) => {
            mistakes.iter().map(|mistake| escaped(&mistake.to_string())).collect()
        }
        None => vec![escaped(&format!("{error:#}"))],
    }
}
