//! `trib bench pingpong`: the speed of one TCP connection of the network, which is the yardstick of
//! `trib bench compare`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use trib_compare::{Cell, Latencies, Mode, WorkerRow};

use crate::failure::Failure;

/// Measure one TCP connection: a vector there and back
///
/// The time of an operation is half of a round trip. The end that connects measures, and prints one
/// line of JSON for each cell; of a cell only the size counts. Bytes are checked before the timed
/// part.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Be the end that answers, at this address
    #[arg(long, value_name = "IP:PORT", conflicts_with = "connect", required_unless_present = "connect")]
    listen: Option<String>,
    /// Be the end that measures, and connect to this one
    #[arg(long, value_name = "HOST:PORT", requires = "cells")]
    connect: Option<String>,
    /// What to measure: COLLECTIVE:BYTES:MODE[:ITERATIONS]
    #[arg(long, value_name = "CELL,...", value_delimiter = ',')]
    cells: Vec<Cell>,
    /// Time for the timed operations of one cell, seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.25", value_parser = super::seconds)]
    budget: Duration,
    /// Fewest operations of a cell, whatever they take
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=ITERATIONS_MAX))]
    min_iterations: u32,
    /// Accepted as by the other measuring programs; there is no gate here
    #[arg(long, hide = true)]
    gate: bool,
}

impl Arguments {
    /// Listens or measures.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        match (&self.listen, &self.connect) {
            (Some(at), _) => answer(at)?,
            (None, Some(at)) => {
                let mut stream = connect(at)?;
                for cell in &self.cells {
                    let row = self.measure(&mut stream, cell).map_err(|cause| lost(at, &cause))?;
                    let line = serde_json::to_string(&row).map_err(Failure::operation)?;
                    say!("{line}")?;
                }
            }
            (None, None) => return Err(Failure::Usage("say --listen or --connect".into())),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure(&self, stream: &mut TcpStream, cell: &Cell) -> std::io::Result<WorkerRow> {
        let size = cell.bytes.max(1);
        stream.write_all(&size.to_le_bytes())?;
        let vector: Vec<u8> = (0..size).map(|at| (at * 31 % 251) as u8).collect();
        let mut back = vec![0; vector.len()];
        let mut half_trip = || -> std::io::Result<f64> {
            let start = Instant::now();
            stream.write_all(&vector)?;
            stream.read_exact(&mut back)?;
            Ok(start.elapsed().as_secs_f64() / 2.0)
        };
        let first = half_trip()?;
        let each = first.min(half_trip()?);
        let fit = self.budget.as_secs_f64() / (2.0 * each).max(1e-7);
        let count = cell.iterations.unwrap_or((fit as u32).clamp(self.min_iterations, ITERATIONS_MAX as u32));
        let mut times = (0..count.max(1)).map(|_| half_trip()).collect::<Result<Vec<f64>, _>>()?;
        let wrong = vector.iter().zip(&back).filter(|(sent, got)| sent != got).count() as u64;
        // After a vector of these bytes alone the other end reads a size again.
        stream.write_all(&vec![END; vector.len()])?;
        let seconds = times.iter().sum();
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)] * 1e6;
        Ok(WorkerRow {
            collective: cell.collective.name().to_owned(),
            bytes: size,
            asked_bytes: cell.bytes,
            mode: Mode::Sustained,
            iterations: u64::from(count),
            operations: u64::from(count) + 1,
            seconds,
            latencies_us: Latencies { median: at(50), p99: at(99), min: at(0), max: at(100) },
            cpu_ns: 0.0,
            context_switches: 0.0,
            wrong,
            path: None,
        })
    }
}

/// Sends back everything that comes, until the other end closes.
fn answer(at: &str) -> Result<(), Failure> {
    let listener =
        TcpListener::bind(at).map_err(|cause| Failure::Environment(format!("cannot listen at {at}: {cause}")))?;
    let (mut stream, _) = listener.accept().map_err(Failure::environment)?;
    stream.set_nodelay(true).map_err(Failure::environment)?;
    let mut size = [0; 8];
    while stream.read_exact(&mut size).is_ok() {
        let size = u64::from_le_bytes(size);
        if size > SIZE_MAX {
            return Err(Failure::Operation(format!("the other end is no ping-pong: a vector of {size} bytes")));
        }
        let mut vector = vec![0; size as usize];
        loop {
            stream.read_exact(&mut vector).map_err(|cause| lost(at, &cause))?;
            if vector.iter().all(|byte| *byte == END) {
                break;
            }
            stream.write_all(&vector).map_err(|cause| lost(at, &cause))?;
        }
    }
    Ok(())
}

/// Connects. The other end may need a moment until it listens.
fn connect(at: &str) -> Result<TcpStream, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let address = at.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        let outcome = match address {
            Some(address) => TcpStream::connect_timeout(&address, PATIENCE),
            None => return Err(Failure::Environment(format!("{at} is no address"))),
        };
        match outcome {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(Failure::environment)?;
                return Ok(stream);
            }
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Err(cause) => return Err(Failure::Environment(format!("cannot connect to {at}: {cause}"))),
        }
    }
}

fn lost(at: &str, cause: &std::io::Error) -> Failure {
    Failure::Operation(format!("the connection with {at} is lost: {cause}"))
}

const PATIENCE: Duration = Duration::from_secs(5);
const ITERATIONS_MAX: i64 = 20_000;
const SIZE_MAX: u64 = 1 << 30;
/// No vector that is measured consists of these bytes alone.
const END: u8 = 0xff;
const EXAMPLES: &str = "\
Examples:
  trib bench pingpong --listen 0.0.0.0:29600
  trib bench pingpong --connect h7:29600 --cells allreduce:1M:sustained";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_there_and_back() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = format!("127.0.0.1:{port}");
        let other = at.clone();
        let answers = std::thread::spawn(move || answer(&other));
        let mut stream = connect(&at).unwrap();
        let budget = Duration::from_millis(20);
        let arguments =
            Arguments { listen: None, connect: None, cells: Vec::new(), budget, min_iterations: 3, gate: false };
        for text in ["allreduce:1:sustained", "allreduce:100000:sustained:5"] {
            let row = arguments.measure(&mut stream, &text.parse().unwrap()).unwrap();
            assert!(row.wrong == 0 && row.iterations >= 3 && row.seconds > 0.0, "{row:?}");
        }
        drop(stream);
        answers.join().unwrap().unwrap();
    }
}
