//! What an application gives when it joins a job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trib_messages::quota::QuotaField;
use trib_messages::request::QuotaAsk;
use trib_wire::{Collective, GroupName};

use crate::error::Error;
use crate::launch::{self, Launch};
pub use crate::launch::{RANK_ENV, RENDEZVOUS_ENV, SIZE_ENV};
use crate::sum_kind::SumKind;

/// A function that a blocked call of ours calls without any lock of ours held: every 1 to 20 ms,
/// and every 0.1 ms while it finds work.
pub type Progress = Arc<dyn Fn() + Send + Sync>;

/// The caller's own way to exchange a few bytes between all ranks. It is used only while joining.
pub trait OutOfBand {
    /// Every rank gives `mine`, which has the same length on all ranks. At rank 0 `all` takes the
    /// values in rank order. An error is the exchange's own code.
    fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32>;
    /// Copies `bytes` from rank 0 to all ranks. They have the same length on all ranks.
    fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32>;
}

/// How to join a job.
pub struct Params {
    /// Rank in the job, below `size`.
    pub rank: u32,
    /// Number of ranks of the job, 1 to 2^20.
    pub size: u32,
    /// The manager's address; without it that of `TRIB_MANAGER`. Only rank 0 needs it, unless the
    /// ranks meet at the manager.
    pub manager: Option<String>,
    /// This host's name in the fabric's topology; without it `TRIB_HOST`, else the system's host
    /// name.
    pub host: Option<String>,
    /// An exchange between the ranks; without it they meet at the manager.
    pub oob: Option<Box<dyn OutOfBand>>,
    /// The name under which they meet there, a new one for each job; without it that of
    /// `TRIB_RENDEZVOUS`, else one that follows from the launcher's variables, if rank and size are
    /// those of the launcher.
    pub rendezvous: Option<String>,
    /// Time limit of joining; without it `TRIB_TIMEOUT_MS`, else 30 s.
    pub timeout: Option<Duration>,
    /// How long the job may wait for quota that other jobs have, on top of the time limit, at most
    /// an hour; without it `TRIB_WAIT_MS`, else not at all.
    pub wait: Option<Duration>,
    /// The caller's own progress function.
    pub progress: Option<Progress>,
    /// What the job would like to use; `TRIB_QUOTA` fills in what is left out.
    pub ask: QuotaAsk,
    /// What the program's users call the collectives, where that is not their name here.
    pub calls: BTreeMap<Collective, String>,
    /// An error that the caller has found already. The rank takes part in the exchange
    /// nevertheless, and all ranks fail with it.
    pub objection: Option<Error>,
}

impl Params {
    /// Parameters for rank `rank` of `size`; the rest comes from the environment.
    pub fn new(rank: u32, size: u32) -> Params {
        Params {
            rank,
            size,
            manager: None,
            host: None,
            oob: None,
            rendezvous: None,
            timeout: None,
            wait: None,
            progress: None,
            ask: QuotaAsk::default(),
            calls: BTreeMap::new(),
            objection: None,
        }
    }

    /// Notes an error. The first one counts.
    pub fn object(&mut self, objection: Error) {
        self.objection.get_or_insert(objection);
    }

    /// Rank and size as the launcher says them: `trib run`, torchrun, mpirun, mpiexec or srun.
    pub fn from_env() -> Result<Params, Error> {
        match launch::detect(setting)? {
            Some(Launch { rank, size, .. }) => Ok(Params::new(rank, size)),
            None => Err(Error::Invalid(format!(
                "no launcher says which rank this is: start the program with `trib run -n RANKS -- PROGRAM`, srun, \
                 mpirun or torchrun, or set {RANK_ENV} and {SIZE_ENV}"
            ))),
        }
    }

