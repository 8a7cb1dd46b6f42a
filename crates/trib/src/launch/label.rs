//! Puts the rank in front of every line of output.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The threads that copy the ranks' output, one for each stream.
#[derive(Debug)]
pub(super) struct Labels {
    copiers: Vec<Copier>,
}

#[derive(Debug)]
struct Copier {
    thread: JoinHandle<()>,
    /// Goes up when a line is begun and when it is written, and is odd in between: what reads
    /// our output may take its time.
    steps: Arc<AtomicU64>,
}

impl Labels {
    /// No thread yet.
    pub(super) fn new() -> Self {
        Self { copiers: Vec::new() }
    }

    /// Takes over the child's output.
    pub(super) fn add(&mut self, rank: u32, child: &mut Child) {
        let label = format!("[{rank}] ");
        if let Some(output) = child.stdout.take() {
            self.copiers.push(Copier::start(output, label.clone(), || io::stdout().lock()));
        }
        if let Some(errors) = child.stderr.take() {
            self.copiers.push(Copier::start(errors, label, || io::stderr().lock()));
        }
    }

    /// Waits for the last lines: until all streams have ended, or for `limit` nothing has come
    /// while nothing was being written, or the user does not want to wait.
    pub(super) fn wait(mut self, limit: Duration, is_interrupted: impl Fn() -> bool) {
        let (mut seen, mut since) = (0, Instant::now());
        while since.elapsed() < limit && !is_interrupted() {
            self.copiers.retain(|copier| !copier.thread.is_finished());
            if self.copiers.is_empty() {
                return;
            }
            let steps: Vec<u64> = self.copiers.iter().map(|copier| copier.steps.load(Ordering::Relaxed)).collect();
            let sum: u64 = steps.iter().sum();
            if sum != seen || steps.iter().any(|steps| steps % 2 == 1) {
                (seen, since) = (sum, Instant::now());
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Copier {
    fn start<W: Write>(
        input: impl Read + Send + 'static,
        label: String,
        output: impl Fn() -> W + Send + 'static,
    ) -> Copier {
        let steps = Arc::new(AtomicU64::new(0));
        let own = steps.clone();
        Copier { thread: thread::spawn(move || copy(input, &label, output, &own)), steps }
    }
}

/// Copies line by line, each with one write, until either side is closed. Dropping the pipe then
/// tells the rank, by SIGPIPE as in any pipeline.
fn copy<W: Write>(input: impl Read, label: &str, output: impl Fn() -> W, steps: &AtomicU64) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.extend_from_slice(label.as_bytes());
        match input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        steps.fetch_add(1, Ordering::Relaxed);
        let mut output = output();
        let written = output.write_all(&line).and_then(|()| output.flush());
        steps.fetch_add(1, Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

/// Longer lines are cut, so that no program can make us keep all its output in memory.
const LINE_MAX: u64 = 64 * 1024;
/// How often it is looked whether the last lines have come.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    struct Sink<'a>(&'a RefCell<Vec<u8>>);

    impl Write for Sink<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn labelled(input: &[u8]) -> Vec<u8> {
        let sink = RefCell::new(Vec::new());
        copy(input, "[3] ", || Sink(&sink), &AtomicU64::new(0));
        sink.into_inner()
    }

    #[test]
    fn every_line_is_labelled_and_the_last_one_is_ended() {
        assert_eq!(labelled(b"a\n\nb"), b"[3] a\n[3] \n[3] b\n");
        assert_eq!(labelled(b""), b"");
        assert_eq!(labelled(b"\xff\0\n"), b"[3] \xff\0\n");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let long = vec![b'x'; 2 * LINE_MAX as usize + 5];
        let lines: Vec<usize> = labelled(&long).split(|&byte| byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lines, [LINE_MAX as usize + 4, LINE_MAX as usize + 4, 5 + 4, 0]);
    }
}
