//! The instruction sets a kernel is compiled for.

use core::fmt;
use std::sync::OnceLock;

/// Instructions that a fold may use. The result does not depend on them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Path {
    /// What every processor of the architecture has (SSE2, NEON).
    Portable,
    /// AVX2 with F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Path {
    /// Every path, plainest first.
    pub const ALL: &'static [Path] = &[Path::Portable, Path::Avx2, Path::Avx512];

    /// The best path of this processor, found once per process.
    pub fn best() -> Path {
        static BEST: OnceLock<Path> = OnceLock::new();
        *BEST.get_or_init(|| Path::available().last().expect("the portable path is always there"))
    }

    /// The paths of this processor, plainest first.
    pub fn available() -> impl Iterator<Item = Path> {
        Path::ALL.iter().copied().filter(|path| path.is_available())
    }

    /// Whether this processor has the instructions; the answers are cached by the standard library.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = || has!("avx2") && has!("f16c") && has!("bmi1") && has!("bmi2") && has!("lzcnt");
        match self {
            Path::Portable => true,
            Path::Avx2 => avx2(),
            Path::Avx512 => {
                let foundation = has!("avx512f") && has!("avx512bw");
                foundation && has!("avx512dq") && has!("avx512vl") && avx2()
            }
        }
    }

    /// Whether this processor has the instructions.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_available(self) -> bool {
        self == Path::Portable
    }

    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Path::Portable => "portable",
            Path::Avx2 => "avx2",
            Path::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
