//! `trib service`: the daemons as services of systemd.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use trib_service::settings::Daemon;
use trib_service::unit::{Done, HIDDEN, Service, Target, is_hidden};

use crate::failure::{Failure, tell};
use crate::stdout;

/// Install or remove the daemons as services of systemd
///
/// The units restart a daemon that ends or hangs (Type=notify, WatchdogSec), run it as a user of
/// its own, `tributary-am` or `tributary-an`, without any privilege, and read its settings from
/// /etc/tributary. They see no home folders: neither the program nor what its settings name may lie
/// there.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Install(Install),
    Remove(Remove),
}

#[derive(Args, Debug)]
struct Which {
    /// The daemon; both if left out
    #[arg(value_enum, value_name = "DAEMON")]
    daemon: Option<Word>,
    /// One of several services of this kind on the machine: the unit is tributary-DAEMON-NAME, its
    /// settings are DAEMON-NAME.toml
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Below which folder everything lies, for an image; systemd is left alone then
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Units below PREFIX/lib/systemd/system that run PREFIX/bin/trib, as a package has them; else
    /// /etc/systemd/system and this program
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Word {
    /// The aggregation manager
    Am,
    /// An aggregation node
    An,
}

/// Write the units, settings to begin with, and make the daemons' system users
///
/// Settings that are there stay as they are. Nothing is started or enabled; the last lines say how.
#[derive(Args, Debug)]
#[command(after_help = INSTALL_EXAMPLES)]
struct Install {
    #[command(flatten)]
    which: Which,
    /// Write the units and nothing else, as packages are built
    #[arg(long)]
    units_only: bool,
    /// Print the units with their paths, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Stop the services and remove what `install` made
///
/// Settings that were edited, keys, the manager's jobs and logs stay, unless --purge is given. What
/// units that are left need stays in any case; those of `make install` go with its --prefix.
#[derive(Args, Debug)]
#[command(after_help = REMOVE_EXAMPLES)]
struct Remove {
    #[command(flatten)]
    which: Which,
    /// Remove edited settings, and after the last service all keys, jobs and logs too
    #[arg(long)]
    purge: bool,
}

impl Arguments {
    /// Installs or removes the services.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.action {
            Action::Install(install) => install.run(),
            Action::Remove(remove) => remove.run(),
        }
    }
}

impl Which {
    fn services(&self) -> Result<Vec<Service>, Failure> {
        let daemons = match self.daemon {
            Some(Word::Am) => vec![Daemon::Manager],
            Some(Word::An) => vec![Daemon::Node],
            None => Daemon::ALL.to_vec(),
        };
        let service = |daemon| Service::new(daemon, self.name.as_deref());
        daemons.into_iter().map(service).collect::<Result<_, _>>().map_err(|error| Failure::Usage(error.to_string()))
    }

    fn target(&self) -> Result<Target, Failure> {
        if self.prefix.as_ref().is_some_and(|prefix| !prefix.is_absolute()) {
            return Err(Failure::Usage("--prefix: units need an absolute path, for example /usr/local".to_owned()));
        }
        let program = match &self.prefix {
            Some(prefix) => prefix.join("bin/trib"),
            None => super::own_program()?,
        };
        Ok(Target { root: self.root.clone(), prefix: self.prefix.clone(), program })
    }
}

impl Install {
    fn run(self) -> Result<ExitCode, Failure> {
        let (target, services) = (self.which.target()?, self.which.services()?);
        if self.dry_run {
            let mut text = String::new();
            for service in &services {
                writeln!(text, "# {}\n{}", target.unit(service).display(), service.text(&target.program))
                    .expect("writing to memory cannot fail");
            }
            return print(&text);
        }
        if self.units_only {
            return print(&told(&target.install_units(&services).map_err(Failure::environment)?));
        }
        if self.which.root == Path::new("/") && is_hidden(&target.program) {
            return Err(Failure::Usage(format!(
                "services see nothing below {}, so systemd cannot start {}; \
                 install Tributary elsewhere first: `make install` puts it below /usr/local, and \
                 `/usr/local/bin/trib service install` makes services of that",
                HIDDEN.join(", "),
                target.program.display()
            )));
        }
        let mut text = told(&target.install(&services).map_err(Failure::environment)?);
        for service in &services {
            let (configuration, unit) = (target.configuration(service), service.unit());
            let verb =
                if systemd_runs() { "systemctl enable --now" } else { "where systemd runs: systemctl enable --now" };
            writeln!(text, "next: edit {}, then: {verb} {unit}", configuration.display())
                .expect("writing to memory cannot fail");
        }
        if !systemd_runs() {
            let hint = "systemd does not run on this machine, so that nothing starts the services: start the daemons as its own \
                 supervisor would, with `trib am --config FILE` and `trib an --config FILE`";
            tell(hint);
        }
        print(&text)
    }
}

impl Remove {
    fn run(self) -> Result<ExitCode, Failure> {
        let done = self.which.target()?.remove(&self.which.services()?, self.purge).map_err(Failure::environment)?;
        print(&told(&done))
    }
}

/// As sd_booted(3) finds it out.
fn systemd_runs() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

fn told(done: &[Done]) -> String {
    let line = |done: &Done| match done {
        Done::Made(what) => format!("made {what}\n"),
        Done::Removed(what) => format!("removed {what}\n"),
        Done::Kept(what) => format!("kept {what}\n"),
    };
    done.iter().map(line).collect()
}

fn print(text: &str) -> Result<ExitCode, Failure> {
    stdout::print(text)?;
    Ok(ExitCode::SUCCESS)
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  trib service install am
  trib service install an --name leaf0      # unit tributary-an-leaf0, settings /etc/tributary/an-leaf0.toml
  trib service install am --dry-run         # print the unit, do nothing
  trib service install --units-only --prefix /usr --root debian/tmp";
const REMOVE_EXAMPLES: &str = "\
Examples:
  trib service remove an --name leaf0
  trib service remove --purge
  trib service remove --purge --prefix /usr/local   # after `make install`";
