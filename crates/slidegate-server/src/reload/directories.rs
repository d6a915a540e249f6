//! The directories that are watched for changes of a file.
//!
//! The directory is watched, not the file: editors rename a new file over the old one, and Kubernetes swaps a symbolic
//! link beside it (`..data`). A watch on the file itself would keep watching the deleted file.
//!
//! A watch follows its directory when that is moved, and ends when it is deleted. So the fingerprints of the file and
//! its directories are compared periodically, which also detects changes on file systems without events.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// Longest chain of symbolic links that is followed.
const LINKS_MAX: usize = 40;

/// The directories that are watched.
#[derive(Debug)]
pub(super) struct WatchedDirectories {
    watcher: RecommendedWatcher,
    path: PathBuf,
    watched: Vec<PathBuf>,
    fingerprint: Fingerprint,
}

/// Tells whether the file or one of its directories was replaced.
#[derive(Debug, PartialEq, Eq)]
struct Fingerprint {
    /// Each directory with its device and inode.
    directories: Vec<(PathBuf, Option<(u64, u64)>)>,
    file: Option<FileVersion>,
}

/// Device and inode, and seconds and nanoseconds of the change time.
type FileVersion = (u64, u64, i64, i64);

impl WatchedDirectories {
    /// Watches the directories of the file.
    pub(super) fn new(watcher: RecommendedWatcher, path: &Path) -> io::Result<Self> {
        let fingerprint = Fingerprint::of(path);
        let mut new = Self { watcher, path: path.to_owned(), watched: Vec::new(), fingerprint };
        new.follow();
        if new.watched.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(new) }
    }

    /// Watches the directories of the file again. A change may have redirected a link or replaced a directory by
    /// another of the same name.
    pub(super) fn follow(&mut self) {
        for directory in std::mem::take(&mut self.watched) {
            // The directory may be gone.
            self.watcher.unwatch(&directory).ok();
        }
        // Taken before the watch begins: a change in between is a difference.
        self.fingerprint = Fingerprint::of(&self.path);
        for (directory, _) in &self.fingerprint.directories {
            if self.watcher.watch(directory, RecursiveMode::NonRecursive).is_ok() {
                self.watched.push(directory.clone());
            }
        }
    }

    /// Whether the file or a directory differs from when they were followed.
    pub(super) fn have_changed(&self) -> bool {
        Fingerprint::of(&self.path) != self.fingerprint
    }
}

impl Fingerprint {
    fn of(path: &Path) -> Self {
        let directories = directories(path).into_iter().map(|directory| {
            let identity = fs::metadata(&directory).ok().map(|metadata| identity(&metadata));
            (directory, identity)
        });
        Self {
            directories: directories.collect(),
            file: fs::metadata(path).ok().map(|metadata| version(&metadata)),
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// A write changes the change time, a rename the identity.
fn version(metadata: &Metadata) -> FileVersion {
    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

/// The directory of the file and, if it is a link, of every target in the chain.
fn directories(path: &Path) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let target = path.read_link().ok().map(|target| directory.join(target));
        if !directories.contains(&directory) {
            directories.push(directory);
        }
        match target {
            Some(target) => path = target,
            None => break,
        }
    }
    directories
}
