//! Installs a service, and removes it without a trace.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::text::{CONFIGURATION, LOGS, STATE, user};
use super::{Service, account, supervisor};
use crate::settings::Daemon;

/// Where services are installed, and to what they belong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The folder below which all paths lie: `/`, or that of an image.
    pub root: PathBuf,
    /// The folder of the package to which the units belong; without one they belong to the
    /// administrator.
    pub prefix: Option<PathBuf>,
    /// The program that units run.
    pub program: PathBuf,
}

/// What was done, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// A file was written, or a folder or a user was made.
    Made(String),
    /// Something was removed.
    Removed(String),
    /// Something was left as it is, and why.
    Kept(String),
}

/// A service that could not be installed or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {cause}{}", if cause.kind() == io::ErrorKind::PermissionDenied { "; run as root, or give --root DIR" } else { "" })]
pub struct ServiceError {
    /// What was tried.
    pub what: String,
    /// Why it failed.
    pub cause: io::Error,
}

impl Target {
    /// The unit's path on the machine that it is for.
    pub fn unit(&self, service: &Service) -> PathBuf {
        match &self.prefix {
            None => Path::new("/etc/systemd/system").join(service.unit()),
            Some(prefix) => prefix.join("lib/systemd/system").join(service.unit()),
        }
    }

    /// The configuration's path on the machine that it is for.
    pub fn configuration(&self, service: &Service) -> PathBuf {
        Path::new(CONFIGURATION).join(service.configuration())
    }

    /// The path by which this process reaches a path of that machine.
    fn here(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Writes the units and nothing else, as a package does when it is built.
    pub fn install_units(&self, services: &[Service]) -> Result<Vec<Done>, ServiceError> {
        services.iter().map(|service| self.write_unit(service)).collect()
    }

    /// Makes the users, writes the units, and writes configurations where there are none.
    pub fn install(&self, services: &[Service]) -> Result<Vec<Done>, ServiceError> {
        let mut done = Vec::new();
        for service in services {
            let (daemon, user) = (service.daemon(), user(service.daemon()));
            if account::make(&self.root, daemon).context(|| format!("make the user {user}"))? {
                done.push(Done::Made(format!("system user {user}")));
            }
            done.push(self.write_configuration(service)?);
            done.push(self.write_unit(service)?);
        }
        self.reload()?;
        Ok(done)
    }

    fn write_unit(&self, service: &Service) -> Result<Done, ServiceError> {
        let path = self.here(&self.unit(service));
        make_parent(&path)?;
        let write = fs::write(&path, service.text(&self.program)).and_then(|()| open_to_all(&path));
        write.context(|| format!("write {}", path.display())).map(|()| Done::Made(path.display().to_string()))
    }

    fn write_configuration(&self, service: &Service) -> Result<Done, ServiceError> {
        let path = self.here(&self.configuration(service));
        make_parent(&path)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let write = file.and_then(|mut file| file.write_all(service.daemon().example_file().as_bytes()));
        match write.and_then(|()| open_to_all(&path)) {
            Ok(()) => Ok(Done::Made(path.display().to_string())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Done::Kept(format!("{}, which is there already", path.display())))
            }
            Err(cause) => Err(ServiceError { what: format!("write {}", path.display()), cause }),
        }
    }

    /// Stops the services and removes what [`Target::install`] made. An edited configuration, keys,
    /// jobs and logs stay, unless `purge` is given. What other services need, also those of a
    /// package, stays in any case.
    pub fn remove(&self, services: &[Service], purge: bool) -> Result<Vec<Done>, ServiceError> {
        let mut done = Vec::new();
        for service in services {
            let unit = self.here(&self.unit(service));
            if unit.exists() && supervisor::is_concerned(&self.root) {
                supervisor::disable(&service.unit()).context(|| format!("stop {}", service.unit()))?;
            }
            done.extend(remove_file(&unit)?.map(|removed| (removed, service)));
        }
        let left = self.left()?;
        let of_same_name = |service: &Service| {
            left.iter().filter(|unit| unit.ends_with(service.unit())).min_by_key(|unit| self.rank(unit))
        };
        let uncovered = done.iter().filter_map(|(_, service)| Some(stays_stopped(of_same_name(service)?)));
        let uncovered: Vec<Done> = uncovered.collect();
        let mut done: Vec<Done> = done.into_iter().map(|(removed, _)| removed).chain(uncovered).collect();
        for service in services {
            let path = self.here(&self.configuration(service));
            match of_same_name(service) {
                None => done.extend(remove_configuration(&path, service, purge)?),
                Some(unit) if purge && path.exists() => done.push(needed(&path, unit)),
                Some(_) => {}
            }
        }
        for (folder, kept) in [(STATE, "jobs of a manager"), (LOGS, "logs"), (CONFIGURATION, "keys and settings")] {
            let folder = self.here(Path::new(folder));
            match left.first() {
                None => done.extend(remove_folder(&folder, kept, purge)?),
                Some(unit) if purge && folder.exists() => done.push(needed(&folder, unit)),
                Some(_) => {}
            }
        }
        for daemon in Daemon::ALL {
            let user = user(daemon);
            let is_needed = left.iter().any(|unit| name_of(unit).starts_with(&user));
            if !is_needed && account::remove(&self.root, daemon).context(|| format!("remove the user {user}"))? {
                done.push(Done::Removed(format!("system user {user}")));
            }
        }
        self.reload()?;
        Ok(done)
    }

