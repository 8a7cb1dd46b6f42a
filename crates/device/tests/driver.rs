//! Copies, events and errors over a stand-in driver, whose streams are late.

mod stand_in;

use std::time::Duration;

use stand_in::StandIn;
use trib_device::{Context, Error, Pinned, Relaxed, Stream, UserStream, locate};

const LEN: usize = 10_000;

fn bytes(seed: u8) -> Vec<u8> {
    (0..LEN).map(|at| (at as u8).wrapping_mul(7).wrapping_add(seed)).collect()
}

fn context_of(stand_in: &StandIn, address: *const u8) -> Context {
    locate(stand_in.driver, address).unwrap().expect("memory of a device")
}

fn contents(pinned: &Pinned) -> Vec<u8> {
    // SAFETY: the buffer has been filled, and nothing writes to it.
    unsafe { core::slice::from_raw_parts(pinned.start(), pinned.len()) }.to_vec()
}

#[test]
fn addresses_are_told_apart() {
    let stand_in = StandIn::new();
    let (device, host) = (stand_in.allocate(LEN), [0u8; 4]);
    let context = context_of(&stand_in, device.wrapping_add(LEN - 1));
    assert_eq!(locate(stand_in.driver, host.as_ptr()), Ok(None));
    assert_eq!(locate(stand_in.driver, core::ptr::null()), Ok(None));
    let current = context.enter().unwrap();
    let pinned = Pinned::new(&current, 8).unwrap();
    assert_eq!(locate(stand_in.driver, pinned.start()), Ok(None));
    // Memory out of a pool belongs to no context, so it is the device's own one.
    stand_in.set("STAND_IN_POOL", "1");
    assert_eq!(context_of(&stand_in, device), context);
    assert_eq!(context_of(&stand_in, device), context);
    assert_eq!(stand_in.count("cuDevicePrimaryCtxRetain"), 2, "once by the test, once by us");
}

#[test]
fn a_copy_waits_for_the_programs_stream_and_the_stream_for_the_copy() {
    let stand_in = StandIn::new();
    let (source, target) = (stand_in.allocate(LEN), stand_in.allocate(LEN));
    let current = context_of(&stand_in, source).enter().unwrap();
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
    let stand_in = StandIn::new();
    let device = stand_in.allocate(LEN);
    let context = context_of(&stand_in, device);
    for call in
        ["cuMemHostAlloc", "cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuMemcpyAsync", "cuEventSynchronize"]
    {
        stand_in.set("STAND_IN_FAIL", &format!("{call}:{}:2", stand_in.count(call) + 1));
        let copied = || -> Result<(), Error> {
            let current = context.enter()?;
            let (pinned, stream) = (Pinned::new(&current, LEN)?, Stream::new(&current)?);
            // SAFETY: both ends have so many bytes.
            unsafe { stream.copy(&current, device, pinned.start(), LEN) }?;
            let event = stream.record(&current).inspect_err(|_| std::thread::sleep(SETTLED))?;
            event.wait().inspect_err(|_| std::thread::sleep(SETTLED))
        };
        let Err(error) = copied() else { panic!("{call} did not fail") };
        let told = error.to_string();
        assert!(told.starts_with(&format!("{call} failed with CUDA_ERROR_OUT_OF_MEMORY (2): ")), "{told}");
        assert!(error.is_out_of_memory());
    }
    stand_in
        .set("STAND_IN_FAIL", &format!("cuPointerGetAttribute:{}:700", stand_in.count("cuPointerGetAttribute") + 1));
    let told = locate(stand_in.driver, device).unwrap_err().to_string();
    assert!(told.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)") && told.contains("compute-sanitizer"), "{told}");
}

#[test]
fn a_copy_that_fails_when_it_is_done_fails_its_event() {
    let stand_in = StandIn::new();
    let device = stand_in.allocate(LEN);
    let context = context_of(&stand_in, device);
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
    let stand_in = StandIn::new();
    let device = stand_in.allocate(LEN);
    let context = context_of(&stand_in, device);
    let (captured, other) = (stand_in.stream(), stand_in.stream());
    stand_in.begin_capture(captured);
    let current = context.enter().unwrap();
    assert_eq!(UserStream::new(captured).refuse_capture(&current), Err(Error::Capturing));
    assert_eq!(UserStream::new(other).refuse_capture(&current), Ok(()));
    {
        let _relaxed = Relaxed::enter(stand_in.driver).unwrap();
        let (_stream, _pinned) = (Stream::new(&current).unwrap(), Pinned::new(&current, 8).unwrap());
    }
    assert!(!stand_in.end_capture(captured));
    // Without that it would be.
    stand_in.begin_capture(captured);
    assert!(Pinned::new(&current, 8).is_err());
    assert!(stand_in.end_capture(captured));
}

#[test]
fn nothing_depends_on_calls_that_return_early() {
    let stand_in = StandIn::new();
    stand_in.set("CUDA_LAUNCH_BLOCKING", "1");
    let device = stand_in.allocate(LEN);
    stand_in.write(device, &bytes(5));
    let current = context_of(&stand_in, device).enter().unwrap();
    let (pinned, stream) = (Pinned::new(&current, LEN).unwrap(), Stream::new(&current).unwrap());
    stream.wait(&current, &UserStream::new(core::ptr::null_mut()).record(&current).unwrap()).unwrap();
    // SAFETY: both ends have so many bytes.
    unsafe { stream.copy(&current, device, pinned.start(), LEN) }.unwrap();
    assert_eq!(contents(&pinned), bytes(5));
    stream.record(&current).unwrap().wait().unwrap();
}

/// A copy that no event tells of is done after so long.
const SETTLED: Duration = Duration::from_millis(50);
