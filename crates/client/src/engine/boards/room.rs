//! Whether the members of a group have the processors of their host to themselves, so that one that
//! waits may keep its processor without keeping another member from running.

use crate::processors;

/// The processors on which a member may run, as far as others have to know them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seat {
    /// The lowest of them. Members are bound to the same set, or to sets that have nothing in
    /// common, so it stands for the set.
    lowest: u32,
    /// How many they are; 0 if that is not known.
    count: u32,
}

impl Seat {
    /// In bytes.
    pub(super) const LEN: usize = 8;

    /// That of this thread. Reading it takes system calls and files.
    pub(super) fn own() -> Seat {
        let all = processors::own().unwrap_or_default();
        // A container may have fewer than it sees.
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        Seat { lowest: all.first().copied().unwrap_or(0), count: all.len().min(usable) as u32 }
    }

    pub(super) fn read(bytes: [u8; Seat::LEN]) -> Seat {
        let both = u64::from_le_bytes(bytes);
        Seat { lowest: both as u32, count: (both >> 32) as u32 }
    }

    pub(super) fn write(self) -> [u8; Seat::LEN] {
        (u64::from(self.lowest) | u64::from(self.count) << 32).to_le_bytes()
    }
}

/// Whether each of the members has a processor to itself. All members get the same answer.
pub(super) fn is_roomy(members: &[Seat]) -> bool {
    let beside = |seat: &Seat| members.iter().filter(|other| other.lowest == seat.lowest).count();
    members.iter().all(|seat| beside(seat) <= seat.count as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seats(all: &[(u32, u32)]) -> Vec<Seat> {
        all.iter().map(|(lowest, count)| Seat { lowest: *lowest, count: *count }).collect()
    }

    #[test]
    fn members_have_room_if_no_set_of_processors_has_more_members_than_processors() {
        let roomy = |all: &[(u32, u32)]| is_roomy(&seats(all));
        assert!(roomy(&[(0, 2), (0, 2)]) && !roomy(&[(0, 2), (0, 2), (0, 2)]), "bound to nothing on two processors");
        assert!(roomy(&[(0, 1), (1, 1), (2, 1)]) && !roomy(&[(0, 1), (1, 1), (1, 1)]), "each bound to one");
        assert!(roomy(&[(0, 2), (1, 2)]), "each bound to both threads of a core");
        assert!(!roomy(&[(0, 0)]), "it is not known");
    }

    #[test]
    fn a_thread_has_a_seat() {
        let own = Seat::own();
        assert!(own.count > 0 && is_roomy(&[own]));
    }

    proptest! {
        #[test]
        fn a_seat_is_read_as_it_was_written(lowest in any::<u32>(), count in any::<u32>()) {
            let seat = Seat { lowest, count };
            prop_assert_eq!(Seat::read(seat.write()), seat);
        }
    }
}
