//! The manager's credentials while it runs. They follow their files: who renews a certificate
//! need not restart the manager.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use trib_messages::hello::Role;

use crate::certificate::Certificate;
use crate::credentials::files_of;
use crate::doorman::Doorman;
use crate::withdrawn::Withdrawn;
use crate::{Credentials, Error};

/// What every handshake of the manager begins with.
pub(crate) struct Doors {
    folder: PathBuf,
    withdrawn: Arc<Withdrawn>,
    current: Mutex<Current>,
}

struct Current {
    credentials: Arc<Credentials>,
    verifier: Arc<dyn ClientCertVerifier>,
    /// The files as they were when they were read, or when they could not be.
    files: [Stamp; 3],
    looked: Instant,
}

/// What changes when a file is exchanged or written, or given other rights.
type Stamp = Option<(u64, i64, i64, u64)>;

/// The two sides of a handshake.
pub(crate) struct Handshake {
    pub config: Arc<ServerConfig>,
    pub own: Certificate,
    /// What the other side shows, once it has.
    pub shown: Arc<OnceLock<Certificate>>,
}

impl Doors {
    /// Reads credentials and the list of withdrawn certificates.
    pub(crate) fn open(folder: &Path) -> Result<Doors, Error> {
        let withdrawn = Arc::new(Withdrawn::open(folder)?);
        Ok(Doors { folder: folder.into(), withdrawn, current: Mutex::new(Current::read(folder, Role::Manager)?) })
    }

    /// What the next handshake takes.
    pub(crate) fn handshake(&self) -> Result<Handshake, Error> {
        let (credentials, verifier) = {
            let mut current = self.lock();
            if current.looked.elapsed() >= GLANCE {
                self.look(&mut current);
            }
            (current.credentials.clone(), current.verifier.clone())
        };
        let shown = Arc::new(OnceLock::new());
        let doorman = Doorman::new(verifier, self.withdrawn.clone(), shown.clone());
        let config = credentials.server_config(Arc::new(doorman))?;
        Ok(Handshake { config, own: credentials.certificate().clone(), shown })
    }

    /// The list of withdrawn certificates.
    pub(crate) fn withdrawn(&self) -> &Withdrawn {
        &self.withdrawn
    }

    fn look(&self, current: &mut Current) {
        current.looked = Instant::now();
        let files = stamps(&self.folder, Role::Manager);
        if files == current.files {
            return;
        }
        match Current::read(&self.folder, Role::Manager) {
            Ok(read) => {
                tracing::info!(certificate = %read.credentials.certificate(), "renewed credentials are read");
                *current = read;
            }
            // They may be half written. The next change of a file is a new try.
            Err(error) => {
                tracing::warn!(%error, "renewed credentials are not taken, and those from before stay");
                current.files = files;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn read(folder: &Path, role: Role) -> Result<Current, Error> {
        // Looked at first: what changes while they are read is seen the next time.
        let files = stamps(folder, role);
        let credentials = Credentials::load(folder, role)?;
        let verifier = credentials.verifier()?;
        Ok(Current { credentials: Arc::new(credentials), verifier, files, looked: Instant::now() })
    }
}

fn stamps(folder: &Path, role: Role) -> [Stamp; 3] {
    files_of(folder, role).map(|path| {
        let file = fs::metadata(path).ok()?;
        Some((file.ino(), file.ctime(), file.ctime_nsec(), file.len()))
    })
}

/// How often the files are looked at, at most.
const GLANCE: Duration = Duration::from_secs(1);
