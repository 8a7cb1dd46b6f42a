//! The native C API: `libtributary.so`.
