//! Which devices UCX finds here.

use super::context::open_context;
use super::library::{Library, NoUcx};

/// What UCX would use, as its environment says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Devices {
    /// Its release.
    pub version: String,
    /// A transport and a device each, `rc_mlx5/mlx5_0:1` or `tcp/eth0`.
    pub devices: Vec<String>,
}

/// Asks UCX for its devices.
pub fn devices() -> Result<Devices, NoUcx> {
    let library = Library::get()?;
    let context = open_context(library, &[])?;
    let (mut text, mut len) = (core::ptr::null_mut(), 0);
    // SAFETY: both are written to when the stream is flushed or closed.
    let stream = unsafe { libc::open_memstream(&raw mut text, &raw mut len) };
    let mut report = String::new();
    if !stream.is_null() {
        // SAFETY: context and stream are open. After `fclose` there are `len` bytes of ours at
        // `text`.
        unsafe {
            (library.context_print_info)(context, stream);
            libc::fclose(stream);
            report.push_str(&String::from_utf8_lossy(core::slice::from_raw_parts(text.cast::<u8>(), len)));
            libc::free(text.cast());
        }
    }
    // SAFETY: it was opened above, and nobody else knows it.
    unsafe { (library.cleanup)(context) };
    Ok(Devices { version: library.version(), devices: named_in(&report) })
}

/// The last words of the lines about resources.
fn named_in(report: &str) -> Vec<String> {
    let resources = report.lines().filter(|line| line.contains("resource "));
    resources.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_in_what_ucx_prints() {
        let report = "#\n# UCP context\n#\n#     component 0  :  self\n#            md 1  :  component 1  tcp \n#\n\
                      #      resource 0  :  md 0  dev 0  flags -- self/memory0\n\
                      #      resource 1  :  md 1  dev 1  flags -- tcp/eth0\n#\n";
        assert_eq!(named_in(report), ["self/memory0", "tcp/eth0"]);
    }
}
