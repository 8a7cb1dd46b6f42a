//! The admitted jobs, and those that are over, kept in a file: a manager that is killed and started
//! again goes on where it was.
//!
//! An embedded database (redb) does the writing: a job is in the file before its ticket leaves the
//! manager, and a kill at any moment leaves either the state before or the state after. How a job
//! ended is written together with its end, at no further cost. The file holds what the status
//! shows, what the job's tree takes of the fabric, and what a rank shows that hosts nodes of its
//! job. The keys of jobs stay with ranks and nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable, TableDefinition};
use serde::de::DeserializeOwned;
use trib_messages::job::Pass;
use trib_messages::jobs::PastJob;
use trib_messages::reply::JobStatus;
use trib_topology::trees::Footprint;
use trib_wire::ids::JobId;

use super::jobs::Belongings;
use crate::lock::lock;

/// The file.
pub(crate) struct Store {
    path: PathBuf,
    opener: Opener,
    /// `None` after a failure. A database that could not write once, because the disk was full,
    /// takes nothing more; one that is opened anew does, when there is room again.
    database: Mutex<Option<Database>>,
}

type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

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
    /// The last job number that was given; 0 if none was given yet.
    pub(crate) last: u32,
    /// Its jobs, by their numbers.
    pub(crate) jobs: Vec<JobStatus>,
    /// What the trees take of those jobs that were planned in a graph.
    pub(crate) footprints: BTreeMap<JobId, Footprint>,
    /// What the deputies of those jobs show.
    pub(crate) passes: BTreeMap<JobId, Pass>,
    /// The jobs that ended, and the requests that were refused.
    pub(crate) past: Vec<PastJob>,
}

impl Store {
    /// Opens the file or makes an empty one. Only one manager at a time can have it open.
    pub(crate) fn open(path: &Path) -> Result<Store, StoreError> {
        let file = path.to_owned();
        Store::opened_by(path, Box::new(move || Database::create(&file)))
    }

    fn opened_by(path: &Path, opener: Opener) -> Result<Store, StoreError> {
        let store = Store { path: path.to_owned(), opener, database: Mutex::new(None) };
        // This makes the tables, which readers need.
        store.write("open", |_| Ok(()))?;
        Ok(store)
    }

    /// All that is kept. A record that cannot be read is from another version, and its job is left
    /// to its nodes.
    pub(crate) fn load(&self) -> Result<Kept, StoreError> {
        self.with("read", |database| {
            let transaction = database.begin_read()?;
            let last = transaction.open_table(NUMBERS)?.get(LAST)?.map_or(0, |number| number.value());
            let jobs = records(&transaction.open_table(JOBS)?)?.into_iter().map(|(_, job)| job).collect();
            let footprints = records(&transaction.open_table(FOOTPRINTS)?)?;
            let footprints = footprints.into_iter().map(|(id, footprint)| (JobId(id), footprint)).collect();
            let passes = records(&transaction.open_table(PASSES)?)?;
            let passes = passes.into_iter().map(|(id, pass)| (JobId(id), pass)).collect();
            let mut past = records(&transaction.open_table(ENDED)?)?;
            past.extend(records(&transaction.open_table(REFUSED)?)?);
            let past = past.into_iter().map(|(_, job)| job).collect();
            Ok(Kept { last, jobs, footprints, passes, past })
        })
    }

    /// Keeps a job, with what belongs to it and the last number that was given.
    pub(crate) fn keep(&self, job: &JobStatus, belongings: &Belongings<'_>, last: u32) -> Result<(), StoreError> {
        let Belongings { footprint, pass } = belongings;
        let record = serde_json::to_vec(job).expect("a status has string keys only");
        let footprint = footprint.map(|footprint| serde_json::to_vec(footprint).expect("a footprint has no keys"));
        let pass = serde_json::to_vec(pass).expect("a pass has no keys");
        self.write("write", |tables| {
            tables.jobs.insert(job.id.0, record.as_slice())?;
            if let Some(footprint) = &footprint {
                tables.footprints.insert(job.id.0, footprint.as_slice())?;
            }
            tables.passes.insert(job.id.0, pass.as_slice())?;
            tables.numbers.insert(LAST, last)?;
            Ok(())
        })
    }

    /// Forgets a job. If it ever ran, remembers how it ended.
    pub(crate) fn forget(&self, job: JobId, ended: Option<&Entry>) -> Result<(), StoreError> {
        self.write("write", |tables| {
            tables.jobs.remove(job.0)?;
            tables.footprints.remove(job.0)?;
            tables.passes.remove(job.0)?;
            ended.into_iter().try_for_each(|entry| tables.remember(entry))
        })
    }

