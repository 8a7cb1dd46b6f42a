//! The requests that NCCL holds: pointers to entries of a table that belongs to the communicator,
//! so that nothing is allocated for a request, and nothing is lost if NCCL gives up without asking.

use std::ffi::c_void;
use std::ptr;

/// Requests of one communicator at a time: NCCL's `NCCL_NET_MAX_REQUESTS`.
pub const REQUESTS_MAX: usize = 32;

/// What a request points to.
pub struct Ticket<O> {
    owner: *const O,
    index: usize,
}

// SAFETY: the pointer is followed only by `redeem`, whose caller has a communicator that exists.
unsafe impl<O> Send for Ticket<O> {}

/// The entries of one communicator.
pub struct Tickets<O>(Vec<Ticket<O>>);

/// A communicator that has tickets.
pub trait Owner: Sized {
    fn tickets(&mut self) -> &mut Tickets<Self>;
}

impl<O: Owner> Tickets<O> {
    pub fn new() -> Tickets<O> {
        Tickets((0..REQUESTS_MAX).map(|index| Ticket { owner: ptr::null(), index }).collect())
    }

    /// The request with this number.
    pub fn request(&self, index: usize) -> *mut c_void {
        ptr::from_ref(&self.0[index]).cast_mut().cast()
    }
}

/// Gives a communicator to C, which gives it back with [`take`].
pub fn hand_out<O: Owner>(owner: Box<O>) -> *mut c_void {
    let owner = Box::into_raw(owner);
    // SAFETY: it was a box just now, and nobody else has the pointer yet.
    for ticket in &mut unsafe { &mut *owner }.tickets().0 {
        ticket.owner = owner;
    }
    owner.cast()
}

/// Takes a communicator back. Null gives nothing.
///
/// # Safety
/// The pointer is null or came from [`hand_out`] with the same type and was not taken yet.
pub unsafe fn take<O>(pointer: *mut c_void) -> Option<Box<O>> {
    // SAFETY: the caller's contract.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer.cast::<O>()) })
}

/// The communicator and the number of a request. Null gives nothing.
///
/// # Safety
/// The pointer is null or a request of a communicator of this type that was not taken back.
pub unsafe fn redeem<'a, O>(request: *mut c_void) -> Option<(&'a O, usize)> {
    // SAFETY: the caller's contract.
    let ticket = unsafe { request.cast::<Ticket<O>>().as_ref() }?;
    // SAFETY: `hand_out` wrote the owner, which exists as long as the caller says.
    unsafe { ticket.owner.as_ref() }.map(|owner| (owner, ticket.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Comm(Tickets<Comm>, u32);

    impl Owner for Comm {
        fn tickets(&mut self) -> &mut Tickets<Comm> {
            &mut self.0
        }
    }

    #[test]
    fn a_request_leads_to_its_communicator_and_number() {
        let pointer = hand_out(Box::new(Comm(Tickets::new(), 7)));
        // SAFETY: it was handed out and not taken.
        let comm = unsafe { &*pointer.cast::<Comm>() };
        for index in [0, 5, REQUESTS_MAX - 1] {
            // SAFETY: the communicator exists.
            let (owner, number) = unsafe { redeem::<Comm>(comm.0.request(index)) }.unwrap();
            assert_eq!((owner.1, number), (7, index));
        }
        // SAFETY: null is allowed, and the communicator is taken once.
        unsafe {
            assert!(redeem::<Comm>(ptr::null_mut()).is_none() && take::<Comm>(ptr::null_mut()).is_none());
            assert_eq!(take::<Comm>(pointer).unwrap().1, 7);
        }
    }
}