    /// Checks that rank and size are possible.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(objection) = &self.objection {
            return Err(objection.clone());
        }
        Params::shares_memory()?;
        Params::combines_devices()?;
        Params::devices()?;
        Params::sums()?;
        Params::patience()?;
        let (rank, size) = (self.rank, self.size);
        if size == 0 || size > trib_wire::ranks::WORLD_MAX {
            let max = trib_wire::ranks::WORLD_MAX;
            return Err(Error::Invalid(format!("a job has 1 to {max} ranks, not {size}")));
        }
        if rank >= size {
            return Err(Error::Invalid(format!("rank {rank} does not exist in a job of {size}")));
        }
        Ok(())
    }

    /// Refuses what cannot have been meant to switch memory of devices on or off.
    fn devices() -> Result<(), Error> {
        match setting(trib_device::SWITCH)?.as_deref() {
            None | Some("on" | "1" | "off" | "0") => Ok(()),
            Some(other) => Err(Error::Invalid(format!("{}={other} is neither on nor off", trib_device::SWITCH))),
        }
    }

    /// How groups take sums unless they say it themselves: what `TRIB_SUMS` says.
    pub fn sums() -> Result<Option<SumKind>, Error> {
        match setting(SUMS_ENV)?.as_deref() {
            None | Some("plain") => Ok(None),
            Some(name) => SumKind::from_name(name)
                .map(Some)
                .ok_or_else(|| Error::Invalid(format!("{SUMS_ENV}={name} is none of plain, fixed, exact and int8"))),
        }
    }

    /// Whether this rank may share memory with other ranks of its host.
    pub(crate) fn shares_memory() -> Result<bool, Error> {
        is_on(MEMORY_ENV, true)
    }

    /// Whether this rank combines what its GPU has with what others of its host have.
    pub(crate) fn combines_devices() -> Result<bool, Error> {
        is_on(DEVICES_ENV, false)
    }

    /// The time limit of joining.
    pub(crate) fn time_limit(&self) -> Result<Duration, Error> {
        self.timeout.map_or_else(Params::patience, Ok)
    }

    /// How long a rank that has joined may be without a node, in a job that goes on when one dies.
    /// A program's own limit of joining says nothing of that.
    pub(crate) fn patience() -> Result<Duration, Error> {
        read_timeout(setting(TIMEOUT_ENV)?.as_deref())
    }

    /// How long the manager may let the job wait for quota that other jobs have, on top of the time
    /// limit.
    pub(crate) fn queue_limit(&self) -> Result<Duration, Error> {
        self.wait.map_or_else(|| read_wait(setting(WAIT_ENV)?.as_deref()), Ok)
    }

    /// This host's name.
    pub(crate) fn host_name(&self) -> Result<String, Error> {
        let name = match &self.host {
            Some(name) => name.clone(),
            None => match setting(HOST_ENV)? {
                Some(name) => name,
                None => system_host_name()?,
            },
        };
        if name.is_empty() || name.len() > HOST_MAX {
            return Err(Error::Invalid(format!("a host name has 1 to {HOST_MAX} bytes; set {HOST_ENV}")));
        }
        Ok(name)
    }

    /// The name under which ranks without an exchange meet at the manager.
    pub(crate) fn meeting_name(&self) -> Result<String, Error> {
        if let Some(name) = &self.rendezvous {
            return Ok(name.clone());
        }
        if let Some(name) = setting(RENDEZVOUS_ENV)? {
            return Ok(name);
        }
        self.meeting_of(launch::detect(setting)?)
    }

    /// The name under which the ranks of a launcher's job meet, if this rank is what the launcher
    /// says: one that is not may be of another job, of which that program has several.
    fn meeting_of(&self, launch: Option<Launch>) -> Result<String, Error> {
        let why = match launch {
            None => "no launcher gives a name under which ranks could meet".to_owned(),
            Some(Launch { launcher, rank, size, .. }) if (rank, size) != (self.rank, self.size) => {
                let (own, all) = (self.rank, self.size);
                format!("{launcher} says that this is rank {rank} of {size}, and the program that it is {own} of {all}")
            }
            Some(Launch { meeting: Ok(name), .. }) => return Ok(name),
            Some(Launch { launcher, meeting: Err(why), .. }) => {
                format!("{launcher} gives no name under which the ranks could meet: {why}")
            }
        };
        Err(Error::Invalid(format!(
            "no out-of-band exchange given, {RENDEZVOUS_ENV} is not set, and {why}; start the program with `trib run`, \
             or set {RENDEZVOUS_ENV} to the same text on all ranks and to another one for each job, or give an exchange"
        )))
    }

    /// What the job asks for: the caller's wishes, completed by those of the environment.
    pub(crate) fn quota(&self) -> Result<QuotaAsk, Error> {
        let mut ask = self.ask.clone();
        if let Some(text) = setting(QUOTA_ENV)? {
            read_wishes(&mut ask, &text, QUOTA_ENV)?;
        }
        Ok(ask)
    }

    /// Adds wishes to `ask` in the form of `TRIB_QUOTA`, `NAME=NUMBER,...`. A field that is set
    /// already keeps its value. Errors name `source`.
    pub fn ask_for(&mut self, text: &str, source: &str) -> Result<(), Error> {
        read_wishes(&mut self.ask, text, source)
    }

    /// Takes what the program's users call the collectives: `NAME=CALL,...`, such as
    /// `allreduce=MPI_Allreduce`. `source` stands in errors.
    pub fn name_calls(&mut self, text: &str, source: &str) -> Result<(), Error> {
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, call) = entry.split_once('=').unwrap_or((entry, ""));
            let Some(collective) = Collective::from_name(name) else {
                let all: Vec<&str> = Collective::ALL.iter().map(|known| known.name()).collect();
                let all = all.join(", ");
                return Err(Error::Invalid(format!("{source}: `{name}` is no collective; these are: {all}")));
            };
            if call.is_empty() || call.len() > GroupName::MAX || call.chars().any(char::is_control) {
                let most = GroupName::MAX;
                let text = format!("{source}: {name} is to be called by a name of 1 to {most} bytes on one line");
                return Err(Error::Invalid(text));
            }
            self.calls.insert(collective, call.to_owned());
        }
        Ok(())
    }
}

