//! Which rank this process is, and under which name the ranks of its job meet, as its launcher says
//! it in the environment.
//!
//! `python/src/tributary/launch.py` has the same table and the same rules: ranks in C, Rust and
//! Python of one job meet under one name.

use std::os::unix::fs::MetadataExt as _;

use crate::error::Error;

/// A process of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    /// The launcher, for people.
    pub launcher: &'static str,
    /// Rank in the job.
    pub rank: u32,
    /// Number of ranks of the job.
    pub size: u32,
    /// The name under which the ranks meet, the same on all of them and on no other job's, or why
    /// none follows from what the launcher gives.
    pub meeting: Result<String, String>,
}

/// The variables of a launcher. The name of a meeting is made of all of `names`.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    names: &'static [&'static str],
}

/// The first one whose variables are set counts: a launcher that was started by another one, such
/// as mpirun in a job of Slurm's, stands before it.
static LAUNCHERS: [Launcher; 6] = [
    Launcher { name: "trib run", rank: RANK_ENV, size: SIZE_ENV, names: &[RENDEZVOUS_ENV] },
    Launcher {
        name: "torchrun",
        rank: "RANK",
        size: "WORLD_SIZE",
        names: &["TORCHELASTIC_RUN_ID", MASTER_ENV, "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"],
    },
    Launcher {
        name: "mpirun of Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        names: &["OMPI_MCA_ess_base_jobid"],
    },
    Launcher {
        name: "mpirun of Open MPI 5",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        names: &["PMIX_NAMESPACE"],
    },
    Launcher { name: "mpiexec of MPICH", rank: "PMI_RANK", size: "PMI_SIZE", names: &["PMI_JOBID"] },
    Launcher { name: "srun", rank: "SLURM_PROCID", size: "SLURM_NTASKS", names: &["SLURM_JOB_ID", "SLURM_STEP_ID"] },
];

/// Rank, size and meeting from the variables of a launcher; `None` if there are none. `variable`
/// reads one.
pub(crate) fn detect(variable: impl Fn(&str) -> Result<Option<String>, Error>) -> Result<Option<Launch>, Error> {
    // What cannot be read is set, and an error where it is needed.
    let is_set = |name: &str| !matches!(variable(name), Ok(None));
    for (set, missing) in [(RANK_ENV, SIZE_ENV), (SIZE_ENV, RANK_ENV)] {
        if is_set(set) && !is_set(missing) {
            return Err(Error::Invalid(format!("{set} is set and {missing} is not: set both, or neither")));
        }
    }
    let Some(first) = LAUNCHERS.iter().find(|launcher| is_set(launcher.rank) && is_set(launcher.size)) else {
        return Ok(None);
    };
    // Some launchers have two ways to name a job: the one whose names are all there counts.
    let is_complete = |way: &Launcher| way.names.iter().all(|name| is_set(name));
    let best = LAUNCHERS.iter().find(|way| way.rank == first.rank && is_complete(way)).unwrap_or(first);
    let number = |name: &str| {
        let text = variable(name)?.unwrap_or_default();
        text.parse::<u32>().map_err(|_| Error::Invalid(format!("{name}={text} is not a number")))
    };
    let (rank, size) = (number(best.rank)?, number(best.size)?);
    Ok(Some(Launch { launcher: best.name, rank, size, meeting: meeting(best, &variable) }))
}

/// The name that follows from a launcher's variables, or why none does.
fn meeting(launcher: &Launcher, variable: impl Fn(&str) -> Result<Option<String>, Error>) -> Result<String, String> {
    let mut parts = Vec::new();
    for name in launcher.names {
        match variable(name) {
            Ok(Some(value)) => parts.push(value),
            Ok(None) => return Err(format!("{name} is not set")),
            Err(error) => return Err(error.to_string()),
        }
    }
    if launcher.names.iter().zip(&parts).any(|(name, value)| *name == MASTER_ENV && is_local(value)) {
        // Torchrun's defaults are the same on every machine.
        parts.push(loopback()?);
    }
    Ok(parts.join("-"))
}

/// Whether it is the address of whichever machine uses it.
fn is_local(address: &str) -> bool {
    ["localhost", "::1"].contains(&address) || address.starts_with("127.")
}

/// What tells this loopback interface from all others: the machine since it was started, and the
/// network namespace.
fn loopback() -> Result<String, String> {
    let unreadable = |path: &str, cause: std::io::Error| format!("{path} cannot be read: {cause}");
    let boot = std::fs::read_to_string(BOOT_ID).map_err(|cause| unreadable(BOOT_ID, cause))?;
    let network = std::fs::metadata(NETWORK).map_err(|cause| unreadable(NETWORK, cause))?;
    Ok(format!("{}-{}", boot.trim(), network.ino()))
}

/// The rank of this process, set by `trib run`. It counts before what other launchers say.
pub const RANK_ENV: &str = "TRIB_RANK";
/// The number of ranks of the job, set by `trib run`.
pub const SIZE_ENV: &str = "TRIB_SIZE";
/// The name under which ranks without an exchange of their own meet at the manager, set by `trib
/// run`.
pub const RENDEZVOUS_ENV: &str = "TRIB_RENDEZVOUS";
const MASTER_ENV: &str = "MASTER_ADDR";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const NETWORK: &str = "/proc/self/ns/net";

#[cfg(test)]
mod tests {
    use super::*;