    /// Our units that are installed anywhere below the root.
    fn left(&self) -> Result<Vec<PathBuf>, ServiceError> {
        let mut left = Vec::new();
        let prefix = self.prefix.iter().map(|prefix| prefix.join("lib/systemd/system"));
        let usual = ["/etc/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system"];
        let folders: BTreeSet<PathBuf> = usual.iter().map(PathBuf::from).chain(prefix).collect();
        for folder in folders {
            let folder = self.here(&folder);
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.context(|| format!("read {}", folder.display()))?,
            };
            let is_ours = |unit: &PathBuf| {
                let name = name_of(unit);
                Daemon::ALL.iter().any(|daemon| name.starts_with(&user(*daemon))) && name.ends_with(".service")
            };
            left.extend(entries.flatten().map(|entry| entry.path()).filter(is_ours));
        }
        left.sort();
        Ok(left)
    }

    /// How late systemd looks for a unit where this one lies.
    fn rank(&self, unit: &Path) -> usize {
        let before = ["/etc", "/usr/local"].map(|folder| self.here(Path::new(folder)));
        before.iter().position(|folder| unit.starts_with(folder)).unwrap_or(before.len())
    }

    fn reload(&self) -> Result<(), ServiceError> {
        if supervisor::is_concerned(&self.root) {
            supervisor::reload().context(|| "let systemd read its units again".to_owned())?;
        }
        Ok(())
    }
}

fn make_parent(path: &Path) -> Result<(), ServiceError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    trib_control::make_folder(folder, 0o755).map(drop).context(|| format!("make {}", folder.display()))
}

/// Lets all read a file that was made. The daemons have users of their own, and the administrator's
/// umask may keep new files from them.
fn open_to_all(file: &Path) -> io::Result<()> {
    fs::set_permissions(file, fs::Permissions::from_mode(0o644))
}

/// A unit's name.
fn name_of(unit: &Path) -> Cow<'_, str> {
    unit.file_name().unwrap_or_default().to_string_lossy()
}

/// Says that a unit which another one hid does not take its place by itself.
fn stays_stopped(unit: &Path) -> Done {
    let start = format!("`systemctl enable --now {}` starts it, now and after a boot", name_of(unit));
    Done::Kept(format!("{}, which is neither enabled nor running: {start}", unit.display()))
}

/// Says that something stays because this unit is still there.
fn needed(what: &Path, unit: &Path) -> Done {
    Done::Kept(format!("{}, which {} needs", what.display(), unit.display()))
}

fn remove_configuration(path: &Path, service: &Service, purge: bool) -> Result<Option<Done>, ServiceError> {
    match fs::read(path) {
        Err(_) => Ok(None),
        Ok(text) if purge || text == service.daemon().example_file().as_bytes() => remove_file(path),
        Ok(_) => Ok(Some(Done::Kept(format!("{}, which was edited (--purge removes it)", path.display())))),
    }
}