fn read_wishes(ask: &mut QuotaAsk, text: &str, source: &str) -> Result<(), Error> {
    let mut wishes = text.split(',').map(str::trim).filter(|wish| !wish.is_empty());
    wishes.try_for_each(|wish| read_wish(ask, wish, source))
}

fn read_wish(ask: &mut QuotaAsk, wish: &str, source: &str) -> Result<(), Error> {
    let wrong = || {
        let names = QuotaField::all().filter(|field| field.may_be_asked()).map(QuotaField::name);
        let names = names.collect::<Vec<_>>().join(" ");
        Error::Invalid(format!("{source}: `{wish}` is not NAME=NUMBER; names: {names}"))
    };
    let (name, value) = wish.split_once('=').ok_or_else(wrong)?;
    let field = QuotaField::from_name(name.trim()).filter(|field| field.may_be_asked()).ok_or_else(wrong)?;
    let value = field.read(value.trim()).ok_or_else(|| match field.row().names {
        [] => wrong(),
        _ => Error::Invalid(format!("{source}: `{wish}`: {name} is {}", field.row().range())),
    })?;
    // A field that is set already keeps its value, but a wrong wish for it is an error
    // nevertheless.
    let mut unused = QuotaAsk::default();
    let ask = if ask.get(field).is_some() { &mut unused } else { ask };
    ask.ask(field, value).map_err(|cause| Error::Invalid(format!("{source}: {cause}")))
}

/// What `TRIB_TIMEOUT_MS` says.
fn read_timeout(text: Option<&str>) -> Result<Duration, Error> {
    let Some(text) = text else { return Ok(TIMEOUT_DEFAULT) };
    match text.parse::<u32>() {
        Ok(ms) if ms > 0 => Ok(Duration::from_millis(u64::from(ms))),
        _ => Err(Error::Invalid(format!("{TIMEOUT_ENV}={text} is not a number of milliseconds above 0"))),
    }
}

