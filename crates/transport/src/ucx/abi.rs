//! What of UCX's interface is used here, as its headers lay it out.
//!
//! UCX promises that a structure only grows and that a mask says which of its fields are set, so
//! what is laid out here holds for every release from 1.13 on. A test holds it against the headers.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A status. The type has one byte.
pub(super) type Status = i8;
pub(super) const OK: Status = 0;
pub(super) const IN_PROGRESS: Status = 1;
pub(super) const BUSY: Status = -15;
/// Requests are addresses, and those from here on are statuses.
const LAST: isize = -100;

/// Things of UCX of which only addresses are known.
pub(super) type Config = c_void;
pub(super) type Context = c_void;
pub(super) type Worker = c_void;
pub(super) type Endpoint = c_void;
pub(super) type Address = c_void;
/// A request under way, or the status of one that is over.
pub(super) type Request = *mut c_void;

/// The release whose headers these are.
pub(super) const API: (c_uint, c_uint) = (1, 13);

/// `ucp_params_t`
#[repr(C)]
pub(super) struct Params {
    pub(super) field_mask: u64,
    pub(super) features: u64,
    pub(super) request_size: usize,
    pub(super) request_init: *const c_void,
    pub(super) request_cleanup: *const c_void,
    pub(super) tag_sender_mask: u64,
    pub(super) mt_workers_shared: c_int,
    pub(super) estimated_num_eps: usize,
    pub(super) estimated_num_ppn: usize,
    pub(super) name: *const c_char,
}

pub(super) const PARAM_FIELD_FEATURES: u64 = 1;
pub(super) const FEATURE_WAKEUP: u64 = 0x10;
pub(super) const FEATURE_AM: u64 = 0x40;

/// `ucp_worker_params_t`
#[repr(C)]
pub(super) struct WorkerParams {
    pub(super) field_mask: u64,
    pub(super) thread_mode: c_uint,
    pub(super) cpu_mask: [u64; 16],
    pub(super) events: c_uint,
    pub(super) user_data: *mut c_void,
    pub(super) event_fd: c_int,
    pub(super) flags: u64,
    pub(super) name: *const c_char,
    pub(super) am_alignment: usize,
    pub(super) client_id: u64,
}

pub(super) const WORKER_PARAM_FIELD_THREAD_MODE: u64 = 1;
pub(super) const THREAD_MODE_SERIALIZED: c_uint = 1;

/// `ucp_ep_params_t`
#[repr(C)]
pub(super) struct EndpointParams {
    pub(super) field_mask: u64,
    pub(super) address: *const Address,
    pub(super) err_mode: c_uint,
    pub(super) err_handler: Option<unsafe extern "C" fn(*mut c_void, *mut Endpoint, Status)>,
    pub(super) err_handler_arg: *mut c_void,
    pub(super) user_data: *mut c_void,
    pub(super) flags: c_uint,
    pub(super) sockaddr: [usize; 2],
    pub(super) conn_request: *mut c_void,
    pub(super) name: *const c_char,
    pub(super) local_sockaddr: [usize; 2],
}

pub(super) const EP_PARAM_FIELD_REMOTE_ADDRESS: u64 = 1;
pub(super) const EP_PARAM_FIELD_ERR_HANDLING_MODE: u64 = 2;
pub(super) const EP_PARAM_FIELD_ERR_HANDLER: u64 = 4;
pub(super) const ERR_HANDLING_MODE_PEER: c_uint = 1;

/// `ucp_am_recv_callback_t`
pub(super) type OnMessage =
    unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut c_void, usize, *const ReceiveParam) -> Status;

/// `ucp_am_handler_param_t`
#[repr(C)]
pub(super) struct HandlerParam {
    pub(super) field_mask: u64,
    pub(super) id: c_uint,
    pub(super) flags: c_uint,
    pub(super) cb: Option<OnMessage>,
    pub(super) arg: *mut c_void,
}

pub(super) const HANDLER_FIELD_ID: u64 = 1;
pub(super) const HANDLER_FIELD_FLAGS: u64 = 2;
pub(super) const HANDLER_FIELD_CB: u64 = 4;
pub(super) const HANDLER_FIELD_ARG: u64 = 8;
/// The handler is called once for a message, however many packets it has.
pub(super) const FLAG_WHOLE_MSG: c_uint = 1;

/// `ucp_am_recv_param_t`
#[repr(C)]
pub(super) struct ReceiveParam {
    pub(super) recv_attr: u64,
    pub(super) reply_ep: *mut Endpoint,
}

/// The payload is still at the sender.
pub(super) const RECV_FLAG_RNDV: u64 = 1 << 17;

/// `ucp_request_param_t`
#[repr(C)]
pub(super) struct RequestParam {
    pub(super) op_attr_mask: u32,
    pub(super) flags: u32,
    pub(super) request: *mut c_void,
    pub(super) cb: *const c_void,
    pub(super) datatype: u64,
    pub(super) user_data: *mut c_void,
    pub(super) reply_buffer: *mut c_void,
    pub(super) memory_type: c_int,
    pub(super) recv_info: *mut c_void,
    pub(super) memh: *mut c_void,
}

pub(super) const OP_FIELD_CALLBACK: u32 = 2;
pub(super) const OP_FIELD_USER_DATA: u32 = 4;
pub(super) const OP_FIELD_FLAGS: u32 = 0x10;
/// The payload goes with the header, whatever its length.
pub(super) const SEND_FLAG_EAGER: u32 = 2;
pub(super) const CLOSE_FLAG_FORCE: u32 = 1;

