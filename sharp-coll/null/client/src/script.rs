//! The fates of the next operations, for programs that are linked with the library.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The fate of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It ends well, at once.
    Ends,
    /// It fails, at once.
    Fails,
    /// It is under way until all operations are released, and ends well then.
    Stays,
}

struct Script {
    fates: VecDeque<Fate>,
    /// The addresses of the inputs of the operations since the script was given.
    inputs: Vec<usize>,
}

static SCRIPT: Mutex<Script> = Mutex::new(Script { fates: VecDeque::new(), inputs: Vec::new() });
static IS_SCRIPTED: AtomicBool = AtomicBool::new(false);
static ARE_HELD: AtomicBool = AtomicBool::new(false);

/// The fate of an operation that is posted now.
pub(crate) fn next(input: *const u8) -> Fate {
    if !IS_SCRIPTED.load(Ordering::Relaxed) {
        return Fate::Ends;
    }
    let mut script = script();
    script.inputs.push(input.addr());
    script.fates.pop_front().unwrap_or(Fate::Ends)
}

/// Whether the operations that stay are still under way.
pub(crate) fn are_held() -> bool {
    ARE_HELD.load(Ordering::Acquire)
}

/// Gives the fates of the next operations, a letter each: `e` ends, `f` fails, `s` stays. Later
/// ones end.
///
/// # Safety
/// `fates` is a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn null_script(fates: *const c_char) {
    // SAFETY: the caller's contract.
    let letters = unsafe { CStr::from_ptr(fates) }.to_bytes();
    let mut script = script();
    script.inputs.clear();
    script.fates = letters
        .iter()
        .map(|letter| match letter {
            b'f' => Fate::Fails,
            b's' => Fate::Stays,
            _ => Fate::Ends,
        })
        .collect();
    ARE_HELD.store(true, Ordering::Release);
    IS_SCRIPTED.store(true, Ordering::Relaxed);
}

/// The address of the input of operation number `at` since the script was given; null if there was
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn null_input(at: usize) -> *const c_void {
    std::ptr::with_exposed_provenance(script().inputs.get(at).copied().unwrap_or(0))
}

/// Ends the operations that stayed under way, and the script.
#[unsafe(no_mangle)]
pub extern "C" fn null_release() {
    ARE_HELD.store(false, Ordering::Release);
    IS_SCRIPTED.store(false, Ordering::Relaxed);
}

fn script() -> MutexGuard<'static, Script> {
    SCRIPT.lock().unwrap_or_else(PoisonError::into_inner)
}