/// What `TRIB_WAIT_MS` says.
fn read_wait(text: Option<&str>) -> Result<Duration, Error> {
    let Some(text) = text else { return Ok(Duration::ZERO) };
    match text.parse::<u32>() {
        Ok(ms) if ms <= WAIT_MAX => Ok(Duration::from_millis(u64::from(ms))),
        _ => Err(Error::Invalid(format!("{WAIT_ENV}={text} is not a number of milliseconds up to {WAIT_MAX}"))),
    }
}

/// A variable that is `on` or `off`.
fn is_on(name: &str, unless_set: bool) -> Result<bool, Error> {
    match setting(name)?.as_deref() {
        None => Ok(unless_set),
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(Error::Invalid(format!("{name}={other} is neither on nor off"))),
    }
}

/// A variable of the environment. An empty one counts as not set.
pub(crate) fn setting(name: &str) -> Result<Option<String>, Error> {
    match std::env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::Invalid(format!("{name} is not UTF-8"))),
    }
}

fn system_host_name() -> Result<String, Error> {
    let mut name = [0u8; 256];
    // SAFETY: the call writes at most the given length, one byte less than the buffer, so the
    // buffer stays terminated.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let text = core::ffi::CStr::from_bytes_until_nul(&name).ok().and_then(|text| text.to_str().ok());
    match text {
        Some(text) if !failed => Ok(text.to_owned()),
        _ => Err(Error::Invalid(format!("the system has no usable host name; set {HOST_ENV}"))),
    }
}

/// What the process logs: a level, or `crate=level,...`; nothing if unset.
pub const LOG_ENV: &str = "TRIB_LOG";
/// This host's name in the topology.
pub const HOST_ENV: &str = "TRIB_HOST";
/// Environment variable: whether ranks of one host may share memory, `on` or `off`.
pub const MEMORY_ENV: &str = "TRIB_SHARED_MEMORY";
/// Environment variable: whether GPUs of one host combine what they have before it leaves the host,
/// `on` or `off`.
pub const DEVICES_ENV: &str = "TRIB_CUDA_PEERS";
/// Environment variable: how groups take sums of floating-point numbers unless they say it
/// themselves, `plain`, `fixed`, `exact` or `int8`.
pub const SUMS_ENV: &str = "TRIB_SUMS";
/// The NUMA node to which this process counts as bound, or `none`.
pub const NUMA_ENV: &str = "TRIB_NUMA";
/// The time limit of joining, unless the program gives one, and of looking for a node when one has
/// died, in milliseconds.
pub const TIMEOUT_ENV: &str = "TRIB_TIMEOUT_MS";
/// How long the job may wait for quota that other jobs have, in milliseconds, on top of the time
/// limit.
pub const WAIT_ENV: &str = "TRIB_WAIT_MS";
/// What the job asks for: `NAME=NUMBER` pairs, separated by commas. The names are those of
/// `QuotaAsk`.
pub const QUOTA_ENV: &str = "TRIB_QUOTA";

