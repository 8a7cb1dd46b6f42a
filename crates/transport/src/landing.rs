//! Where payload bytes come from and go to.

/// Memory that a payload is read into.
pub trait Landing {
    /// The memory, at least as long as the payload it was chosen for.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Memory that a payload is sent from; it does not change until the frame is written or cut off.
pub trait Source {
    /// The payload, exactly as long as the header says.
    fn bytes(&self) -> &[u8];
}

/// The payload of senders and receivers whose frames carry typed bodies only: there is none.
#[derive(Debug)]
pub enum NoBuffer {}

impl Landing for NoBuffer {
    fn bytes_mut(&mut self) -> &mut [u8] {
        match *self {}
    }
}

impl Source for NoBuffer {
    fn bytes(&self) -> &[u8] {
        match *self {}
    }
}

impl Landing for Vec<u8> {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Source for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Memory of the application, sent without a copy.
#[derive(Debug)]
pub struct UserSource {
    start: *const u8,
    len: usize,
}

impl UserSource {
    /// # Safety
    /// `len` bytes from `start` stay readable, and nothing writes to them, until the value is
    /// dropped.
    pub unsafe fn new(start: *const u8, len: usize) -> UserSource {
        UserSource { start, len }
    }
}

// SAFETY: the memory is only read, and the contract of `new` holds for every thread.
unsafe impl Send for UserSource {}

impl Source for UserSource {
    fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the contract of `new`.
        unsafe { core::slice::from_raw_parts(self.start, self.len) }
    }
}

/// Memory of the application, received into without a copy.
#[derive(Debug)]
pub struct UserLanding {
    start: *mut u8,
    len: usize,
}

impl UserLanding {
    /// # Safety
    /// `len` bytes from `start` stay writable and initialised, and nothing else touches them, until
    /// the value is dropped.
    pub unsafe fn new(start: *mut u8, len: usize) -> UserLanding {
        UserLanding { start, len }
    }
}

// SAFETY: the value is the only one that touches the memory, by the contract of `new`.
unsafe impl Send for UserLanding {}

impl Landing for UserLanding {
    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: the contract of `new`.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.len) }
    }
}
