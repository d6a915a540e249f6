//! The files of the repository.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Paths, from the root, of all files that are tracked or would be: what is new counts before it is
/// added, what is ignored never does.
pub(crate) fn list() -> Result<Vec<String>> {
    // A clone may belong to another user than the one who tests it, as in containers, and git would
    // refuse to read it; only the index is read here, so nothing of it is executed.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .output()
        .context("cannot start git; install it")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let paths = String::from_utf8(output.stdout).context("a path is not UTF-8; rename the file")?;
    let mut paths: Vec<String> = paths.split_terminator('\0').map(String::from).collect();
    // A file that was deleted but is still tracked is listed too.
    paths.retain(|path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()));
    paths.sort_unstable();
    Ok(paths)
}
