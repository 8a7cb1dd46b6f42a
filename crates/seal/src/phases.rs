//! Which key a number is sealed with.

use trib_keys::PayloadKey;

use crate::PHASE_SEALS;

/// The keys of the last two phases that were asked for: a child may see numbers of two that follow
/// each other in any order.
pub(crate) struct Phases {
    root: PayloadKey,
    known: [Option<(u64, [u8; 16])>; 2],
}

impl Phases {
    pub(crate) fn new(root: PayloadKey) -> Phases {
        Phases { root, known: [None; 2] }
    }

    pub(crate) fn key_of(&mut self, number: u64) -> [u8; 16] {
        let phase = number / PHASE_SEALS;
        let slot = &mut self.known[(phase % 2) as usize];
        match slot {
            Some((known, key)) if *known == phase => *key,
            _ => slot.insert((phase, self.root.phase(phase))).1,
        }
    }
}

/// Whether a phase begins with this number.
pub(crate) fn is_first(number: u64) -> bool {
    number.is_multiple_of(PHASE_SEALS)
}

/// The first number of the phase after this number's.
pub(crate) fn after(number: u64) -> u64 {
    (number / PHASE_SEALS + 1) * PHASE_SEALS
}
