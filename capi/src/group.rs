//! Section "Groups".

use std::ffi::{CStr, c_char, c_int};

use trib_client::{Error, Group, RankList, SumKind};

use crate::boundary::{given, guard, put, value_or, writable};
use crate::context::TribContext;
use crate::request::TribRequest;
use crate::status::copy_text;

/// `trib_group`.
pub struct TribGroup {
    pub(crate) group: Group,
}

/// Makes a group and waits until it is ready.
///
/// # Safety
/// The header's contract: `world_ranks` points to `size` ranks, `group` to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_create(
    ctx: *mut TribContext,
    world_ranks: *const u32,
    size: u32,
    tag: u64,
    group: *mut *mut TribGroup,
) -> c_int {
    guard(|| {
        writable(group, "group")?;
        // SAFETY: the caller's contract.
        let (context, members) = unsafe { (given(ctx, "ctx")?, members(world_ranks, size)?) };
        let made = context.context.create_group(members, tag)?;
        // SAFETY: checked above.
        unsafe { put(group, Box::into_raw(Box::new(TribGroup { group: made }))) };
        Ok(())
    })
}

/// Starts to make a group.
///
/// # Safety
/// The contract of `trib_group_create`; `request` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_create_nb(
    ctx: *mut TribContext,
    world_ranks: *const u32,
    size: u32,
    tag: u64,
    group: *mut *mut TribGroup,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { trib_group_create_named_nb(ctx, world_ranks, size, tag, core::ptr::null(), group, request) }
}

/// Starts to make a group that has a name for people.
///
/// # Safety
/// The contract of `trib_group_create_nb`; `name` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_create_named_nb(
    ctx: *mut TribContext,
    world_ranks: *const u32,
    size: u32,
    tag: u64,
    name: *const c_char,
    group: *mut *mut TribGroup,
    request: *mut *mut TribRequest,
) -> c_int {
    guard(|| {
        writable(group, "group")?;
        writable(request, "request")?;
        // SAFETY: the caller's contract.
        let (context, members) = unsafe { (given(ctx, "ctx")?, members(world_ranks, size)?) };
        let name = if name.is_null() {
            String::new()
        } else {
            // SAFETY: the caller's contract.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        let (made, ready) = context.context.start_named_group(members, tag, &name)?;
        // SAFETY: checked above.
        unsafe {
            put(group, Box::into_raw(Box::new(TribGroup { group: made })));
            put(request, Box::into_raw(Box::new(TribRequest { request: ready })));
        }
        Ok(())
    })
}

/// Leaves the group.
///
/// # Safety
/// `group` is null or came from a creation and was not freed; it is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_free(group: *mut TribGroup) -> c_int {
    guard(|| {
        if group.is_null() {
            return Ok(());
        }
        // SAFETY: the creation made a box of it, and the caller gives it up.
        unsafe { Box::from_raw(group) }.group.free()
    })
}

/// Leaves the group and keeps the handle.
///
/// # Safety
/// `group` is a live group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_leave(group: *const TribGroup) -> c_int {
    // SAFETY: the caller's contract.
    guard(|| unsafe { given(group, "group") }?.group.leave())
}

/// Says how the group takes sums of floating-point numbers.
///
/// # Safety
/// `group` is a live group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_set_sums(group: *const TribGroup, sums: c_int) -> c_int {
    guard(|| {
        // SAFETY: the caller's contract.
        let group = unsafe { given(group, "group") }?;
        let kind = match sums {
            0 => None,
            1 => Some(SumKind::Fixed),
            2 => Some(SumKind::Exact),
            3 => Some(SumKind::Int8),
            other => return Err(Error::Invalid(format!("{other} is no way to take sums (enum trib_sums)"))),
        };
        group.group.set_sums(kind);
        Ok(())
    })
}

/// This process's rank in the group; `UINT32_MAX` for NULL.
///
/// # Safety
/// `group` is null or a live group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_rank(group: *const TribGroup) -> u32 {
    // SAFETY: the caller's contract.
    value_or(u32::MAX, || Ok(unsafe { given(group, "group") }?.group.rank()))
}

/// The number of members of the group; 0 for NULL.
///
/// # Safety
/// `group` is null or a live group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_size(group: *const TribGroup) -> u32 {
    // SAFETY: the caller's contract.
    value_or(0, || Ok(unsafe { given(group, "group") }?.group.size()))
}

/// 0 while the group works, else the error that broke it.
///
/// # Safety
/// `group` is null or a live group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_status(group: *const TribGroup) -> c_int {
    guard(|| {
        // SAFETY: the caller's contract.
        match unsafe { given(group, "group") }?.group.error() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    })
}

/// The text of the error that broke the group.
///
/// # Safety
/// `group` is null or a live group; `buf` points to `len` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_group_error(group: *const TribGroup, buf: *mut c_char, len: usize) -> c_int {
    guard(|| {
        // SAFETY: the caller's contract.
        let group = unsafe { given(group, "group") }?;
        if len > 0 {
            writable(buf, "buf")?;
        }
        let error = group.group.error();
        let text = error.as_ref().map_or(String::new(), Error::to_string);
        if len > 0 {
            // SAFETY: the caller's contract; a pointer with `len` above 0 was checked for null.
            copy_text(&text, unsafe { core::slice::from_raw_parts_mut(buf.cast::<u8>(), len) });
        }
        error.map_or(Ok(()), Err)
    })
}

unsafe fn members(world_ranks: *const u32, size: u32) -> Result<RankList, Error> {
    if size == 0 {
        return Err(Error::Invalid("a group has at least one member".into()));
    }
    // SAFETY: the caller's contract.
    let ranks = unsafe {
        given(world_ranks, "world_ranks")?;
        core::slice::from_raw_parts(world_ranks, size as usize)
    };
    Ok(RankList::from_ranks(ranks.iter().copied()))
}
