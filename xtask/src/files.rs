//! The files of the repository.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Paths, from the root, of all tracked files and all new files that are not ignored.
pub(crate) fn list() -> Result<Vec<String>> {
    // In containers the clone may belong to another user, and git would refuse to read it. Only the index is read here,
    // so nothing of the clone is executed.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .output()
        .context("cannot start git; install it")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let paths = String::from_utf8(output.stdout).context("a path is not UTF-8; rename the file")?;
    let mut paths: Vec<String> = paths.split_terminator('\0').map(String::from).collect();
    // The list includes deleted files that are still tracked.
    paths.retain(|path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()));
    paths.sort_unstable();
    Ok(paths)
}
