//! One source, compiled for the processor at hand.

/// Runs `what` with the instructions that count bits and shift by a variable number of them, where
/// the processor has those. All that it computes is integers, so the bits are the same.
#[inline(always)]
pub(crate) fn at_best<R>(what: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
        fn wide<R>(what: impl FnOnce() -> R) -> R {
            what()
        }
        let has_all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt");
        if has_all {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { wide(what) };
        }
    }
    what()
}
