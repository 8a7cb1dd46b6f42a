//! `trib mpirun`: an MPI program under its MPI's own launcher, with what of ours fits that MPI.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use trib_launcher::{Launcher, Means, Parts, Way, is_for_all, is_program, linked_with};

use super::own_program;
use crate::failure::Failure;

/// Start an MPI program with its MPI's launcher, and its collectives through the tree
///
/// Finds out which MPI the launcher and the program belong to, and loads what fits into the ranks:
/// the component for Open MPI 4.1, else the preloaded library. Everything behind trib's own options
/// is the launcher's. Variables that begin with TRIB_ are passed on, but for those that belong to
/// one host or rank, such as TRIB_HOST.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The launcher
    #[arg(long, value_name = "PROGRAM", default_value = "mpirun")]
    launcher: OsString,
    /// What is loaded into the ranks [default: the component where there is one]
    #[arg(long, value_name = "MEANS")]
    through: Option<Through>,
    /// Print the command instead of running it
    #[arg(long)]
    show: bool,
    /// The launcher's options, the program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

/// What `--through` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Through {
    /// The component for Open MPI.
    Component,
    /// The library that is preloaded.
    Preload,
}

impl Arguments {
    /// Becomes the launcher.
    pub fn run(self) -> Result<ExitCode, Failure> {
        if reads_applications_from_a_file(&self.words) {
            return Err(Failure::Usage(
                "the launcher is to read its applications from a file and ignores what else it is told, so that \
                 nothing of Tributary's would be loaded: put them together with `:` instead, as in \
                 `trib mpirun -np 2 ./a : -np 2 ./b`"
                    .to_owned(),
            ));
        }
        let parts = Parts::beside(&own_program()?);
        let library = parts.preloaded_at().display().to_string();
        let launcher = Launcher::ask(&self.launcher, &library).map_err(Failure::environment)?;
        let means = self.through.map(|through| match through {
            Through::Component => Means::Component,
            Through::Preload => Means::Preload,
        });
        // The first word that is a file linked with an MPI: options of launchers are many, and
        // their values are no such files.
        let linked = self.words.iter().find_map(|word| linked_with(word));
        let way = Way::of(&launcher, linked, &parts, means).map_err(Failure::environment)?;
        if matches!(way, Way::Preloaded(_)) && sets_preload(&self.words) {
            return Err(Failure::Usage(
                "the launcher's words set LD_PRELOAD, which would keep Tributary's library from being preloaded: leave \
                 them out and set it in the environment of `trib mpirun`, which preloads both and passes it on"
                    .to_owned(),
            ));
        }
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let passed: Vec<String> = names.filter(|name| is_for_all(name)).collect();
        let mut command = trib_launcher::command(&launcher, &way, &self.words, &passed);
        if self.show {
            crate::stdout::print(&shown(&command))?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(Failure::Environment(format!("{} cannot be started: {}", launcher.path.display(), command.exec())))
    }
}

/// Whether the launcher's own words, which end with the first program, name a file of applications,
/// as `--app FILE` of Open MPI's and `-configfile FILE` of Hydra's do.
fn reads_applications_from_a_file(words: &[OsString]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--app" | "-app" | "-configfile" | "--configfile") => return true,
            Some(option) if option.starts_with('-') => {
                // A value may have the name of a program, which it is not.
                for _ in 0..values_of(option.trim_start_matches('-')) {
                    words.next();
                }
            }
            // One with a path may be there on the hosts alone.
            _ if is_program(word) || word.as_encoded_bytes().contains(&b'/') => return false,
            _ => {}
        }
    }
    false
}

/// How many values these options of Open MPI's and Hydra's launchers have, which people use most.
fn values_of(option: &str) -> usize {
    match option {
        "np" | "n" | "c" | "N" | "npernode" | "ppn" | "host" | "hosts" | "H" | "hostfile" | "machinefile" | "f"
        | "default-hostfile" | "map-by" | "bind-to" | "rank-by" | "rankfile" | "rf" | "x" | "wdir" | "wd" | "path"
        | "prefix" | "tune" | "am" | "output" | "output-filename" | "stdin" | "tmpdir" | "report-uri"
        | "preload-files" | "launch-agent" | "personality" | "timeout" | "genvlist" | "envlist" | "launcher"
        | "launcher-exec" | "bootstrap" | "bootstrap-exec" | "iface" | "outfile-pattern" | "errfile-pattern"
        | "usize" => 1,
        "mca" | "gmca" | "prtemca" | "pmixmca" | "omca" | "genv" | "env" => 2,
        _ => 0,
    }
}