fn remove_file(path: &Path) -> Result<Option<Done>, ServiceError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(Some(Done::Removed(path.display().to_string()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(ServiceError { what: format!("remove {}", path.display()), cause }),
    }
}

fn remove_folder(path: &Path, kept: &str, purge: bool) -> Result<Option<Done>, ServiceError> {
    let removed = if purge { fs::remove_dir_all(path) } else { fs::remove_dir(path) };
    match removed {
        Ok(()) => Ok(Some(Done::Removed(path.display().to_string()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Ok(Some(Done::Kept(format!("{} with {kept} (--purge removes it)", path.display()))))
        }
        Err(cause) => Err(ServiceError { what: format!("remove {}", path.display()), cause }),
    }
}

/// Adds to an error what was tried.
trait Context<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, ServiceError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, ServiceError> {
        self.map_err(|cause| ServiceError { what: what(), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Image(Target);

    impl Image {
        fn new(name: &str, prefix: Option<&str>) -> Self {
            let root = std::env::temp_dir().join(format!("trib-image-{}-{name}", std::process::id()));
            fs::create_dir_all(&root).unwrap();
            Image(Target { root, prefix: prefix.map(PathBuf::from), program: "/usr/bin/trib".into() })
        }

        fn files(&self) -> Vec<String> {
            fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
                for entry in fs::read_dir(folder).unwrap().flatten() {
                    if entry.path().is_dir() { walk(&entry.path(), found) } else { found.push(entry.path()) }
                }
            }
            let mut found = Vec::new();
            walk(&self.0.root, &mut found);
            let name = |path: &PathBuf| path.strip_prefix(&self.0.root).unwrap().display().to_string();
            let mut names: Vec<String> = found.iter().map(name).collect();
            names.sort();
            names
        }
    }

    impl Drop for Image {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.root);
        }
    }

    fn services() -> Vec<Service> {
        Daemon::ALL.iter().map(|daemon| Service::new(*daemon, None).unwrap()).collect()
    }

    #[test]
    fn what_is_installed_is_removed_again() {
        let image = Image::new("plain", None);
        image.0.install(&services()).unwrap();
        assert_eq!(
            image.files(),
            [
                "etc/systemd/system/tributary-am.service",
                "etc/systemd/system/tributary-an.service",
                "etc/tributary/am.toml",
                "etc/tributary/an.toml"
            ]
        );
        image.0.remove(&services()[..1], false).unwrap();
        assert_eq!(image.files(), ["etc/systemd/system/tributary-an.service", "etc/tributary/an.toml"]);
        image.0.remove(&services(), false).unwrap();
        assert_eq!(image.files(), [] as [&str; 0]);
        assert!(!image.0.root.join("etc/tributary").exists());
        assert_eq!(image.0.remove(&services(), false).unwrap(), [], "removing twice is no error");
    }

    #[test]
    fn what_was_edited_and_keys_stay_unless_purged() {
        let image = Image::new("edited", None);
        let configuration = image.0.root.join("etc/tributary/am.toml");
        fs::create_dir_all(configuration.parent().unwrap()).unwrap();
        fs::write(&configuration, "mine").unwrap();
        fs::write(configuration.with_file_name("node.key"), "secret").unwrap();
        let jobs = image.0.root.join("var/lib/tributary/am.jobs");
        fs::create_dir_all(jobs.parent().unwrap()).unwrap();
        fs::write(&jobs, "jobs").unwrap();
        let done = image.0.install(&services()).unwrap();
        assert!(done.iter().any(|done| matches!(done, Done::Kept(what) if what.contains("am.toml"))), "{done:?}");
        assert_eq!(fs::read_to_string(&configuration).unwrap(), "mine");
        let done = image.0.remove(&services(), false).unwrap();
        assert_eq!(done.iter().filter(|done| matches!(done, Done::Kept(_))).count(), 3, "{done:?}");
        assert_eq!(image.files(), ["etc/tributary/am.toml", "etc/tributary/node.key", "var/lib/tributary/am.jobs"]);
        image.0.remove(&services(), true).unwrap();
        assert_eq!(image.files(), [] as [&str; 0]);
    }

    #[test]
    fn what_a_packages_units_need_stays_and_that_is_said() {
        let image = Image::new("both", None);
        let package = Target { prefix: Some("/usr/local".into()), ..image.0.clone() };
        package.install_units(&services()).unwrap();
        image.0.install(&services()).unwrap();
        let configuration = image.0.root.join("etc/tributary/an.toml");
        fs::write(&configuration, "of the service that runs").unwrap();
        fs::write(configuration.with_file_name("node.key"), "secret").unwrap();
        let done = image.0.remove(&services(), true).unwrap();
        let kept = |what: &str| {
            let said = done.iter().filter_map(|done| if let Done::Kept(said) = done { Some(said) } else { None });
            said.filter(|said| said.contains(what) && said.contains("/usr/local/lib/systemd")).count()
        };
        assert_eq!((kept("etc/tributary/an.toml"), kept("etc/tributary,")), (1, 1), "{done:?}");
        assert_eq!(kept("systemctl enable --now tributary-a"), 2, "what takes over does not run: {done:?}");
        assert_eq!(fs::read_to_string(&configuration).unwrap(), "of the service that runs");
        package.remove(&services(), true).unwrap();
        assert_eq!(image.files(), [] as [&str; 0]);
    }

    #[test]
    fn a_package_gets_its_units_below_its_prefix_and_nothing_else() {
        let image = Image::new("package", Some("/usr"));
        image.0.install_units(&services()).unwrap();
        assert_eq!(
            image.files(),
            ["usr/lib/systemd/system/tributary-am.service", "usr/lib/systemd/system/tributary-an.service"]
        );
    }
}
