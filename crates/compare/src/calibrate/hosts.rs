//! What the hosts' own algorithms are made of: a short message over TCP, one through shared memory,
//! and a sum within a host.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::{Calibration, Figure};

/// Measures.
pub(super) fn measure(calibration: &Calibration<'_>) -> Result<Vec<Figure>, String> {
    let each = |one: fn(&Calibration<'_>) -> Result<f64, String>| -> Result<Vec<f64>, String> {
        (0..calibration.rounds).map(|_| calibration.check_interrupted().and_then(|()| one(calibration))).collect()
    };
    Ok(vec![
        Figure {
            name: "step_us",
            values: each(|_| between_hosts().map_err(|error| format!("no connection on loopback: {error}")))?,
            how: "half of a round trip of 8 bytes over TCP, loopback, both ends polling as an MPI does".to_owned(),
        },
        Figure {
            name: "local_step_us",
            values: each(|_| Ok(within_a_host()))?,
            how: "half of a round trip through shared memory, both ends polling".to_owned(),
        },
        Figure {
            name: "local_byte_ns",
            values: each(|calibration| Ok(sum(calibration.bytes)))?,
            how: format!("a vector of {} bytes copied, summed and copied again, one core", calibration.bytes),
        },
    ])
}

/// Microseconds.
fn between_hosts() -> std::io::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
        end.set_nonblocking(true)?;
    }
    thread::scope(|scope| {
        let echo = scope.spawn(move || (0..TRIPS).try_for_each(|_| take(&mut far).and_then(|()| give(&mut far))));
        let start = Instant::now();
        let went = (0..TRIPS).try_for_each(|_| give(&mut near).and_then(|()| take(&mut near)));
        let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(2 * TRIPS);
        // The other end reads an end of file if this one went wrong.
        drop(near);
        echo.join().unwrap_or_else(|_| Err(ErrorKind::Other.into())).and(went).map(|()| each)
    })
}

fn give(to: &mut TcpStream) -> std::io::Result<()> {
    to.write_all(&[1; MESSAGE])
}

/// Polls, and gives way as long as there is nothing.
fn take(from: &mut TcpStream) -> std::io::Result<()> {
    let (mut message, mut got) = ([0; MESSAGE], 0);
    while got < MESSAGE {
        match from.read(&mut message[got..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => got += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Microseconds.
fn within_a_host() -> f64 {
    let turn = AtomicU64::new(0);
    let wait = |value: u64| {
        while turn.load(Ordering::Acquire) != value {
            thread::yield_now();
        }
    };
    let trips = u64::from(TRIPS);
    thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 0..trips {
                wait(2 * trip + 1);
                turn.store(2 * trip + 2, Ordering::Release);
            }
        });
        let start = Instant::now();
        for trip in 0..trips {
            turn.store(2 * trip + 1, Ordering::Release);
            wait(2 * trip + 2);
        }
        start.elapsed().as_secs_f64() * 1e6 / (2 * trips) as f64
    })
}

/// Nanoseconds for each byte.
fn sum(bytes: u64) -> f64 {
    let count = (bytes / 4).max(1) as usize;
    let (own, mut shared, mut result) = (vec![1.0f32; count], vec![2.0f32; count], vec![0.0f32; count]);
    // Pages that nobody has touched cost more than sums.
    result.copy_from_slice(&own);
    let start = Instant::now();
    shared.copy_from_slice(&own);
    for (into, from) in result.iter_mut().zip(&shared) {
        *into += *from;
    }
    shared.copy_from_slice(&result);
    let each = start.elapsed().as_secs_f64() * 1e9 / (4 * count) as f64;
    assert!(std::hint::black_box(&shared)[count - 1] == 2.0, "one and one");
    each
}

const TRIPS: u32 = 20_000;
const MESSAGE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_sums_are_made() {
        assert!(between_hosts().unwrap() > 0.0);
        assert!(within_a_host() > 0.0);
        assert!(sum(1 << 16) > 0.0);
    }
}
