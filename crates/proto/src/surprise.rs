//! What the core does about what it does not expect.
//!
//! *What a peer can bring about*, with all keys and whatever it sends and in whatever order, is
//! answered: by a note, by a fault of one group, or by closing the link. Such a path is total, and
//! never asserts. So are paths of what the network, a timer or a program that frees a group brings
//! about: there a look-up that finds nothing is an ordinary case, with a comment where it is not
//! plain.
//!
//! *What only an error in this crate can bring about* is asserted, in the code that ships, too
//! (Cargo.toml keeps the checks on): a machine that went on would make a wrong sum of it, and one
//! that quietly did nothing a hang. A node's driver lets such a panic cost the one job
//! (`worker::isolation`), the simulator and the fuzzers show the steps to it.
//!
//! Whether a state is of the first or the second kind is decided by who chooses the numbers in it:
//! an index that was looked up, a transition that the code before has asked for, the ends of a
//! window that is moved here alone.

/// Ends the job: no sequence of inputs leads here.
#[cold]
#[track_caller]
pub(crate) fn cannot_happen(what: &str) -> ! {
    panic!("cannot happen: {what}");
}
