//! A log file that may be moved away while we write to it, as logrotate(8) does.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// The file.
pub(super) struct LogFile {
    path: PathBuf,
    file: Mutex<File>,
}

/// The right to write one entry, for as long as it lives.
pub(super) struct Entry<'a>(MutexGuard<'a, File>);

impl LogFile {
    /// Opens the file for appending. The group of a new file's owner may read it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(LogFile { path: path.to_owned(), file: Mutex::new(open(path)?) })
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Entry<'a>;

    // Entries are rare, so each of them can check whether the path still leads to the file: no
    // signal is needed.
    fn make_writer(&'a self) -> Entry<'a> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if !leads_to(&self.path, &file)
            && let Ok(again) = open(&self.path)
        {
            *file = again;
        }
        Entry(file)
    }
}

impl Write for Entry<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o640).open(path)
}

fn leads_to(path: &Path, file: &File) -> bool {
    let inode = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (path.metadata(), file.metadata()) {
        (Ok(there), Ok(here)) => inode(there) == inode(here),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_follows_a_rotation_goes_to_the_new_file() {
        let folder = std::env::temp_dir().join(format!("trib-log-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, moved) = (folder.join("an.log"), folder.join("an.log.1"));
        let log = LogFile::open(&path).unwrap();
        log.make_writer().write_all(b"one\n").unwrap();
        fs::rename(&path, &moved).unwrap();
        log.make_writer().write_all(b"two\n").unwrap();
        let again = LogFile::open(&path).unwrap();
        again.make_writer().write_all(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&moved).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\nthree\n");
        fs::remove_dir_all(&folder).unwrap();
        // The file cannot be opened again, so entries still go to the old one.
        log.make_writer().write_all(b"four\n").unwrap();
    }
}