    /// Remembers what ended or was refused. Each entry replaces the one that is forgotten for it.
    pub(crate) fn remember(&self, entries: &[Entry]) -> Result<(), StoreError> {
        self.write("write", |tables| entries.iter().try_for_each(|entry| tables.remember(entry)))
    }

    /// Forgets what need no longer be remembered.
    pub(crate) fn trim(&self, old: &[PastJob]) -> Result<(), StoreError> {
        self.write("write", |tables| {
            old.iter().try_for_each(|job| {
                let table = if job.is_refused() { &mut tables.refused } else { &mut tables.ended };
                table.remove(job.id.0).map(drop)
            })
        })
    }

    fn write(&self, what: &'static str, change: impl FnOnce(&mut Tables<'_>) -> Changed) -> Done {
        self.with(what, |database| {
            let transaction = database.begin_write()?;
            let (jobs, footprints) = (transaction.open_table(JOBS)?, transaction.open_table(FOOTPRINTS)?);
            let (ended, refused) = (transaction.open_table(ENDED)?, transaction.open_table(REFUSED)?);
            let (passes, numbers) = (transaction.open_table(PASSES)?, transaction.open_table(NUMBERS)?);
            change(&mut Tables { jobs, footprints, passes, ended, refused, numbers })?;
            Ok(transaction.commit()?)
        })
    }

    /// Works with the database, which is opened if it is not open, and closed after a failure.
    fn with<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let mut open = lock(&self.database);
        let done = || -> Result<T, redb::Error> {
            let database = open.take().map_or_else(&self.opener, Ok)?;
            let done = work(&database)?;
            *open = Some(database);
            Ok(done)
        };
        done().map_err(|error| StoreError { what, path: self.path.clone(), cause: error.to_string() })
    }
}

/// All records of a table, without those that cannot be read because they are from another version.
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

/// A change of what is remembered, for the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The job or request that is new, or of which more is known.
    pub(crate) job: PastJob,
    /// The one of the same kind that is forgotten for it.
    pub(crate) forgotten: Option<JobId>,
}

/// The tables, open for writing.
struct Tables<'t> {
    jobs: redb::Table<'t, u32, &'static [u8]>,
    footprints: redb::Table<'t, u32, &'static [u8]>,
    passes: redb::Table<'t, u32, &'static [u8]>,
    ended: redb::Table<'t, u32, &'static [u8]>,
    refused: redb::Table<'t, u32, &'static [u8]>,
    numbers: redb::Table<'t, &'static str, u32>,
}

impl Tables<'_> {
    fn remember(&mut self, entry: &Entry) -> Changed {
        let table = if entry.job.is_refused() { &mut self.refused } else { &mut self.ended };
        let record = serde_json::to_vec(&entry.job).expect("a job has string keys only");
        table.insert(entry.job.id.0, record.as_slice())?;
        if let Some(old) = entry.forgotten {
            table.remove(old.0)?;
        }
        Ok(())
    }
}

type Changed = Result<(), redb::StorageError>;
type Done = Result<(), StoreError>;

