//! One source, compiled for the processor at hand.

/// What is compiled several times. It is no closure, because one that is not inlined is compiled
/// for what every processor has.
pub(crate) trait Work {
    /// What comes of it.
    type Output;

    /// Does it. Marked as `#[inline(always)]`, it is compiled for the processor that
    /// [`at_best`] finds, which says whether that is a better one.
    fn run(self, is_wide: bool) -> Self::Output;
}

/// Does some work with the instructions that count bits, shift by a variable number of them and
/// take several elements at once, where the processor has those. The bits are the same either way.
#[inline(always)]
pub(crate) fn at_best<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi1,bmi2,lzcnt")]
        fn widest<W: Work>(work: W) -> W::Output {
            work.run(true)
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
        fn wide<W: Work>(work: W) -> W::Output {
            work.run(true)
        }
        let counts =
            is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("lzcnt");
        let has_widest = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if counts && has_widest {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { widest(work) };
        }
        if counts && is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { wide(work) };
        }
    }
    work.run(false)
}
