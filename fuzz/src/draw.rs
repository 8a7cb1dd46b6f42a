//! Values from the engine's bytes. When these are used up, everything is zero, and the
//! target ends.

use arbitrary::Unstructured;

/// The bytes of one input, of which values are taken from the front.
pub struct Draw<'a>(Unstructured<'a>);

impl<'a> Draw<'a> {
    /// All of an input.
    pub fn new(bytes: &'a [u8]) -> Draw<'a> {
        Draw(Unstructured::new(bytes))
    }

    /// Whether everything is used up.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are not used up.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// Eight bytes.
    pub fn word(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// A number below `end`, which is at most 256.
    pub fn below(&mut self, end: u32) -> u32 {
        u32::from(self.byte()) % end.max(1)
    }

    /// Whether something is so, in one of `of` cases.
    pub fn one_in(&mut self, of: u8) -> bool {
        self.byte() % of == of - 1
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }

    /// A number as protocols have them: most often small, sometimes at the end of what is allowed.
    pub fn number(&mut self, most: u64) -> u64 {
        let number = match self.byte() {
            small @ 0..240 => u64::from(small % 24),
            240..248 => most.saturating_sub(u64::from(self.byte() % 4)),
            _ => self.word(),
        };
        number.min(most)
    }
}
