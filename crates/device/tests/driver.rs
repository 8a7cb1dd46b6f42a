//! Copies, kernels, events and errors over a stand-in driver, whose streams are late.

use std::time::Duration;

use trib_device::{
    Context, Current, Driver, Error, Imported, Kernel, Memory, Pinned, Relaxed, Stream, UserStream,
    complete_program_copies, locate,
};
use trib_testkit::StandIn;

const LEN: usize = 10_000;
/// Longer than any test may take.
const FOR_EVER_US: u32 = 4_000_000_000;

fn bytes(seed: u8) -> Vec<u8> {
    (0..LEN).map(|at| (at as u8).wrapping_mul(7).wrapping_add(seed)).collect()
}

/// A driver of the test's own.
fn loaded() -> (StandIn, &'static Driver) {
    let stand_in = StandIn::new();
    let driver = Driver::load(stand_in.path().as_os_str()).expect("the stand-in is a driver");
    (stand_in, Box::leak(Box::new(driver)))
}

fn context_of(driver: &'static Driver, address: *const u8) -> Context {
    locate(driver, address).unwrap().expect("memory of a device")
}

fn contents(pinned: &Pinned) -> Vec<u8> {
    // SAFETY: the buffer has been filled, and nothing writes to it.
    unsafe { core::slice::from_raw_parts(pinned.start(), pinned.len()) }.to_vec()
}

#[test]
fn addresses_are_told_apart() {
    let (stand_in, driver) = loaded();
    let (device, host) = (stand_in.allocate(LEN), [0u8; 4]);
    let context = context_of(driver, device.wrapping_add(LEN - 1));
    assert_eq!(locate(driver, host.as_ptr()), Ok(None));
    assert_eq!(locate(driver, core::ptr::null()), Ok(None));
    let current = context.enter().unwrap();
    let pinned = Pinned::new(&current, 8).unwrap();
    assert_eq!(locate(driver, pinned.start()), Ok(None));
    // Memory out of a pool belongs to no context, so it is the device's own one.
    stand_in.set("STAND_IN_POOL", "1");
    assert_eq!(context_of(driver, device), context);
    assert_eq!(context_of(driver, device), context);
    assert_eq!(stand_in.count("cuDevicePrimaryCtxRetain"), 2, "once by the test, once by us");
}

#[test]
fn a_copy_waits_for_the_programs_stream_and_the_stream_for_the_copy() {
    let (stand_in, driver) = loaded();
    let (source, target) = (stand_in.allocate(LEN), stand_in.allocate(LEN));
    let current = context_of(driver, source).enter().unwrap();
    let (given, pinned) = (bytes(3), Pinned::new(&current, LEN).unwrap());
    let raw = stand_in.stream();
    let (program, out, back) = (UserStream::new(raw), Stream::new(&current).unwrap(), Stream::new(&current).unwrap());

    // The program's own copy comes late, and ours has to find what it leaves behind.
    stand_in.write(source, &bytes(9));
    let staged = Pinned::new(&current, LEN).unwrap();
    // SAFETY: the buffer is ours and has so many bytes.
    unsafe { core::ptr::copy_nonoverlapping(given.as_ptr(), staged.start(), LEN) };
    stand_in.sleep(raw, 20_000);
    let late = Stream::new(&current).unwrap();
    let slept = program.record(&current).unwrap();
    assert_eq!(slept.has_come(), Ok(false));
    late.wait(&current, &slept).unwrap();
    // SAFETY: all ends have so many bytes and live until the test ends.
    let written = unsafe {
        late.copy(&current, staged.start(), source, LEN).unwrap();
        late.record(&current).unwrap()
    };
    program.wait(&current, &written).unwrap();
    let entry = program.record(&current).unwrap();
    out.wait(&current, &entry).unwrap();
    // SAFETY: as above.
    let filled = unsafe {
        out.copy(&current, source, pinned.start(), LEN).unwrap();
        out.record(&current).unwrap()
    };
    filled.wait().unwrap();
    assert_eq!(filled.has_come(), Ok(true));
    assert_eq!(contents(&pinned), given);

    // SAFETY: as above.
    let emptied = unsafe {
        back.copy(&current, pinned.start(), target, LEN).unwrap();
        back.record(&current).unwrap()
    };
    program.wait(&current, &emptied).unwrap();
    let end = program.record(&current).unwrap();
    end.wait().unwrap();
    assert_eq!(stand_in.read(target, LEN), given);
    for whole in ["cuCtxSynchronize", "cuStreamSynchronize"] {
        assert_eq!(stand_in.count(whole), 0);
    }
    assert_eq!(stand_in.count("copy pageable"), 0);
}