/// Whether words of a launcher's give the ranks a value of `LD_PRELOAD`, as `-x LD_PRELOAD=FILE`
/// and `-x LD_PRELOAD` of Open MPI's and `-env LD_PRELOAD FILE` of Hydra's do, or start the program
/// by an `env` that does.
fn sets_preload(words: &[OsString]) -> bool {
    let is_meant = |value: &str| value == PRELOAD || is_assigned(value);
    words.iter().enumerate().any(|(at, word)| {
        let following = || words[at + 1..].iter().map(|word| word.to_string_lossy());
        match word.to_string_lossy() {
            // Hydra takes any number of dashes, and letters of either case.
            option if option.starts_with('-') => {
                matches!(option.trim_start_matches('-').to_ascii_lowercase().as_str(), "x" | "env" | "genv")
                    && following().next().is_some_and(|value| is_meant(&value))
            }
            program if Path::new(&*program).file_name() == Some(OsStr::new("env")) => following()
                .take_while(|word| word.contains('=') || word.starts_with('-'))
                .any(|word| is_assigned(&word)),
            _ => false,
        }
    })
}

fn is_assigned(word: &str) -> bool {
    word.strip_prefix(PRELOAD).is_some_and(|rest| rest.starts_with('='))
}

const PRELOAD: &str = "LD_PRELOAD";

fn shown(command: &std::process::Command) -> String {
    let removed = command.get_envs().filter(|(name, value)| value.is_none() && std::env::var_os(name).is_some());
    let mut words: Vec<&OsStr> = removed.flat_map(|(name, _)| [OsStr::new("-u"), name]).collect();
    if !words.is_empty() {
        words.insert(0, OsStr::new("env"));
    }
    words.push(command.get_program());
    words.extend(command.get_args());
    let quoted: Vec<String> = words.iter().map(|word| super::shell::quoted(&word.to_string_lossy())).collect();
    quoted.join(" ") + "\n"
}

const EXAMPLES: &str = "\
Examples:
  trib mpirun -np 8 ./program
  trib mpirun --launcher mpiexec.hydra -n 8 ./program
  trib mpirun --through preload --show -np 8 ./program";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_would_undo_the_preloading_are_found() {
        let sets = |line: &str| sets_preload(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(sets("-np 2 -x LD_PRELOAD=/opt/darshan.so ./a") && sets("-n 2 -genv LD_PRELOAD /opt/darshan.so ./a"));
        assert!(sets("-np 2 -x LD_PRELOAD ./a") && !sets("-np 2 ./a LD_PRELOAD=/opt/darshan.so"));
        assert!(sets("-n 2 -env LD_PRELOAD=/opt/darshan.so ./a") && sets("-n 2 --ENV LD_PRELOAD /opt/darshan.so ./a"));
        assert!(sets("-np 2 env LD_PRELOAD=/opt/darshan.so ./a") && sets("-np 2 /usr/bin/env -i B=1 LD_PRELOAD= ./a"));
        assert!(!sets("-np 2 env A=1 ./a LD_PRELOAD=/opt/darshan.so") && !sets("-n 2 -env LD_PRELOADS=1 ./a"));
    }

    #[test]
    fn a_file_of_applications_is_found_among_the_launchers_words() {
        let reads = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            reads_applications_from_a_file(&words)
        };
        assert!(reads("--oversubscribe --app applications") && reads("-configfile applications"));
        assert!(reads("--host sh --mca btl sh --hostfile /etc/hosts --app applications"), "values are no programs");
        assert!(reads("--tmpdir /scratch -rf /etc/hosts --app a") && reads("-outfile-pattern /tmp/o -configfile a"));
        assert!(!reads("-np 2 --host n1 /on/hosts/alone/solver -configfile in.cfg"), "that word is the program's");
        assert!(!reads("-np 2 sh --app applications"), "that word is the program's");
    }
}
