//! The launcher's command line.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use crate::variables::OF_ONE;
use crate::{Launcher, Mpi, Way};

/// The command that starts a program: the launcher with its own words, and before these what loads
/// `way` into the ranks and passes on the variables of these names that are set here. Applications
/// that are put together with `:` each get that.
pub fn command(launcher: &Launcher, way: &Way, words: &[OsString], passed: &[String]) -> Command {
    let set = settings(&launcher.mpi, way);
    // Hydra passes on all of its own environment, unless it is told not to.
    let is_limited = words.iter().any(|word| limits_environment(word));
    let mut command = Command::new(&launcher.path);
    for (at, words) in words.split(|word| word == OsStr::new(":")).enumerate() {
        if at > 0 {
            command.arg(":");
        }
        for (name, value) in &set {
            match launcher.mpi {
                Mpi::OpenMpi(..) => command.arg("-x").arg(pair(name, value)),
                Mpi::Hydra => command.args(["-env", name]).arg(value),
            };
        }
        for name in passed {
            match (&launcher.mpi, std::env::var_os(name)) {
                (Mpi::OpenMpi(..), _) => {
                    command.args(["-x", name]);
                }
                (Mpi::Hydra, Some(value)) if is_limited => {
                    command.args(["-env", name]).arg(value);
                }
                (Mpi::Hydra, _) => {}
            }
        }
        command.args(words);
    }
    // Ranks on other hosts get the environment, too.
    for name in OF_ONE.iter().filter(|_| launcher.mpi == Mpi::Hydra) {
        command.env_remove(name);
    }
    command
}

/// Whether a word is an option of Hydra's by which ranks do not get all of its environment. Where
/// it is the program's, variables are set once more, and nothing else changes.
fn limits_environment(word: &OsStr) -> bool {
    let word = word.to_string_lossy().to_ascii_lowercase();
    let limits = ["genvnone", "genvlist", "genvexcl", "envnone", "envlist", "envexcl"];
    word.starts_with('-') && limits.contains(&word.trim_start_matches('-'))
}

/// The variables that the ranks need.
fn settings(mpi: &Mpi, way: &Way) -> Vec<(&'static str, OsString)> {
    let preloads = |library: &OsStr| ("LD_PRELOAD", preloaded(library, std::env::var_os("LD_PRELOAD")));
    match way {
        Way::Component(folder) => {
            // Open MPI stops at a folder that is missing, as the user's often is, so that is the
            // last.
            let mut path = std::env::var_os(COMPONENT_PATH).unwrap_or("SYSTEM_DEFAULT".into());
            path.push(":");
            path.push(folder);
            path.push(":USER_DEFAULT");
            vec![(COMPONENT_PATH, path), (COMPONENT, "1".into())]
        }
        // The environment may switch the component on, before which the library would step aside.
        Way::Preloaded(library) if matches!(mpi, Mpi::OpenMpi(4, _)) => {
            vec![preloads(library.as_os_str()), (COMPONENT, "0".into())]
        }
        Way::Preloaded(library) => vec![preloads(library.as_os_str())],
    }
}

/// The library before what the user preloads.
fn preloaded(library: &OsStr, others: Option<OsString>) -> OsString {
    let mut all = library.to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

fn pair(name: &str, value: &OsStr) -> OsString {
    let mut both = OsString::from(name);
    both.push("=");
    both.push(value);
    both
}

const COMPONENT_PATH: &str = "OMPI_MCA_mca_base_component_path";
const COMPONENT: &str = "OMPI_MCA_coll_tributary_enable";

#[cfg(test)]
mod tests {
    use super::*;

    fn made(mpi: Mpi, way: &Way, words: &str) -> Command {
        let launcher = Launcher { path: "mpirun".into(), mpi, said: String::new() };
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        command(&launcher, way, &words, &["TRIB_MANAGER".to_owned()])
    }

    fn line(mpi: Mpi, way: &Way, words: &str) -> String {
        let command = made(mpi, way, words);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    #[test]
    fn what_the_user_preloads_stays() {
        let all = |others: Option<&str>| preloaded(OsStr::new("/l/a.so"), others.map(OsString::from));
        assert_eq!(all(Some("/opt/b.so:c.so")), "/l/a.so:/opt/b.so:c.so");
        assert_eq!((all(Some("")), all(None)), ("/l/a.so".into(), "/l/a.so".into()));
    }

    #[test]
    fn hydra_has_nothing_to_pass_on_of_what_belongs_to_one_host() {
        let preloaded = Way::Preloaded("/l/libtrib_mpi.so".into());
        let removes = |mpi: Mpi| {
            let command = made(mpi, &preloaded, "-n 2 ./a");
            command.get_envs().any(|variable| variable == (OsStr::new("TRIB_HOST"), None))
        };
        assert!(removes(Mpi::Hydra));
        // Open MPI passes on what is named, and its ranks on this host have this host's name.
        assert!(!removes(Mpi::OpenMpi(4, 1)));
    }

    #[test]
    fn hydra_passes_on_what_is_ours_though_the_environment_is_limited() {
        let preloaded = Way::Preloaded("/l/libtrib_mpi.so".into());
        let launcher = Launcher { path: "mpiexec".into(), mpi: Mpi::Hydra, said: String::new() };
        // Stands for a variable of ours, which a test may not set for the others.
        let (name, value) = ("CARGO_PKG_NAME".to_owned(), env!("CARGO_PKG_NAME"));
        for option in ["-genvnone", "--envlist", "-GENVLIST"] {
            let words: Vec<OsString> = [option, "PATH", "-n", "2", "./a"].map(OsString::from).into();
            let command = command(&launcher, &preloaded, &words, &[name.clone(), "TRIB_UNSET".to_owned()]);
            let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            let expected = format!("-env LD_PRELOAD /l/libtrib_mpi.so -env {name} {value} {option} PATH -n 2 ./a");
            assert_eq!(words.join(" "), expected);
        }
    }

    #[test]
    fn every_application_gets_what_is_loaded() {
        let preloaded = Way::Preloaded("/l/libtrib_mpi.so".into());
        assert_eq!(
            line(Mpi::OpenMpi(5, 0), &preloaded, "-np 2 ./a : -np 1 ./b x"),
            "-x LD_PRELOAD=/l/libtrib_mpi.so -x TRIB_MANAGER -np 2 ./a : -x LD_PRELOAD=/l/libtrib_mpi.so -x TRIB_MANAGER -np 1 ./b x"
        );
        assert_eq!(line(Mpi::Hydra, &preloaded, "-n 2 ./a"), "-env LD_PRELOAD /l/libtrib_mpi.so -n 2 ./a");
        let said = line(Mpi::OpenMpi(4, 1), &preloaded, "-np 2 ./a");
        assert!(said.starts_with("-x LD_PRELOAD=/l/libtrib_mpi.so -x OMPI_MCA_coll_tributary_enable=0 -x TRIB_"));
        let component = Way::Component("/l/openmpi".into());
        let said = line(Mpi::OpenMpi(4, 1), &component, "-np 2 ./a");
        assert!(said.starts_with(
            "-x OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT:/l/openmpi:USER_DEFAULT -x OMPI_MCA_coll_"
        ));
    }
}
