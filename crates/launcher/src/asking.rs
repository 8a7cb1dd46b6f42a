//! Asking a program, for a limited time.

use std::io::{self, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, SendError};
use std::thread;
use std::time::{Duration, Instant};

/// What the program says that `command` makes, which gets no input.
///
/// # Errors
/// If it does not start; and `TimedOut` if it has not said all within the limit. Then it is killed.
pub(crate) fn said(
    command: impl FnOnce() -> io::Result<Command> + Send + 'static,
    limit: Option<Duration>,
) -> io::Result<Said> {
    let start = move || command()?.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Some(limit) = limit else { return Ok(start()?.wait_with_output()?.into()) };
    let deadline = Instant::now() + limit;
    let mut child = started(start, limit)?;
    let (out, err) = (all_of(child.stdout.take()), all_of(child.stderr.take()));
    let rest = |from: Receiver<Vec<u8>>| from.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    match rest(out).and_then(|out| Ok(Said { out: text(&out), err: text(&rest(err)?) })) {
        Ok(said) => {
            // It has no more to say. If it goes on nevertheless, that is its own affair.
            let _ = child.try_wait();
            Ok(said)
        }
        Err(_) => {
            // A process that waits for a file system for good does not even die, so that this does
            // not wait for it.
            let _ = child.kill();
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// What a program wrote.
#[derive(Debug)]
pub(crate) struct Said {
    /// On stdout.
    pub(crate) out: String,
    /// On stderr.
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said { out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Starts the program in a thread of its own: where a file system does not answer, the search for
/// it and the start do not end either.
fn started(start: impl FnOnce() -> io::Result<Child> + Send + 'static, limit: Duration) -> io::Result<Child> {
    let (tell, told) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        if let Err(SendError(Ok(mut late))) = tell.send(start()) {
            // Nobody waits for it any more.
            let _ = late.kill();
            let _ = late.wait();
        }
    })?;
    told.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Reads to the end in a thread of its own, because another process may have the pipe open for
/// long.
fn all_of(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        // What came before an error is what there is.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut all));
        let _ = tell.send(all);
    });
    told
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Option<Duration>) -> io::Result<Said> {
        let script = script.to_owned();
        let command = move || {
            let mut command = Command::new("sh");
            command.args(["-c", &script]);
            Ok(command)
        };
        said(command, limit)
    }

    #[test]
    fn all_that_a_program_says_is_heard() {
        for limit in [None, Some(Duration::from_secs(60))] {
            // More than a pipe takes, on both.
            let said = shell("yes o | head -n 100000; yes e | head -n 100000 >&2; exit 3", limit).unwrap();
            assert_eq!((said.out, said.err), ("o\n".repeat(100_000), "e\n".repeat(100_000)));
            let none = said_of("/nonexistent/program", limit).unwrap_err();
            assert_eq!(none.kind(), io::ErrorKind::NotFound);
        }
    }

    fn said_of(program: &'static str, limit: Option<Duration>) -> io::Result<Said> {
        said(move || Ok(Command::new(program)), limit)
    }

    #[test]
    fn one_that_does_not_end_is_given_up() {
        let limit = Some(Duration::from_millis(50));
        for script in ["exec sleep 20", "sleep 20", "sleep 20 >&2 & echo said"] {
            assert_eq!(shell(script, limit).unwrap_err().kind(), io::ErrorKind::TimedOut, "{script}");
        }
        let stuck = || {
            thread::sleep(Duration::from_secs(600));
            Err(io::ErrorKind::Other.into())
        };
        assert_eq!(said(stuck, limit).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