#[test]
fn every_call_that_fails_is_named() {
    let (stand_in, driver) = loaded();
    let device = stand_in.allocate(LEN);
    let context = context_of(driver, device);
    for call in
        ["cuMemHostAlloc", "cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuMemcpyAsync", "cuEventSynchronize"]
    {
        stand_in.set("STAND_IN_FAIL", &format!("{call}:{}:2", stand_in.count(call) + 1));
        let copied = || -> Result<(), Error> {
            let current = context.enter()?;
            let (pinned, stream) = (Pinned::new(&current, LEN)?, Stream::new(&current)?);
            let before = stand_in.count("copy device-host");
            // SAFETY: both ends have so many bytes.
            unsafe { stream.copy(&current, device, pinned.start(), LEN) }?;
            // Where no event tells of the copy, its memory stays until it is done.
            let copied = stream.record(&current).and_then(|event| event.wait());
            copied.inspect_err(|_| await_copies(&stand_in, before + 1))
        };
        let Err(error) = copied() else { panic!("{call} did not fail") };
        let told = error.to_string();
        assert!(told.starts_with(&format!("{call} failed with CUDA_ERROR_OUT_OF_MEMORY (2): ")), "{told}");
        assert!(error.is_out_of_memory());
    }
    stand_in
        .set("STAND_IN_FAIL", &format!("cuPointerGetAttribute:{}:700", stand_in.count("cuPointerGetAttribute") + 1));
    let told = locate(driver, device).unwrap_err().to_string();
    assert!(told.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)") && told.contains("compute-sanitizer"), "{told}");
}

#[test]
fn a_copy_that_fails_when_it_is_done_fails_its_event() {
    let (stand_in, driver) = loaded();
    let device = stand_in.allocate(LEN);
    let context = context_of(driver, device);
    let current = context.enter().unwrap();
    let (pinned, stream) = (Pinned::new(&current, LEN).unwrap(), Stream::new(&current).unwrap());
    stand_in.set("STAND_IN_FAIL", "copy:1:719");
    // SAFETY: both ends have so many bytes.
    unsafe { stream.copy(&current, device, pinned.start(), LEN) }.unwrap();
    let event = stream.record(&current).unwrap();
    let told = event.wait().unwrap_err().to_string();
    assert!(told.starts_with("cuEventSynchronize failed with CUDA_ERROR_LAUNCH_FAILED (719)"), "{told}");
    assert!(event.has_come().is_err() && Stream::new(&current).is_err(), "the context is lost");
}

#[test]
fn a_stream_that_is_captured_is_refused_and_its_capture_is_not_spoilt() {
    let (stand_in, driver) = loaded();
    let device = stand_in.allocate(LEN);
    let context = context_of(driver, device);
    let (captured, other) = (stand_in.stream(), stand_in.stream());
    stand_in.begin_capture(captured);
    let current = context.enter().unwrap();
    assert_eq!(UserStream::new(captured).refuse_capture(&current), Err(Error::Capturing));
    assert_eq!(UserStream::new(other).refuse_capture(&current), Ok(()));
    {
        let _relaxed = Relaxed::enter(driver).unwrap();
        let (_stream, _pinned) = (Stream::new(&current).unwrap(), Pinned::new(&current, 8).unwrap());
    }
    assert!(!stand_in.end_capture(captured));
    // Without that it would be.
    stand_in.begin_capture(captured);
    assert!(Pinned::new(&current, 8).is_err());
    assert!(stand_in.end_capture(captured));
}

#[test]
fn events_and_what_is_freed_spoil_no_capture() {
    let (stand_in, driver) = loaded();
    let device = stand_in.allocate(LEN);
    let current = context_of(driver, device).enter().unwrap();
    let (pinned, stream) = (Pinned::new(&current, LEN).unwrap(), Stream::new(&current).unwrap());
    let captured = stand_in.stream();
    stand_in.begin_capture(captured);
    // SAFETY: both ends have so many bytes.
    unsafe { stream.copy(&current, device, pinned.start(), LEN) }.unwrap();
    let event = stream.record(&current).unwrap();
    event.has_come().unwrap();
    event.wait().unwrap();
    drop(pinned);
    assert_eq!(stand_in.count("cuMemFreeHost"), 1);
    assert!(!stand_in.end_capture(captured));
}

#[test]
fn nothing_depends_on_calls_that_return_early() {
    let (stand_in, driver) = loaded();
    stand_in.set("CUDA_LAUNCH_BLOCKING", "1");
    let device = stand_in.allocate(LEN);
    stand_in.write(device, &bytes(5));
    let current = context_of(driver, device).enter().unwrap();
    let (pinned, stream) = (Pinned::new(&current, LEN).unwrap(), Stream::new(&current).unwrap());
    stream.wait(&current, &UserStream::new(core::ptr::null_mut()).record(&current).unwrap()).unwrap();
    // SAFETY: both ends have so many bytes.
    unsafe { stream.copy(&current, device, pinned.start(), LEN) }.unwrap();
    assert_eq!(contents(&pinned), bytes(5));
    stream.record(&current).unwrap().wait().unwrap();
}

/// A kernel that does nothing.
const NOTHING: &str =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing(.param .u64 unused)\n{ ret; }\n";

