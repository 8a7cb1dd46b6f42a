//! The admitted jobs, kept in a file: a manager that is killed and started again goes on where it was.
//!
//! An embedded database does the writing (redb): a job is in the file before its ticket leaves the manager, and a
//! kill at any moment leaves either the state before or the state after. What it holds is what the status shows, and what
//! the job's tree takes of the fabric; keys of jobs stay with ranks and nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase as _, ReadableTable, TableDefinition};
use serde::de::DeserializeOwned;
use trib_topology::trees::Footprint;
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
    /// What their trees take, of those that were planned in a graph.
    pub(crate) footprints: BTreeMap<JobId, Footprint>,
}

impl Store {
    /// Opens the file or makes an empty one. One manager at a time has it.
    pub(crate) fn open(path: &Path) -> Result<Store, StoreError> {
        let wrong = |cause: String| StoreError { what: "open", path: path.to_owned(), cause };
        let database = Database::create(path).map_err(|error| wrong(error.to_string()))?;
        let store = Store { path: path.to_owned(), database };
        // So that readers find the tables.
        store.write("open", |_| Ok(()))?;
        Ok(store)
    }

    /// All that is kept. A record that cannot be read is from another version; its job is left to its nodes.
    pub(crate) fn load(&self) -> Result<Kept, StoreError> {
        let read = || -> Result<Kept, redb::Error> {
            let transaction = self.database.begin_read()?;
            let last = transaction.open_table(NUMBERS)?.get(LAST)?.map_or(0, |number| number.value());
            let jobs = records(&transaction.open_table(JOBS)?)?.into_iter().map(|(_, job)| job).collect();
            let footprints = records(&transaction.open_table(FOOTPRINTS)?)?;
            let footprints = footprints.into_iter().map(|(id, footprint)| (JobId(id), footprint)).collect();
            Ok(Kept { last, jobs, footprints })
        };
        read().map_err(|error| self.wrong("read", &error.to_string()))
    }

    /// Keeps a job, what its tree takes, and the last number that was given.
    pub(crate) fn keep(&self, job: &JobStatus, footprint: Option<&Footprint>, last: u32) -> Result<(), StoreError> {
        let record = serde_json::to_vec(job).expect("a status has string keys only");
        let footprint = footprint.map(|footprint| serde_json::to_vec(footprint).expect("a footprint has no keys"));
        self.write("write", |tables| {
            tables.jobs.insert(job.id.0, record.as_slice())?;
            if let Some(footprint) = &footprint {
                tables.footprints.insert(job.id.0, footprint.as_slice())?;
            }
            tables.numbers.insert(LAST, last)?;
            Ok(())
        })
    }

    /// Forgets a job.
    pub(crate) fn forget(&self, job: JobId) -> Result<(), StoreError> {
        self.write("write", |tables| {
            tables.jobs.remove(job.0)?;
            tables.footprints.remove(job.0)?;
            Ok(())
        })
    }

    fn write(&self, what: &'static str, change: impl FnOnce(&mut Tables<'_>) -> Changed) -> Done {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            let (jobs, footprints) = (transaction.open_table(JOBS)?, transaction.open_table(FOOTPRINTS)?);
            change(&mut Tables { jobs, footprints, numbers: transaction.open_table(NUMBERS)? })?;
            Ok(transaction.commit()?)
        };
        write().map_err(|error| self.wrong(what, &error.to_string()))
    }

    fn wrong(&self, what: &'static str, cause: &str) -> StoreError {
        StoreError { what, path: self.path.clone(), cause: cause.to_owned() }
    }
}

/// All records of a table. One that cannot be read is from another version, and is left out.
fn records<T: DeserializeOwned>(table: &impl ReadableTable<u32, &'static [u8]>) -> Result<Vec<(u32, T)>, redb::Error> {
    let mut records = Vec::new();
    for entry in table.iter()? {
        let (id, record) = entry?;
        match serde_json::from_slice(record.value()) {
            Ok(record) => records.push((id.value(), record)),
            Err(error) => tracing::warn!(job = id.value(), %error, "a kept record cannot be read"),
        }
    }
    Ok(records)
}

/// The tables, open for writing.
struct Tables<'t> {
    jobs: redb::Table<'t, u32, &'static [u8]>,
    footprints: redb::Table<'t, u32, &'static [u8]>,
    numbers: redb::Table<'t, &'static str, u32>,
}

type Changed = Result<(), redb::StorageError>;
type Done = Result<(), StoreError>;

/// Job number to its status as JSON.
const JOBS: TableDefinition<u32, &[u8]> = TableDefinition::new("jobs");
/// Job number to what its tree takes as JSON.
const FOOTPRINTS: TableDefinition<u32, &[u8]> = TableDefinition::new("footprints");
const NUMBERS: TableDefinition<&str, u32> = TableDefinition::new("numbers");
const LAST: &str = "last job";

#[cfg(test)]
mod tests {
    use trib_wire::control::jobs::Names;
    use trib_wire::control::reply::LaneStatus;
    use trib_wire::control::tenant::JobCharge;
    use trib_wire::ids::NodeId;

    use super::*;

    fn job(id: u32) -> JobStatus {
        let (name, user, nodes) = ("prog".into(), "ann".into(), vec!["root".into()]);
        let hosts = Names { count: 2, list: "h[0-1]".into() };
        let (root, around): (String, _) = ("root".into(), Vec::new());
        let (since, limits, fallback, adopted) = (5, None, None, false);
        let charge = Some(JobCharge {
            tenant: Some("astro".into()),
            roots: vec![root.clone()],
            lanes: vec![1],
            memory_bytes: vec![9],
        });
        let lanes = vec![LaneStatus { tree: 0, root: root.clone(), first: NodeId(0), nodes: 1, weight: 5 }];
        let (id, ranks) = (JobId(id), 3);
        JobStatus { id, name, user, ranks, nodes, since, hosts, root, around, limits, fallback, adopted, charge, lanes }
    }

    #[test]
    fn what_was_kept_is_there_after_another_start() {
        let folder = std::env::temp_dir().join(format!("trib-store-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("jobs");
        let footprint: Footprint =
            serde_json::from_str(r#"{"links": [["h0", "s0", 1, 2]], "nodes": [["s0", 3, 0]]}"#).unwrap();
        {
            let store = Store::open(&path).unwrap();
            assert_eq!((store.load().unwrap().last, store.load().unwrap().jobs.len()), (0, 0));
            // A number may be given before another and kept after it.
            [7, 9, 8].map(job).iter().for_each(|job| store.keep(job, Some(&footprint), 9).unwrap());
            store.forget(JobId(8)).unwrap();
            let second = Store::open(&path).map(drop).unwrap_err().to_string();
            assert!(second.contains(path.to_str().unwrap()), "{second}");
        }
        let kept = Store::open(&path).unwrap().load().unwrap();
        assert_eq!((kept.last, kept.jobs), (9, vec![job(7), job(9)]));
        assert_eq!(kept.footprints, BTreeMap::from([(JobId(7), footprint.clone()), (JobId(9), footprint)]));
        std::fs::write(&path, b"not a database").unwrap();
        assert!(Store::open(&path).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
