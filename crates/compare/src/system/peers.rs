//! Where the peers' programs are: built beside `trib` in a build folder, or from installed sources
//! into the user's cache.
//!
//! An installation has their sources only, because which MPIs there are, and how the programs are
//! built, depends on the machine that measures.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the programs that belong to this `trib`, and the sources that they have to be
/// built from first, if any.
pub(super) fn locate(trib: &Path) -> (PathBuf, Option<PathBuf>) {
    let folder = trib.parent().unwrap_or(Path::new("."));
    let sources = folder.join("../share/tributary/bench/peers");
    match cache().filter(|_| sources.join("Makefile").exists()) {
        Some(cache) => (cache.join(concat!("tributary/bench-peers-", env!("CARGO_PKG_VERSION"))), Some(sources)),
        None => (folder.join("bench"), None),
    }
}

/// Builds what is missing or old.
pub(super) fn build(sources: &Path, folder: &Path) -> Result<(), String> {
    let output = format!("OUTPUT={}", folder.display());
    let command = format!("make -C {} {output}", sources.display());
    let done = Command::new("make").arg("--silent").arg("-C").arg(sources).arg(&output).output();
    match done {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => {
            let errors = String::from_utf8_lossy(&done.stderr);
            let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            Err(format!("the peers' programs cannot be built: {last}; see `{command}`"))
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Err(format!("the peers' programs are not built: install make and a C compiler, then run `{command}`"))
        }
        Err(cause) => Err(format!("the peers' programs cannot be built: cannot run make: {cause}")),
    }
}

fn cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
}