/// `ucp_send_nbx_callback_t`
pub(super) type OnSent = unsafe extern "C" fn(Request, Status, *mut c_void);
/// `ucp_am_recv_data_nbx_callback_t`
pub(super) type OnReceived = unsafe extern "C" fn(Request, Status, usize, *mut c_void);

/// What a call that may take longer has returned.
pub(super) enum Begun {
    /// It is over, and there is no request.
    Done,
    /// It goes on, and its callback will be called.
    UnderWay(Request),
    Failed(Status),
}

impl Begun {
    pub(super) fn of(request: Request) -> Begun {
        match request as isize {
            0 => Begun::Done,
            status @ LAST..=-1 => Begun::Failed(status as Status),
            _ => Begun::UnderWay(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::mem::offset_of;
    use std::process::{Command, Stdio};

    use super::*;

    /// UCX's headers, seen by the C compiler, say what stands above.
    #[test]
    fn the_layouts_are_those_of_the_headers() {
        let mut claims = String::from("#include <stddef.h>\n#include <ucp/api/ucp.h>\n");
        let mut claim = |text: String| claims.push_str(&format!("_Static_assert({text}, \"{text}\");\n"));
        macro_rules! structure {
            ($ours:ident, $theirs:literal, $($field:ident),*) => {
                claim(format!("sizeof({}) >= {}", $theirs, size_of::<$ours>()));
                $(claim(format!("offsetof({}, {}) == {}", $theirs, stringify!($field), offset_of!($ours, $field)));)*
            };
        }
        structure!(Params, "ucp_params_t", field_mask, features, mt_workers_shared, estimated_num_eps, name);
        structure!(WorkerParams, "ucp_worker_params_t", thread_mode, cpu_mask, events, event_fd, am_alignment);
        structure!(EndpointParams, "ucp_ep_params_t", address, err_mode, err_handler, user_data, flags, sockaddr, name);
        claim(format!("offsetof(ucp_ep_params_t, err_handler.arg) == {}", offset_of!(EndpointParams, err_handler_arg)));
        structure!(HandlerParam, "ucp_am_handler_param_t", id, flags, cb, arg);
        structure!(ReceiveParam, "ucp_am_recv_param_t", recv_attr, reply_ep);
        structure!(RequestParam, "ucp_request_param_t", op_attr_mask, flags, cb, datatype, user_data, recv_info);
        claim(format!("sizeof(ucs_status_t) == {}", size_of::<Status>()));
        for (name, value) in [
            ("UCS_OK", OK.into()),
            ("UCS_INPROGRESS", IN_PROGRESS.into()),
            ("UCS_ERR_BUSY", BUSY.into()),
            ("UCS_ERR_LAST", LAST as i64),
            ("UCP_PARAM_FIELD_FEATURES", PARAM_FIELD_FEATURES as i64),
            ("UCP_FEATURE_WAKEUP", FEATURE_WAKEUP as i64),
            ("UCP_FEATURE_AM", FEATURE_AM as i64),
            ("UCP_WORKER_PARAM_FIELD_THREAD_MODE", WORKER_PARAM_FIELD_THREAD_MODE as i64),
            ("UCS_THREAD_MODE_SERIALIZED", THREAD_MODE_SERIALIZED.into()),
            ("UCP_EP_PARAM_FIELD_REMOTE_ADDRESS", EP_PARAM_FIELD_REMOTE_ADDRESS as i64),
            ("UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE", EP_PARAM_FIELD_ERR_HANDLING_MODE as i64),
            ("UCP_EP_PARAM_FIELD_ERR_HANDLER", EP_PARAM_FIELD_ERR_HANDLER as i64),
            ("UCP_ERR_HANDLING_MODE_PEER", ERR_HANDLING_MODE_PEER.into()),
            ("UCP_AM_HANDLER_PARAM_FIELD_ID", HANDLER_FIELD_ID as i64),
            ("UCP_AM_HANDLER_PARAM_FIELD_FLAGS", HANDLER_FIELD_FLAGS as i64),
            ("UCP_AM_HANDLER_PARAM_FIELD_CB", HANDLER_FIELD_CB as i64),
            ("UCP_AM_HANDLER_PARAM_FIELD_ARG", HANDLER_FIELD_ARG as i64),
            ("UCP_AM_FLAG_WHOLE_MSG", FLAG_WHOLE_MSG.into()),
            ("UCP_AM_RECV_ATTR_FLAG_RNDV", RECV_FLAG_RNDV as i64),
            ("UCP_OP_ATTR_FIELD_CALLBACK", OP_FIELD_CALLBACK.into()),
            ("UCP_OP_ATTR_FIELD_USER_DATA", OP_FIELD_USER_DATA.into()),
            ("UCP_OP_ATTR_FIELD_FLAGS", OP_FIELD_FLAGS.into()),
            ("UCP_AM_SEND_FLAG_EAGER", SEND_FLAG_EAGER.into()),
            ("UCP_EP_CLOSE_FLAG_FORCE", CLOSE_FLAG_FORCE.into()),
        ] {
            claim(format!("(long long){name} == {value}"));
        }
        let compiler = Command::new("cc")
            .args(["-std=c11", "-fsyntax-only", "-x", "c", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut compiler = compiler.expect("a C compiler; scripts/install-dependencies installs one");
        compiler.stdin.take().unwrap().write_all(claims.as_bytes()).unwrap();
        let done = compiler.wait_with_output().unwrap();
        assert!(done.status.success(), "libucx-dev: {}", String::from_utf8_lossy(&done.stderr));
    }
}
