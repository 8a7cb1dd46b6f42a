//! The files that a manager reads once, when it starts: topology, tenants and constants.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use trib_control::{Certificate, Listener};
use trib_topology::Topology;
use trib_topology::predict::Constants;

use crate::CONSTANTS_FILE;
use crate::Error;
use crate::Options;
use crate::tenancy::Policy;

/// What they say.
pub(crate) struct Inputs {
    pub topology: Topology,
    pub policy: Policy,
    pub constants: Constants,
}

impl Inputs {
    /// Reads them.
    pub(crate) fn read(options: &Options) -> Result<Inputs, Error> {
        let topology = Topology::load(&options.topology)?;
        let constants = constants_file(options).map_or_else(|| Ok(Constants::server()), Constants::load)?;
        let policy = options.tenants.as_deref().map(|file| Policy::load(file, &topology)).transpose()?;
        Ok(Inputs { topology, policy: policy.unwrap_or_default(), constants })
    }
}

/// The constants' file that is named, else this machine's, if it has one.
fn constants_file(options: &Options) -> Option<&Path> {
    let usual = Path::new(CONSTANTS_FILE);
    options.constants.as_deref().or_else(|| usual.exists().then_some(usual))
}

/// The files as they were when they were read.
pub(crate) struct Stamps(Vec<(PathBuf, Stamp)>);

/// What changes when a file is exchanged or written.
type Stamp = Option<(u64, i64, i64, u64)>;

impl Stamps {
    /// Of the files as they are now.
    pub(crate) fn of(options: &Options) -> Stamps {
        let files = [Some(options.topology.as_path()), options.tenants.as_deref(), constants_file(options)];
        Stamps(files.into_iter().flatten().map(|file| (file.to_owned(), stamp(file))).collect())
    }

    /// Those that are not any more as they were.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter(|(file, then)| stamp(file) != *then).map(|(file, _)| file.as_path())
    }
}

fn stamp(file: &Path) -> Stamp {
    let file = fs::metadata(file).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec(), file.len()))
}

/// What a manager with these options would start with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The name of the fabric.
    pub fabric: String,
    /// The number of aggregation nodes in the topology.
    pub nodes: usize,
    /// The number of tenants in the tenants file, if there is one.
    pub tenants: Option<usize>,
    /// The number of withdrawn certificates.
    pub withdrawn: usize,
    /// The manager's own certificate.
    pub certificate: Certificate,
}

/// Reads all that a manager reads when it starts but the file of its jobs, which another manager
/// may have open. Nothing is bound, and nothing is written.
///
/// # Errors
/// Those with which the manager would not start.
pub fn check(options: &Options) -> Result<Checked, Error> {
    let Inputs { topology, policy, .. } = Inputs::read(options)?;
    let (certificate, withdrawn) = Listener::check(&options.credentials)?;
    let tenants = options.tenants.as_ref().map(|_| policy.tenants.len());
    Ok(Checked { fabric: topology.name().to_owned(), nodes: topology.nodes().len(), tenants, withdrawn, certificate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_again_has_changed() {
        let file = std::env::temp_dir().join(format!("trib-stamps-{}", std::process::id()));
        fs::write(&file, "one").unwrap();
        let options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            topology: file.clone(),
            credentials: PathBuf::new(),
            state: None,
            tenants: None,
            constants: Some(file.with_extension("missing")),
        };
        let stamps = Stamps::of(&options);
        assert_eq!(stamps.changed().count(), 0);
        fs::write(&file, "another").unwrap();
        assert_eq!(stamps.changed().collect::<Vec<_>>(), [&file]);
        fs::remove_file(&file).unwrap();
        assert_eq!(stamps.changed().count(), 1, "one that is gone has changed, too");
    }
}
