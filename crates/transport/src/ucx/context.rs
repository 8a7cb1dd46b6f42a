//! UCX, opened as its environment says.

use std::ffi::CString;

use super::abi::{self, Context, Params};
use super::library::{Library, NoUcx};

/// Opens UCX with these settings, by their names without `UCX_`, besides its environment's.
pub(super) fn open_context(library: &'static Library, settings: &[(&str, &str)]) -> Result<*mut Context, NoUcx> {
    let mut config = core::ptr::null_mut();
    // SAFETY: without prefix and file it is the environment that is read.
    let status = unsafe { (library.config_read)(core::ptr::null(), core::ptr::null(), &raw mut config) };
    library.check("read its environment", status)?;
    let set = settings.iter().try_for_each(|(name, value)| {
        let [name, value] = [name, value].map(|text| CString::new(*text).expect("a setting has no zero byte"));
        // SAFETY: both strings live across the call.
        let status = unsafe { (library.config_modify)(config, name.as_ptr(), value.as_ptr()) };
        library.check("take a setting", status)
    });
    let params = Params {
        field_mask: abi::PARAM_FIELD_FEATURES,
        features: abi::FEATURE_AM | abi::FEATURE_WAKEUP,
        request_size: 0,
        request_init: core::ptr::null(),
        request_cleanup: core::ptr::null(),
        tag_sender_mask: 0,
        mt_workers_shared: 0,
        estimated_num_eps: 0,
        estimated_num_ppn: 0,
        name: core::ptr::null(),
    };
    let mut context = core::ptr::null_mut();
    let opened = set.and_then(|()| {
        // SAFETY: both structures live across the call.
        let status =
            unsafe { (library.init_version)(abi::API.0, abi::API.1, &raw const params, config, &raw mut context) };
        library.check("be opened", status)
    });
    // SAFETY: it was read above, and the context has its own copy.
    unsafe { (library.config_release)(config) };
    opened.map(|()| context)
}
