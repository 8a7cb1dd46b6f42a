//! A CUDA driver for machines without a GPU, built from `tests/cuda/stand_in.c`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Builds the stand-in and returns the library's path. Each call gives a file of its own, so that
/// each test has a driver that no other has lost or counts with.
///
/// # Panics
/// If gcc cannot build it.
pub fn stand_in_driver() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cuda/stand_in.c");
    let folder = std::env::temp_dir().join(format!("trib-stand-in-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the stand-in driver");
    let library = folder.join("libcuda.so.1");
    let flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"];
    let built = Command::new("gcc").args(flags).args([&library, &source]).status().expect("gcc");
    assert!(built.success(), "gcc cannot build {}", source.display());
    library
}
