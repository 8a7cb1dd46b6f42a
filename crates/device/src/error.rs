//! What the driver returns, in words: the call, the code, and what to do.

use std::ffi::c_int;

/// A failure of the driver or of the way to it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// There is no driver, it is too old, or it has been switched off.
    #[error("memory of a GPU was given, and {0}")]
    Absent(String),
    /// The stream is being captured into a graph.
    #[error(
        "the stream is being captured into a CUDA graph, which cannot hold a collective: other ranks take part in it, \
         each time anew; end the capture before the call"
    )]
    Capturing,
    /// A call of the driver failed.
    #[error("{call} failed with {name} ({code}): {}", advice(*code))]
    Failed {
        /// The function of the driver.
        call: &'static str,
        /// Its result.
        code: c_int,
        /// The driver's name for the result, or ours where it has none.
        name: String,
    },
}

impl Error {
    /// Whether memory is used up, the device's or that of the host which may be pinned.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Error::Failed { code: OUT_OF_MEMORY, .. })
    }
}

/// What to do about a code.
fn advice(code: c_int) -> &'static str {
    match code {
        INVALID_VALUE => "an address or a size is wrong; was the memory freed while the operation ran?",
        OUT_OF_MEMORY => {
            "memory of the device, or memory of the host that may be pinned, is used up; free some, or see `ulimit -l`"
        }
        3 | 4 => "the driver is shutting down; leave the job before the process ends",
        100 | 101 => "no such GPU can be seen; see nvidia-smi and CUDA_VISIBLE_DEVICES",
        201 | 709 => "the context of the memory or of the stream is gone; leave the job before the device is reset",
        214 | 220 | 221 => {
            "the device has failed; see nvidia-smi and the Xid lines of dmesg, and start the process anew"
        }
        400 => "the stream is none of this context, or was destroyed; keep it until the operation is over",
        701 => "the kernel takes more registers or memory than the device has for it",
        704 | 705 | 711 => "devices cannot reach each other's memory, or as many as may already do",
        700 | 702 | 710 | 714..=719 => {
            "a kernel of the program has failed earlier, and its context is lost; compute-sanitizer finds it, and the \
             process has to be started anew"
        }
        800..=802 => "the system does not allow it; see nvidia-smi and the permissions of /dev/nvidia*",
        CAPTURE_FIRST..=CAPTURE_LAST => "a stream is being captured into a CUDA graph; end the capture before the call",
        _ => "see the code in CUDA's driver API, and nvidia-smi and dmesg for the device's state",
    }
}

/// `CUDA_ERROR_INVALID_VALUE`; the driver returns it for an address that it does not know, too.
pub(crate) const INVALID_VALUE: c_int = 1;
/// `CUDA_ERROR_NOT_READY`: an event has not come, which is no failure.
pub(crate) const NOT_READY: c_int = 600;
/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: asked about the stream on which all others wait while one
/// of these is captured.
pub(crate) const CAPTURE_IMPLICIT: c_int = 906;
/// `CUDA_ERROR_NOT_SUPPORTED`.
pub(crate) const NOT_SUPPORTED: c_int = 801;
const OUT_OF_MEMORY: c_int = 2;
const CAPTURE_FIRST: c_int = 900;
const CAPTURE_LAST: c_int = 908;

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: c_int) -> Error {
        Error::Failed { call: "cuMemcpyAsync", code, name: "CUDA_ERROR_OF_SOME_KIND".into() }
    }

    #[test]
    fn every_code_is_told_with_call_name_number_and_advice() {
        for code in [1, 2, 3, 100, 201, 214, 400, 700, 719, 800, 900, 999, -5, c_int::MAX] {
            let told = failed(code).to_string();
            let start = format!("cuMemcpyAsync failed with CUDA_ERROR_OF_SOME_KIND ({code}): ");
            assert!(told.starts_with(&start) && told.len() > start.len() + 20, "{told}");
        }
    }

    #[test]
    fn advice_fits_the_code() {
        for (code, word) in [
            (2, "ulimit"),
            (700, "compute-sanitizer"),
            (719, "compute-sanitizer"),
            (701, "registers"),
            (711, "reach"),
            (906, "graph"),
            (100, "CUDA_VISIBLE_DEVICES"),
        ] {
            assert!(failed(code).to_string().contains(word), "{}", failed(code));
        }
        assert!(failed(2).is_out_of_memory() && !failed(1).is_out_of_memory() && !Error::Capturing.is_out_of_memory());
    }
}
