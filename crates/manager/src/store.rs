//! The admitted jobs, kept in a file: a manager that is killed and started again goes on where it was.
//!
//! An embedded database does the writing (redb): a job is in the file before its ticket leaves the manager, and a
//! kill at any moment leaves either the state before or the state after. What it holds is what the status shows;
//! keys of jobs stay with ranks and nodes.

use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use trib_wire::control::reply::JobStatus;
use trib_wire::ids::JobId;

/// The file.
pub(crate) struct Store {
    path: PathBuf,
    database: Database,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} the manager's state in {path}: {cause}", path = .path.display())]
pub struct StoreError {
    what: &'static str,
    path: PathBuf,
    cause: String,
}

/// What an earlier manager left.
#[derive(Default)]
pub(crate) struct Kept {
    /// The last job number that was given; 0: none yet.
    pub(crate) last: u32,
    /// Its jobs, by their numbers.
    pub(crate) jobs: Vec<JobStatus>,
}

impl Store {
    /// Opens the file or makes an empty one. One manager at a time has it.
    pub(crate) fn open(path: &Path) -> Result<Store, StoreError> {
        let wrong = |cause: String| StoreError { what: "open", path: path.to_owned(), cause };
        let database = Database::create(path).map_err(|error| wrong(error.to_string()))?;
        let store = Store { path: path.to_owned(), database };
        // So that readers find the tables.
        store.write("open", |_, _| Ok(()))?;
        Ok(store)
    }

    /// All that is kept. A record that cannot be read is from another version; its job is left to its nodes.
    pub(crate) fn load(&self) -> Result<Kept, StoreError> {
        let read = || -> Result<Kept, redb::Error> {
            let transaction = self.database.begin_read()?;
            let last = transaction.open_table(NUMBERS)?.get(LAST)?.map_or(0, |number| number.value());
            let mut jobs = Vec::new();
            for entry in transaction.open_table(JOBS)?.iter()? {
                let (id, record) = entry?;
                match serde_json::from_slice(record.value()) {
                    Ok(job) => jobs.push(job),
                    Err(error) => tracing::warn!(job = id.value(), %error, "a kept job cannot be read"),
                }
            }
            Ok(Kept { last, jobs })
        };
        read().map_err(|error| self.wrong("read", &error.to_string()))
    }

    /// Keeps a job, and the last number that was given.
    pub(crate) fn keep(&self, job: &JobStatus, last: u32) -> Result<(), StoreError> {
        let record = serde_json::to_vec(job).expect("a status has string keys only");
        self.write("write", |jobs, numbers| {
            jobs.insert(job.id.0, record.as_slice())?;
            numbers.insert(LAST, last)?;
            Ok(())
        })
    }

    /// Forgets a job.
    pub(crate) fn forget(&self, job: JobId) -> Result<(), StoreError> {
        self.write("write", |jobs, _| {
            jobs.remove(job.0)?;
            Ok(())
        })
    }

    fn write(&self, what: &'static str, change: impl FnOnce(&mut Jobs<'_>, &mut Numbers<'_>) -> Changed) -> Done {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            change(&mut transaction.open_table(JOBS)?, &mut transaction.open_table(NUMBERS)?)?;
            Ok(transaction.commit()?)
        };
        write().map_err(|error| self.wrong(what, &error.to_string()))
    }

    fn wrong(&self, what: &'static str, cause: &str) -> StoreError {
        StoreError { what, path: self.path.clone(), cause: cause.to_owned() }
    }
}

type Jobs<'t> = redb::Table<'t, u32, &'static [u8]>;
type Numbers<'t> = redb::Table<'t, &'static str, u32>;
type Changed = Result<(), redb::StorageError>;
type Done = Result<(), StoreError>;

/// Job number to its status as JSON.
const JOBS: TableDefinition<u32, &[u8]> = TableDefinition::new("jobs");
const NUMBERS: TableDefinition<&str, u32> = TableDefinition::new("numbers");
const LAST: &str = "last job";

#[cfg(test)]
mod tests {
    use trib_wire::control::jobs::Names;

    use super::*;

    fn job(id: u32) -> JobStatus {
        let (name, user, nodes) = ("prog".into(), "ann".into(), vec!["root".into()]);
        let hosts = Names { count: 2, list: "h[0-1]".into() };
        let (root, around) = ("root".into(), Vec::new());
        let (since, limits, fallback, adopted) = (5, None, None, false);
        JobStatus { id: JobId(id), name, user, ranks: 3, nodes, since, hosts, root, around, limits, fallback, adopted }
    }

    #[test]
    fn what_was_kept_is_there_after_another_start() {
        let folder = std::env::temp_dir().join(format!("trib-store-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("jobs");
        {
            let store = Store::open(&path).unwrap();
            assert_eq!((store.load().unwrap().last, store.load().unwrap().jobs.len()), (0, 0));
            // A number may be given before another and kept after it.
            [7, 9, 8].map(job).iter().for_each(|job| store.keep(job, 9).unwrap());
            store.forget(JobId(8)).unwrap();
            let second = Store::open(&path).map(drop).unwrap_err().to_string();
            assert!(second.contains(path.to_str().unwrap()), "{second}");
        }
        let kept = Store::open(&path).unwrap().load().unwrap();
        assert_eq!((kept.last, kept.jobs), (9, vec![job(7), job(9)]));
        std::fs::write(&path, b"not a database").unwrap();
        assert!(Store::open(&path).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
