//! Whose namespaces are whose, told by their names alone: `trib-lab.PID.START.SERIAL.PART`.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::ProcessId;

/// One laboratory's namespaces: the process it belongs to, and which of that process's laboratories it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    process: ProcessId,
    serial: u32,
}

impl Owner {
    /// A fresh one of this process.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self { process: ProcessId::own(), serial: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Name of the namespace of `part`.
    pub(super) fn namespace(self, part: &str) -> String {
        format!("{PREFIX}.{}.{part}", self.id())
    }

    /// What [`Self::from_str`] reads.
    pub(super) fn id(self) -> String {
        let Self { process: ProcessId { pid, start }, serial } = self;
        format!("{pid}.{start}.{serial}")
    }

    /// The owner that a namespace's name tells; `None` for namespaces that are not a laboratory's.
    pub(super) fn of(namespace: &str) -> Option<Self> {
        let (id, _part) = namespace.strip_prefix(PREFIX)?.strip_prefix('.')?.rsplit_once('.')?;
        id.parse().ok()
    }

    /// False when nobody will ever remove these namespaces but a sweep.
    pub(super) fn is_alive(self) -> bool {
        self.process.is_running()
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(id: &str) -> Result<Self, ()> {
        let mut fields = id.split('.');
        let mut field = || fields.next().ok_or(());
        let (pid, start, serial) = (field()?, field()?, field()?);
        let process = ProcessId { pid: pid.parse().map_err(drop)?, start: start.parse().map_err(drop)? };
        let serial = serial.parse().map_err(drop)?;
        if fields.next().is_some() { Err(()) } else { Ok(Self { process, serial }) }
    }
}

const PREFIX: &str = "trib-lab";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_owner() {
        let owner = Owner::new();
        assert_eq!(Owner::of(&owner.namespace("h0")), Some(owner));
        assert_eq!(owner.id().parse(), Ok(owner));
        assert_ne!(Owner::new(), owner);
        assert!(owner.is_alive());
    }

    #[test]
    fn names_of_others_are_left_alone() {
        for name in [
            "",
            "trib-lab",
            "trib-lab.1.2",
            "trib-lab.1.2.3",
            "trib-lab.a.2.3.h0",
            "trib-lab.1.2.3.h0.x",
            "mine.1.2.3.h0",
        ] {
            assert_eq!(Owner::of(name), None, "{name:?}");
        }
    }
}
