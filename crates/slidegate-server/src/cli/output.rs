//! Data on stdout.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes data and flushes it. A closed pipe is not an error: its reader, such as `head`, has what it wants.
pub(super) fn write_data(data: &[u8], out: &mut impl Write) -> Result<()> {
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
}