#[test]
fn a_kernel_that_fails_fails_its_event_and_a_text_that_is_refused_its_making() {
    let (stand_in, driver) = loaded();
    let current = context_of(driver, stand_in.allocate(1)).enter().unwrap();
    let stream = Stream::new(&current).unwrap();
    stand_in.set("STAND_IN_FAIL", "cuModuleLoadData:1:218");
    let told = Kernel::new(&current, NOTHING, "nothing").unwrap_err().to_string();
    assert!(told.starts_with("cuModuleLoadData failed with") && told.contains("(218)"), "{told}");
    assert!(Kernel::new(&current, NOTHING, "something").is_err());
    let kernel = Kernel::new(&current, NOTHING, "nothing").unwrap();
    for outcome in [Ok(()), Err("cuEventSynchronize failed with CUDA_ERROR_LAUNCH_FAILED (719)")] {
        // SAFETY: the kernel takes such an argument, and touches nothing.
        unsafe { kernel.launch(&current, &stream, &mut [7], 0) }.unwrap();
        let waited = stream.record(&current).unwrap().wait().map_err(|error| error.to_string());
        assert!(
            matches!((&waited, outcome), (Ok(()), Ok(()))) || waited.unwrap_err().starts_with(outcome.unwrap_err())
        );
        stand_in.set("STAND_IN_FAIL", "kernel:2:719");
    }
}

#[test]
fn memory_has_a_handle_that_this_process_itself_does_not_map() {
    let (stand_in, driver) = loaded();
    let current = context_of(driver, stand_in.allocate(1)).enter().unwrap();
    let memory = Memory::new(&current, 4096).unwrap();
    assert_eq!(locate(driver, memory.start()), Ok(Some(current.context())));
    let handle = memory.ipc_handle(&current).unwrap();
    let told = Imported::new(&current, handle).unwrap_err().to_string();
    assert!(told.starts_with("cuIpcOpenMemHandle_v2 failed with"), "{told}");
    drop(memory);
    assert_eq!(stand_in.count("cuMemFree"), 1);
}

/// Reads memory of the device by a stream of ours, which waits for no other.
fn read_beside(current: &Current, device: *const u8) -> Vec<u8> {
    let (pinned, stream) = (Pinned::new(current, LEN).unwrap(), Stream::new(current).unwrap());
    // SAFETY: both ends have so many bytes.
    unsafe { stream.copy(current, device, pinned.start(), LEN) }.unwrap();
    stream.record(current).unwrap().wait().unwrap();
    contents(&pinned)
}

#[test]
fn copies_of_the_program_are_over_when_they_return_and_nothing_else_is_waited_for() {
    let (stand_in, driver) = loaded();
    let (device, other) = (stand_in.allocate(LEN), stand_in.allocate(LEN));
    let current = context_of(driver, device).enter().unwrap();
    stand_in.set("STAND_IN_DELAY_US", "20000");
    stand_in.write(device, &bytes(1));
    // What has returned before is waited for.
    assert_eq!(complete_program_copies(&current, device), Ok(true));
    assert_eq!(read_beside(&current, device), bytes(1));
    stand_in.write(device.wrapping_add(1), &bytes(2)[1..]);
    assert_eq!(read_beside(&current, device)[1..], bytes(2)[1..]);
    assert_eq!(complete_program_copies(&current, device.wrapping_add(LEN - 1)), Ok(true));
    assert_eq!(stand_in.count("cuPointerSetAttribute"), 1, "the allocation has been told");
    // Work that does not end while this program lives.
    stand_in.sleep(core::ptr::null_mut(), FOR_EVER_US);
    for address in [device, other] {
        assert_eq!(complete_program_copies(&current, address), Ok(true));
    }
}

#[test]
fn memory_out_of_a_pool_has_its_context_told() {
    let (stand_in, driver) = loaded();
    let (device, other) = (stand_in.allocate(LEN), stand_in.allocate(LEN));
    let current = context_of(driver, device).enter().unwrap();
    stand_in.set("STAND_IN_POOL", "1");
    stand_in.set("STAND_IN_DELAY_US", "20000");
    assert_eq!(complete_program_copies(&current, device), Ok(false), "nobody has waited");
    for address in [device, other] {
        assert_eq!(complete_program_copies(&current, address), Ok(true));
        stand_in.write(address, &bytes(3));
        assert_eq!(read_beside(&current, address), bytes(3));
    }
    stand_in.set("STAND_IN_FAIL", &format!("cuCtxGetFlags:{}:1", stand_in.count("cuCtxGetFlags") + 1));
    assert_eq!(complete_program_copies(&current, device), Ok(false), "a driver that knows no such flag");
}

/// Waits until so many copies out of the device are done.
fn await_copies(stand_in: &StandIn, copies: i64) {
    while stand_in.count("copy device-host") < copies {
        std::thread::sleep(Duration::from_millis(1));
    }
}
