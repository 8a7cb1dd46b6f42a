//! A time that an input plays: it stands still but where a step lets it pass, and what the code
//! under test does while it waits is the next step.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use trib_manager::Played;

/// The time of this thread, as the manager knows it.
pub struct Clock;

/// What happens while somebody waits for so long at most.
type Meanwhile = Rc<dyn Fn(Duration)>;

thread_local! {
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static MEANWHILE: RefCell<Option<Meanwhile>> = const { RefCell::new(None) };
}

/// Begins anew. While somebody waits, `meanwhile` is called.
pub fn begin(meanwhile: impl Fn(Duration) + 'static) {
    PASSED.set(Duration::ZERO);
    MEANWHILE.set(Some(Rc::new(meanwhile)));
}

/// Who waits from now on waits until the time is over.
pub fn end() {
    MEANWHILE.set(None);
}

/// How much time has passed.
pub fn passed() -> Duration {
    PASSED.get()
}

/// So much time passes.
pub fn pass(span: Duration) {
    PASSED.set(PASSED.get() + span);
}

impl Played for Clock {
    fn now(&self) -> Instant {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        *BEGIN.get_or_init(Instant::now) + PASSED.get()
    }

    fn unix_ms(&self) -> u64 {
        BEGIN_MS + PASSED.get().as_millis() as u64
    }

    fn pass(&self, most: Duration) {
        match MEANWHILE.with_borrow(Clone::clone) {
            Some(meanwhile) => meanwhile(most),
            None => pass(most),
        }
    }
}

const BEGIN_MS: u64 = 1_700_000_000_000;
