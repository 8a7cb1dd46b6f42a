//! Signed integers of any length that a sum of limbs can have.

/// The words of the longest: every bit of a binary64, counters, and room for the members.
const WORDS: usize = 36;

/// Such an integer, in two's complement, the lowest word first.
#[derive(Clone, Copy)]
pub(crate) struct Wide([u64; WORDS]);

impl Wide {
    pub(crate) const ZERO: Wide = Wide([0; WORDS]);

    /// Adds so many units of two to the power of `bits`. What is beyond the highest word is lost.
    pub(crate) fn add(&mut self, value: i64, bits: u32) {
        let (first, offset) = ((bits / 64) as usize, bits % 64);
        let shifted = i128::from(value) << offset;
        let mut carry = false;
        let sign = (shifted >> 127) as u64;
        for (index, word) in self.0.iter_mut().enumerate().skip(first) {
            let part = match index - first {
                0 => shifted as u64,
                1 => (shifted >> 64) as u64,
                _ => sign,
            };
            let (sum, over) = word.overflowing_add(part);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            *word = sum;
            carry = over || over_again;
            if index >= first + 2 && carry == (sign != 0) {
                // The rest adds nothing: zeros without a carry, or ones with it.
                return;
            }
        }
    }

    /// The lowest bits, at most 128 of them.
    pub(crate) fn low(&self, bits: u32) -> u128 {
        let low = u128::from(self.0[0]) | u128::from(self.0[1]) << 64;
        if bits < 128 { low & ((1 << bits) - 1) } else { low }
    }

    /// The sign and the magnitude of what is above the lowest `below` bits, fewer than 128: so many
    /// units of two to the power of what comes with it. What is too fine for the magnitude is told
    /// by its lowest bit.
    pub(crate) fn magnitude(&self, below: u32) -> (bool, u128, i32) {
        let mut words = self.0;
        for bit in 0..2 {
            let own = below.saturating_sub(64 * bit).min(64);
            words[bit as usize] &= u64::MAX.checked_shl(own).unwrap_or(0);
        }
        let negative = words[WORDS - 1] >> 63 == 1;
        if negative {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).overflowing_add(u64::from(carry));
            }
        }
        let Some(top) = words.iter().rposition(|word| *word != 0) else { return (false, 0, 0) };
        let at = |index: usize| u128::from(words.get(index).copied().unwrap_or(0));
        // Two words from the highest one on that is not zero, less what is below them; both are
        // moved down so far that the lowest bit is free.
        let from = top.saturating_sub(1);
        let high = at(from + 1) << 64 | at(from);
        let lost = words[..from].iter().any(|word| *word != 0);
        let unit = 64 * from as i32 - below as i32;
        if from == 0 {
            return (negative, high >> below, 0);
        }
        (negative, (high >> 1) | u128::from(lost || high & 1 == 1), unit + 1)
    }
}
