//! The floating-point environment of the calling thread, made the standard one for a fold.
//!
//! Folds also run inside applications, in a rank that hosts a node. There a compiler option may
//! flush denormals to zero, or the program may have changed the rounding mode or let exceptions
//! trap. Each of these would give other bits than the nodes next door, or a signal. Entering costs
//! a few cycles where nothing is to be changed.

/// While it lives, the thread rounds to nearest even, keeps denormals and traps nothing.
#[derive(Debug)]
pub struct Environment {
    /// The control word to put back.
    found: Option<Control>,
}

impl Environment {
    /// Changes what has to be changed.
    #[must_use = "it lasts as long as this does"]
    pub fn enter() -> Environment {
        let found = read();
        if found & CONTROL_BITS == STANDARD {
            return Environment { found: None };
        }
        write(STANDARD);
        Environment { found: Some(found) }
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if let Some(found) = self.found {
            write(found);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod register {
    use core::arch::asm;

    /// Contents of MXCSR.
    pub(super) type Control = u32;

    /// All but the six sticky exception flags.
    pub(super) const CONTROL_BITS: Control = !0x3f;

    /// All exceptions masked, round to nearest, no flushing.
    pub(super) const STANDARD: Control = 0x1f80;

    pub(super) fn read() -> Control {
        let mut control: Control = 0;
        // SAFETY: stmxcsr stores 4 bytes to the given address, that of a live u32.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut control, options(nostack, preserves_flags)) };
        control
    }

    pub(super) fn write(control: Control) {
        // The language has no other way to undo what a C caller has set. SAFETY: ldmxcsr loads 4
        // bytes from a live u32. The value is the one Rust code assumes, or the one found on entry,
        // so no reserved bit is set and Rust code between the two sees the standard state.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &control, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use core::arch::asm;

    /// Contents of FPCR.
    pub(super) type Control = u64;

    /// The register has no sticky flags.
    pub(super) const CONTROL_BITS: Control = !0;

    /// No traps, round to nearest, no flushing, NaN operands propagate.
    pub(super) const STANDARD: Control = 0;

    pub(super) fn read() -> Control {
        let control: Control;
        // SAFETY: reads a register that every privilege level may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) control, options(nostack, preserves_flags)) };
        control
    }

    pub(super) fn write(control: Control) {
        // The language has no other way to undo what a C caller has set.
        // SAFETY: the value is the one Rust code assumes, or the one found on entry.
        unsafe { asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    /// This architecture is taken as it is found.
    pub(super) type Control = u32;

    pub(super) const CONTROL_BITS: Control = 0;

    pub(super) const STANDARD: Control = 0;

    pub(super) fn read() -> Control {
        STANDARD
    }

    pub(super) fn write(_control: Control) {}
}

use register::{CONTROL_BITS, Control, STANDARD, read, write};

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::fold_into;
    use trib_wire::{DataType, ReduceOp};

    #[test]
    fn denormals_and_rounding_survive_a_caller_who_changed_both() {
        const FLUSH_AND_ROUND_UP: Control = STANDARD | 1 << 15 | 1 << 6 | 2 << 13;
        let mut tiny = 1_u32.to_le_bytes();
        let mut third = 1.0_f32.to_le_bytes();
        let small = 1e-9_f32.to_le_bytes();
        let before = read();
        write(FLUSH_AND_ROUND_UP);
        let folded = fold_into(DataType::F32, ReduceOp::Sum, &mut tiny, &[&2_u32.to_le_bytes()]).and(fold_into(
            DataType::F32,
            ReduceOp::Sum,
            &mut third,
            &[&small],
        ));
        let after = read();
        write(before);
        assert_eq!(folded, Ok(()));
        assert_eq!(u32::from_le_bytes(tiny), 3, "denormals add up");
        assert_eq!(f32::from_le_bytes(third), 1.0, "rounded to nearest");
        assert_eq!(after & CONTROL_BITS, FLUSH_AND_ROUND_UP, "the caller's setting is back");
    }
}
