//! The structs and numbers of the header, as the compiler of a client lays them out.
//!
//! Words named reserved, and fields that nothing here needs, stay `MaybeUninit`: clients may leave
//! them uninitialised.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::{MaybeUninit, offset_of, size_of};

/// A value that clients may leave uninitialised and that nothing here reads.
pub type Unread<T> = MaybeUninit<T>;

/// `struct sharp_coll_config`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Config {
    pub ib_dev_list: *const c_char,
    pub user_progress_num_polls: c_int,
    pub coll_timeout: c_int,
    pub flags: u32,
    pub reserved: Unread<[c_int; 3]>,
}

/// Out-of-band broadcast.
pub type Bcast = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, c_int) -> c_int;
/// Out-of-band barrier.
pub type Barrier = unsafe extern "C" fn(*mut c_void) -> c_int;
/// Out-of-band gather.
pub type Gather = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, *mut c_void, c_int) -> c_int;
/// The caller's progress.
pub type ProgressCall = unsafe extern "C" fn() -> c_int;

/// `struct sharp_coll_out_of_band_colls`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OutOfBandCalls {
    pub bcast: Option<Bcast>,
    pub barrier: Unread<Option<Barrier>>,
    pub gather: Option<Gather>,
}

/// `struct sharp_coll_comm_init_spec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CommInitSpec {
    pub rank: c_int,
    pub size: c_int,
    pub oob_ctx: *mut c_void,
    pub group_world_ranks: Unread<*const u32>,
    pub reserved: Unread<[c_int; 2]>,
}

/// `struct sharp_coll_init_spec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InitSpec {
    /// Only the log shows it. It may be any number and need not be unique.
    pub job_id: u64,
    pub world_rank: c_int,
    pub world_size: c_int,
    pub progress_func: Option<ProgressCall>,
    pub group_channel_idx: Unread<c_int>,
    pub config: Config,
    pub oob_colls: OutOfBandCalls,
    pub world_local_rank: Unread<c_int>,
    pub enable_thread_support: Unread<c_int>,
    pub oob_ctx: *mut c_void,
    pub reserved: Unread<[c_int; 4]>,
}

/// `struct sharp_coll_caps`. Its padding is spelled out as fields, so that it is written too:
/// clients compare whole structs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Caps {
    pub sharp_pkt_version: c_int,
    pub padding: c_int,
    pub reserved: [u64; 2],
    pub dtypes: u64,
    pub tag_dtypes: u64,
    pub reduce_ops: u64,
    pub feature_mask: u64,
    pub mask_reserved: [u64; 4],
    pub max_osts: c_int,
    pub user_data_per_ost: c_int,
    pub max_groups: c_int,
    pub max_group_channels: c_int,
    pub osts_per_group: c_int,
    pub tail_padding: c_int,
}

/// `struct sharp_data_iov`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Iov {
    pub ptr: *mut c_void,
    pub length: usize,
    pub mem_handle: *mut c_void,
}

/// `struct sharp_coll_reg_params`: the address of a region is enough for this library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RegParams {
    pub field_mask: Unread<u64>,
    pub dmabuf_fd: Unread<c_int>,
    pub dmabuf_offset: Unread<usize>,
}

/// `buffer` of `struct sharp_coll_data_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Buffer {
    pub ptr: *mut c_void,
    pub length: usize,
    pub mem_handle: *mut c_void,
}

/// `iov` of `struct sharp_coll_data_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IovList {
    pub count: c_uint,
    pub vector: *const Iov,
}

/// One buffer or a list of pieces; `kind` of the descriptor says which.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    pub buffer: Buffer,
    pub iov: IovList,
}

/// `struct sharp_coll_data_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DataDesc {
    pub kind: c_int,
    pub mem_type: c_int,
    pub reserved: Unread<[c_int; 2]>,
    pub data: Data,
}

/// `struct sharp_coll_reduce_spec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReduceSpec {
    pub root: c_int,
    pub sbuf_desc: DataDesc,
    pub rbuf_desc: DataDesc,
    pub dtype: c_int,
    pub length: usize,
    pub op: c_int,
    pub tag_dtype: c_int,
    pub aggr_mode: Unread<c_int>,
    pub stream_lock_batch_size: Unread<c_int>,
    pub offset: usize,
    pub reserved: Unread<[c_int; 2]>,
}