/// From the number of a job to its status as JSON.
const JOBS: TableDefinition<u32, &[u8]> = TableDefinition::new("jobs");
/// From the number of a job to what its tree takes, as JSON.
const FOOTPRINTS: TableDefinition<u32, &[u8]> = TableDefinition::new("footprints");
/// From the number of a job to what its deputies show, as JSON.
const PASSES: TableDefinition<u32, &[u8]> = TableDefinition::new("passes");
/// From the number of a job to how it ended, as JSON.
const ENDED: TableDefinition<u32, &[u8]> = TableDefinition::new("ended jobs");
/// From the number of a refused request to what is known of it, as JSON.
const REFUSED: TableDefinition<u32, &[u8]> = TableDefinition::new("refused requests");
const NUMBERS: TableDefinition<&str, u32> = TableDefinition::new("numbers");
const LAST: &str = "last job";

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use redb::StorageBackend;
    use redb::backends::FileBackend;
    use trib_messages::jobs::{JobEnd, Names};
    use trib_messages::reply::{LaneStatus, Resource};
    use trib_messages::tenant::JobCharge;
    use trib_wire::ids::NodeId;

    use super::*;

    fn job(id: u32) -> JobStatus {
        let (name, user, nodes) = ("prog".into(), "ann".into(), vec!["root".into()]);
        let hosts = Names { count: 2, list: "h[0-1]".into() };
        let (root, around): (String, _) = ("root".into(), Vec::new());
        let (since, limits, fallback, fault, adopted) = (5, None, None, None, false);
        let charge = Some(JobCharge {
            tenant: Some("astro".into()),
            roots: vec![root.clone()],
            lanes: vec![1],
            memory_bytes: vec![9],
            datagram_bytes: vec![8],
        });
        let lanes = vec![LaneStatus {
            tree: 0,
            root: root.clone(),
            first: NodeId(0),
            nodes: 1,
            weight: 5,
            from: None,
            to: None,
        }];
        let (id, ranks) = (JobId(id), 3);
        JobStatus {
            id,
            name,
            user,
            ranks,
            nodes,
            homes: vec![0],
            backups: Vec::new(),
            deputies: Vec::new(),
            in_ranks: Vec::new(),
            since,
            hosts,
            root,
            around,
            limits,
            fallback,
            fault,
            adopted,
            lost_ms: None,
            charge,
            lanes,
            prediction: None,
        }
    }

    fn refused() -> JobEnd {
        JobEnd::Refused(crate::refuse::refuse(Resource::Node, Some("leaf0"), "leaf0 is away"))
    }

    fn entry(id: u32, outcome: JobEnd, forgotten: Option<u32>) -> Entry {
        let JobStatus { name, user, ranks, hosts, root, .. } = job(id);
        let (began_ms, ended_ms, times, fallback) = (5_000, 6_000, 1, None);
        let id = JobId(id);
        let job =
            PastJob { id, name, user, tenant: None, ranks, hosts, root, began_ms, ended_ms, times, outcome, fallback };
        Entry { job, forgotten: forgotten.map(JobId) }
    }

    /// A file on a disk that is full once.
    #[derive(Debug)]
    struct OnDisk {
        file: FileBackend,
        full: Arc<AtomicBool>,
    }

    impl StorageBackend for OnDisk {
        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.file.read(offset, out)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.file.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.file.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            match self.full.swap(false, Ordering::Relaxed) {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => self.file.write(offset, data),
            }
        }

        fn close(&self) -> io::Result<()> {
            self.file.close()
        }
    }

    #[test]
    fn a_disk_that_was_full_once_is_written_when_it_has_room_again() {
        let path = std::env::temp_dir().join(format!("trib-store-full-{}", std::process::id()));
        let full = Arc::new(AtomicBool::new(false));
        let opener = {
            let (path, full) = (path.clone(), full.clone());
            move || {
                let file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
                let backend = OnDisk { file: FileBackend::new(file)?, full: full.clone() };
                Database::builder().create_with_backend(backend)
            }
        };
        let store = Store::opened_by(&path, Box::new(opener)).unwrap();
        let pass = Pass([7; 32]);
        let keep = |id: u32| store.keep(&job(id), &Belongings { footprint: None, pass: &pass }, id);
        keep(1).unwrap();
        full.store(true, Ordering::Relaxed);
        let error = keep(2).unwrap_err().to_string();
        assert!(error.starts_with("cannot write the manager's state in ") && !full.load(Ordering::Relaxed), "{error}");
        keep(3).unwrap();
        drop(store);
        let kept = Store::open(&path).unwrap().load().unwrap();
        assert_eq!((kept.last, kept.jobs), (3, vec![job(1), job(3)]));
        std::fs::remove_file(path).unwrap();
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
            // A number may be given before another one and kept after it.
            let pass = Pass([7; 32]);
            let belongings = Belongings { footprint: Some(&footprint), pass: &pass };
            [7, 9, 8].map(job).iter().for_each(|job| store.keep(job, &belongings, 9).unwrap());
            store.forget(JobId(8), Some(&entry(8, JobEnd::Lost, None))).unwrap();
            store
                .remember(&[entry(4, refused(), None), entry(5, refused(), Some(4)), entry(6, JobEnd::Ended, None)])
                .unwrap();
            store.trim(&[entry(6, JobEnd::Ended, None).job]).unwrap();
            let second = Store::open(&path).map(drop).unwrap_err().to_string();
            assert!(second.contains(path.to_str().unwrap()), "{second}");
        }
        let kept = Store::open(&path).unwrap().load().unwrap();
        assert_eq!((kept.last, kept.jobs), (9, vec![job(7), job(9)]));
        assert_eq!(kept.footprints, BTreeMap::from([(JobId(7), footprint.clone()), (JobId(9), footprint)]));
        assert_eq!(kept.passes, [7, 9].map(|id| (JobId(id), Pass([7; 32]))).into());
        assert_eq!(kept.past, [entry(8, JobEnd::Lost, None).job, entry(5, refused(), None).job]);
        std::fs::write(&path, b"not a database").unwrap();
        assert!(Store::open(&path).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