/// The largest value that the manager takes, in milliseconds.
const WAIT_MAX: u32 = 3_600_000;
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// The longest host name in bytes, which is the longest domain name.
pub(crate) const HOST_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_by_name_and_never_override_the_caller() {
        let mut ask = QuotaAsk { window: Some(4), ..QuotaAsk::default() };
        read_wishes(&mut ask, "groups=7, window = 9,stream_threshold=0,", QUOTA_ENV).unwrap();
        assert_eq!((ask.groups, ask.window, ask.stream_threshold), (Some(7), Some(4), Some(0)));
        let mut params = Params::new(0, 1);
        params.ask_for("lanes=2,trees=1,stripe_threshold=4294967296", "here").unwrap();
        let QuotaAsk { lanes, trees, stripe_threshold, .. } = params.ask;
        assert_eq!((lanes, trees, stripe_threshold), (Some(2), Some(1), Some(1 << 32)));
        for wish in ["groups", "groups=x", "groups=-1", "size=1", "node_memory=1"] {
            let text = read_wishes(&mut ask, wish, "here").unwrap_err().to_string();
            assert!(text.contains(&format!("here: `{wish}`")) && text.contains("stream_threshold"), "{text}");
        }
        // A wrong wish is an error where it is first read, even if it would not be used.
        for (wish, told) in [
            ("groups=4294967296", "groups = 4294967296 is out of range: it is 1 to 4294967295 groups"),
            ("window=65", "window = 65 is out of range: it is 1 to 64 fragments"),
            ("staging=65536", "staging = 65536 is out of range: it is 1 to 1024 segments"),
            ("payload=100", "payload = 100 is out of range: it is 16 to 65400 bytes, a multiple of 8"),
        ] {
            assert_eq!(read_wishes(&mut ask, wish, "here"), Err(Error::Invalid(format!("here: {told}"))), "{wish}");
        }
    }

    #[test]
    fn a_programs_limit_of_joining_is_not_its_patience_with_nodes_that_die() {
        let said = |text| read_timeout(text).map(|limit| limit.as_millis());
        assert_eq!((said(None), said(Some("1500"))), (Ok(30_000), Ok(1500)));
        assert!(["0", "-1", "soon"].into_iter().all(|text| said(Some(text)).is_err()));
        let patience = Params::patience().unwrap();
        let params = Params { timeout: Some(patience / 30), ..Params::new(0, 1) };
        assert_eq!(params.time_limit(), Ok(patience / 30));
        assert_eq!(Params::new(0, 1).time_limit(), Ok(patience));
    }

    #[test]
    fn a_program_that_says_how_long_it_waits_does_not_wait_as_the_environment_says() {
        let said = |text| read_wait(text).map(|wait| wait.as_millis());
        assert_eq!((said(None), said(Some("600000"))), (Ok(0), Ok(600_000)));
        assert!(["-1", "3600001", "soon"].into_iter().all(|text| said(Some(text)).is_err()));
        let environment = Params::new(0, 1).queue_limit().unwrap();
        let params = Params { wait: Some(environment + Duration::from_secs(1)), ..Params::new(0, 1) };
        assert_eq!(params.queue_limit(), Ok(environment + Duration::from_secs(1)));
    }

    #[test]
    fn ranks_meet_under_their_launchers_name_if_they_are_what_it_says() {
        let launch = || Some(Launch { launcher: "srun", rank: 1, size: 2, meeting: Ok("12-0".to_owned()) });
        assert_eq!(Params::new(1, 2).meeting_of(launch()), Ok("12-0".to_owned()));
        let told = |params: Params, launch| params.meeting_of(launch).unwrap_err().to_string();
        let other = told(Params::new(0, 1), launch());
        assert!(other.contains("srun says that this is rank 1 of 2, and the program that it is 0 of 1"), "{other}");
        let unnamed = Launch { meeting: Err("SLURM_STEP_ID is not set".to_owned()), ..launch().unwrap() };
        let unnamed = told(Params::new(1, 2), Some(unnamed));
        assert!(unnamed.contains("SLURM_STEP_ID is not set") && unnamed.contains(RENDEZVOUS_ENV), "{unnamed}");
        assert!(told(Params::new(1, 2), None).contains("start the program with `trib run`"));
    }

    #[test]
    fn ranks_outside_the_job_are_refused() {
        assert!(Params::new(0, 1).check().is_ok());
        assert!(Params::new(1, 1).check().is_err());
        assert!(Params::new(0, 0).check().is_err());
        assert!(Params::new(0, u32::MAX).check().is_err());
    }
}