/// `struct sharp_coll_bcast_spec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BcastSpec {
    pub root: c_int,
    pub buf_desc: DataDesc,
    pub size: usize,
    pub reserved: Unread<[c_int; 4]>,
}

/// `struct sharp_coll_gather_spec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GatherSpec {
    pub sbuf_desc: DataDesc,
    pub rbuf_desc: DataDesc,
    pub dtype: Unread<c_int>,
    pub size: Unread<usize>,
    pub offset: usize,
    pub reserved: Unread<[c_int; 4]>,
}

/// `SHARP_COLL_HIDE_ERRORS`.
pub const HIDE_ERRORS: u32 = 1;
/// `SHARP_DATA_BUFFER`.
pub const DATA_BUFFER: c_int = 0;
/// `SHARP_DATA_IOV`.
pub const DATA_IOV: c_int = 1;
/// `SHARP_MEM_TYPE_HOST`.
pub const MEM_HOST: c_int = 0;
/// `SHARP_MEM_TYPE_CUDA`.
pub const MEM_CUDA: c_int = 1;
/// `SHARP_MEM_TYPE_LAST`, which is the type of no memory.
pub const MEM_LAST: c_int = 2;
/// `SHARP_COLL_DATA_MAX_IOV`.
pub const MAX_IOV: usize = 15;
/// `SHARP_FEATURE_LLT`.
pub const FEATURE_LLT: u64 = 1;
/// `SHARP_FEATURE_REPRODUCIBLE`.
pub const FEATURE_REPRODUCIBLE: u64 = 2;
/// `SHARP_FEATURE_SAT`.
pub const FEATURE_SAT: u64 = 4;
/// `SHARP_COLL_CONFIG_PRINT_CONFIG`.
pub const PRINT_CONFIG: c_uint = 1;
/// `SHARP_COLL_CONFIG_PRINT_HEADER`.
pub const PRINT_HEADER: c_uint = 2;
/// `SHARP_COLL_CONFIG_PRINT_DOC`.
pub const PRINT_DOC: c_uint = 4;
/// `SHARP_COLL_CONFIG_PRINT_HIDDEN`.
pub const PRINT_HIDDEN: c_uint = 8;

const _: () = {
    assert!(size_of::<Config>() == 32 && offset_of!(Config, coll_timeout) == 12 && offset_of!(Config, flags) == 16);
    assert!(size_of::<OutOfBandCalls>() == 24 && offset_of!(OutOfBandCalls, gather) == 16);
    assert!(size_of::<CommInitSpec>() == 32 && offset_of!(CommInitSpec, oob_ctx) == 8);
    assert!(size_of::<InitSpec>() == 120);
    assert!(offset_of!(InitSpec, world_rank) == 8 && offset_of!(InitSpec, progress_func) == 16);
    assert!(offset_of!(InitSpec, config) == 32 && offset_of!(InitSpec, oob_colls) == 64);
    assert!(offset_of!(InitSpec, world_local_rank) == 88 && offset_of!(InitSpec, oob_ctx) == 96);
    assert!(size_of::<Caps>() == 112 && offset_of!(Caps, dtypes) == 24 && offset_of!(Caps, feature_mask) == 48);
    assert!(offset_of!(Caps, max_osts) == 88 && offset_of!(Caps, osts_per_group) == 104);
    assert!(size_of::<Iov>() == 24 && size_of::<RegParams>() == 24);
    assert!(size_of::<DataDesc>() == 40 && offset_of!(DataDesc, data) == 16);
    assert!(offset_of!(IovList, vector) == 8);
    assert!(size_of::<ReduceSpec>() == 136 && offset_of!(ReduceSpec, rbuf_desc) == 48);
    assert!(offset_of!(ReduceSpec, dtype) == 88 && offset_of!(ReduceSpec, length) == 96);
    assert!(offset_of!(ReduceSpec, op) == 104 && offset_of!(ReduceSpec, tag_dtype) == 108);
    assert!(offset_of!(ReduceSpec, offset) == 120);
    assert!(size_of::<BcastSpec>() == 72 && offset_of!(BcastSpec, size) == 48);
    assert!(size_of::<GatherSpec>() == 120 && offset_of!(GatherSpec, offset) == 96);
};