    /// What is detected where these variables are set and no others.
    fn within(variables: &[(&str, &str)]) -> Result<Option<Launch>, Error> {
        detect(|name| {
            let value = variables.iter().find(|(set, _)| *set == name).map(|(_, value)| *value);
            match value {
                Some(UNREADABLE) => Err(Error::Invalid(format!("{name} is not UTF-8"))),
                value => Ok(value.map(str::to_owned)),
            }
        })
    }

    fn launch(launcher: &'static str, rank: u32, size: u32, meeting: &str) -> Result<Option<Launch>, Error> {
        Ok(Some(Launch { launcher, rank, size, meeting: Ok(meeting.to_owned()) }))
    }

    const UNREADABLE: &str = "\u{fffd}";
    const SRUN: [(&str, &str); 4] =
        [("SLURM_PROCID", "5"), ("SLURM_NTASKS", "8"), ("SLURM_JOB_ID", "12"), ("SLURM_STEP_ID", "0")];
    const MPIRUN: [(&str, &str); 2] = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];

    // The same cases as in python/tests/test_launch.py.
    #[test]
    fn each_launcher_says_who_this_is_and_where_the_ranks_meet() {
        assert_eq!(within(&[]), Ok(None));
        let own = [("TRIB_RANK", "0"), ("TRIB_SIZE", "2"), ("TRIB_RENDEZVOUS", "n")];
        assert_eq!(within(&own), launch("trib run", 0, 2, "n"));
        let torchrun = [
            ("RANK", "1"),
            ("WORLD_SIZE", "4"),
            ("TORCHELASTIC_RUN_ID", "none"),
            ("MASTER_ADDR", "h0"),
            ("MASTER_PORT", "29500"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
        ];
        assert_eq!(within(&torchrun), launch("torchrun", 1, 4, "none-h0-29500-2"));
        let four = [&MPIRUN[..], &[("OMPI_MCA_ess_base_jobid", "77")]].concat();
        assert_eq!(within(&four), launch("mpirun of Open MPI", 3, 4, "77"));
        let five = [&MPIRUN[..], &[("PMIX_NAMESPACE", "prterun-h-1@1")]].concat();
        assert_eq!(within(&five), launch("mpirun of Open MPI 5", 3, 4, "prterun-h-1@1"));
        assert_eq!(within(&SRUN), launch("srun", 5, 8, "12-0"));
        let pmi = within(&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]).unwrap().unwrap();
        assert_eq!((pmi.launcher, pmi.rank, pmi.size), ("mpiexec of MPICH", 0, 4));
        assert_eq!(pmi.meeting, Err("PMI_JOBID is not set".to_owned()));
    }

    #[test]
    fn the_inner_launcher_counts() {
        let inner = [&SRUN[..], &MPIRUN, &[("PMIX_NAMESPACE", "p")]].concat();
        assert_eq!(within(&inner), launch("mpirun of Open MPI 5", 3, 4, "p"));
        let unnamed = within(&[&SRUN[..], &MPIRUN].concat()).unwrap().unwrap();
        assert_eq!((unnamed.launcher, unnamed.rank), ("mpirun of Open MPI", 3));
        assert_eq!(unnamed.meeting, Err("OMPI_MCA_ess_base_jobid is not set".to_owned()));
        // A variable that is somebody else's does not hide the launcher.
        assert_eq!(within(&[&SRUN[..], &[("RANK", UNREADABLE)]].concat()), launch("srun", 5, 8, "12-0"));
    }

    #[test]
    fn programs_of_torchrun_on_two_machines_do_not_meet_under_its_defaults() {
        let machine = std::fs::read_to_string(BOOT_ID).unwrap();
        for address in ["127.0.0.1", "localhost", "::1"] {
            let name = |rank| {
                let torchrun = [
                    ("RANK", rank),
                    ("WORLD_SIZE", "4"),
                    ("TORCHELASTIC_RUN_ID", "none"),
                    ("MASTER_ADDR", address),
                    ("MASTER_PORT", "29500"),
                    ("TORCHELASTIC_RESTART_COUNT", "0"),
                ];
                within(&torchrun).unwrap().unwrap().meeting.unwrap()
            };
            assert!(name("1").starts_with(&format!("none-{address}-29500-0-{}-", machine.trim())), "{}", name("1"));
            assert_eq!(name("0"), name("1"));
        }
    }

    #[test]
    fn what_is_no_number_and_half_of_a_launch_are_told_by_their_names() {
        let told = |variables: &[(&str, &str)]| within(variables).unwrap_err().to_string();
        for text in ["", "x", "-1", "1 ", "4294967296", "0x1"] {
            let said = told(&[("SLURM_PROCID", text), ("SLURM_NTASKS", "2")]);
            assert!(said.contains(&format!("SLURM_PROCID={text} is not a number")), "{said}");
        }
        assert!(told(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", UNREADABLE)]).contains("SLURM_NTASKS is not UTF-8"));
        for (set, missing) in [("TRIB_RANK", "TRIB_SIZE"), ("TRIB_SIZE", "TRIB_RANK")] {
            let said = told(&[&SRUN[..], &[(set, "1")]].concat());
            assert!(said.contains(&format!("{set} is set and {missing} is not")), "{said}");
        }
        let unreadable = within(&[&SRUN[..3], &[("SLURM_STEP_ID", UNREADABLE)]].concat()).unwrap().unwrap();
        assert!(unreadable.meeting.unwrap_err().contains("SLURM_STEP_ID is not UTF-8"));
    }
}
