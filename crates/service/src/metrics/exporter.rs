//! The socket at which scrapers ask.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::request::{Fault, HEAD_MAX, Request, parse};

/// A listening exporter. It is bound before the daemon starts, so that a wrong address is an error
/// of the start.
#[derive(Debug)]
pub struct Exporter {
    listener: TcpListener,
    address: SocketAddr,
}

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve metrics at {address}: {cause}; choose another address with --metrics")]
pub struct ExporterError {
    address: SocketAddr,
    cause: io::Error,
}

impl Exporter {
    /// Listens at `address`; port 0 is any free port.
    ///
    /// # Errors
    /// The address is taken, or is none of this host's.
    pub fn bind(address: SocketAddr) -> Result<Self, ExporterError> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            let address = listener.local_addr()?;
            Ok(Exporter { listener, address })
        };
        listen().map_err(|cause| ExporterError { address, cause })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers from now on with what `page` gives, until the process ends. `None` means that a
    /// thread of the daemon did not answer in time; the scraper is told so, because counters
    /// without that thread would seem to go backwards.
    ///
    /// One scraper is served at a time: a slow one lets others wait for at most three seconds, and
    /// costs no memory.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn serve(self, page: impl Fn() -> Option<String> + Send + 'static) -> io::Result<()> {
        tracing::info!(address = %self.address, "metrics at /metrics");
        let serve = move || {
            loop {
                match self.listener.accept() {
                    Ok((stream, peer)) => {
                        if let Err(error) = answer(stream, &page) {
                            tracing::debug!(%peer, %error, "scrape not answered");
                        }
                    }
                    Err(error) => {
                        // Most likely there are no descriptors; some will be free again.
                        tracing::warn!(%error, "cannot accept a scrape");
                        thread::sleep(PAUSE);
                    }
                }
            }
        };
        thread::Builder::new().name("metrics".into()).spawn(serve).map(drop)
    }
}

fn answer(mut stream: TcpStream, page: &impl Fn() -> Option<String>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (status, body, head_only) = match receive(&mut stream)? {
        Ok(Request { path, head_only }) if path == "/metrics" => match page() {
            Some(text) => ("200 OK", text, head_only),
            None => ("503 Service Unavailable", "a thread of the daemon does not answer\n".to_owned(), head_only),
        },
        Ok(Request { head_only, .. }) => ("404 Not Found", "metrics are at /metrics\n".to_owned(), head_only),
        Err(fault) => (fault.status(), format!("{}\n", fault.status()), false),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Allow: GET, HEAD\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !head_only {
        stream.write_all(body.as_bytes())?;
    }
    stream.shutdown(Shutdown::Write)?;
    // If the socket were closed while something is unread, a peer that has not read the answer
    // would lose it.
    let mut rest = [0; 1024];
    let end = Instant::now() + LAST_WORD;
    while read_until(&mut stream, &mut rest, end)? > 0 {}
    Ok(())
}

/// Reads a request's head; the outer error is the connection's.
fn receive(stream: &mut TcpStream) -> io::Result<Result<Request, Fault>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    let end = Instant::now() + PATIENCE;
    loop {
        let length = read_until(stream, &mut piece, end)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..length]);
        match parse(&bytes) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Ok(None) => debug_assert!(bytes.len() < HEAD_MAX),
            Err(fault) => return Ok(Err(fault)),
        }
    }
}

fn read_until(stream: &mut TcpStream, bytes: &mut [u8], end: Instant) -> io::Result<usize> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    stream.read(bytes)
}

const PATIENCE: Duration = Duration::from_secs(1);
const LAST_WORD: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, text: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn exporter(page: Option<&'static str>) -> SocketAddr {
        let exporter = Exporter::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = exporter.address();
        exporter.serve(move || page.map(String::from)).unwrap();
        address
    }

    #[test]
    fn a_scrape_gets_the_page_and_everything_else_an_error() {
        let address = exporter(Some("x 1\n"));
        let page = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nx 1\n"), "{page}");
        assert!(page.contains("\r\nContent-Length: 4\r\n") && page.contains("text/plain; version=0.0.4"), "{page}");
        let head = ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 4") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "PUT /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc").starts_with("HTTP/1.1 405 "));
        assert!(ask(address, &"x".repeat(20_000)).starts_with("HTTP/1.1 431 "));
        let taken = Exporter::bind(address).unwrap_err().to_string();
        assert!(taken.contains(&address.to_string()) && taken.contains("--metrics"), "{taken}");
    }

    #[test]
    fn a_page_that_is_not_whole_is_not_served_and_a_silent_peer_does_not_stop_the_others() {
        let address = exporter(None);
        let _silent = TcpStream::connect(address).unwrap();
        assert!(ask(address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
    }
}
