//! The certificates that are not taken any more, though they have not ended.
//!
//! ```text
//!   # a comment, up to the end of its line
//!   0A3F...C1    # node leaf0, until 2027-11-26 15:48:01 UTC; withdrawn 2026-12-01 09:12:44 UTC
//! ```
//! One serial number a line. `trib credentials withdraw` adds to the file, and the manager reads it
//! when it starts and on SIGHUP.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use crate::Error;
use crate::certificate::Serial;

/// The name of the file, in the folder of the fabric's credentials.
pub(crate) const WITHDRAWN: &str = "withdrawn.txt";

/// The list as it was read last.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    path: PathBuf,
    serials: RwLock<BTreeSet<Serial>>,
}

impl Withdrawn {
    /// Reads the list in the folder of the fabric's credentials.
    pub(crate) fn open(folder: &Path) -> Result<Withdrawn, Error> {
        let path = folder.join(WITHDRAWN);
        let serials = RwLock::new(read(&path)?);
        Ok(Withdrawn { path, serials })
    }

    /// Reads it again. If that fails, what it was still holds. Returns the number of its lines.
    pub(crate) fn read_again(&self) -> Result<usize, Error> {
        let serials = read(&self.path)?;
        let count = serials.len();
        *self.serials.write().unwrap_or_else(PoisonError::into_inner) = serials;
        Ok(count)
    }

    /// The number of certificates on it.
    pub(crate) fn count(&self) -> usize {
        self.serials.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn has(&self, serial: &Serial) -> bool {
        self.serials.read().unwrap_or_else(PoisonError::into_inner).contains(serial)
    }
}

/// The serial numbers in the file. A file that is not there withdraws nothing.
pub(crate) fn read(path: &Path) -> Result<BTreeSet<Serial>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(cause) => return Err(Error::CannotRead { path: path.into(), cause }),
    };
    let serials = text.lines().enumerate().filter_map(|(at, line)| {
        let serial = line.split('#').next().unwrap_or_default().trim();
        (!serial.is_empty()).then(|| {
            let bad = |cause| Error::BadList { path: path.into(), line: at + 1, cause };
            serial.parse::<Serial>().map_err(bad)
        })
    });
    serials.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_wrong_is_named_and_the_list_stays_as_it_was() {
        let folder = std::env::temp_dir().join(format!("trib-withdrawn-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, one) = (folder.join(WITHDRAWN), "0A0B".parse::<Serial>().unwrap());
        let list = Withdrawn::open(&folder).unwrap();
        assert!(!list.has(&one), "no file, nothing withdrawn");
        fs::write(&path, "# all of them\n\n  0a:0b # node leaf0\n").unwrap();
        assert_eq!((list.read_again().unwrap(), list.count(), list.has(&one)), (1, 1, true));
        fs::write(&path, "# all of them\nleaf0\n").unwrap();
        let error = list.read_again().unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("leaf0"), "{error}");
        assert!(list.has(&one));
        fs::remove_dir_all(&folder).unwrap();
    }
}
