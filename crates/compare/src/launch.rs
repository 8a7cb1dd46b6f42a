//! The processes of one launch: started together, read with deadlines, and gone afterwards whatever
//! they did.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::counters::processes;
use crate::line::Line;

/// Processes that run.
#[derive(Debug)]
pub(crate) struct Launch {
    children: Vec<Child>,
    token: String,
    gate: Option<ChildStdin>,
    lines: Receiver<Line>,
    errors: File,
}

/// Why a launch prints no more lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Silence {
    /// It printed nothing within the time limit.
    Timeout,
    /// It ended.
    Ended(String),
}

impl Launch {
    /// Starts the commands. All of them have `token` in their environment, and the first one prints
    /// the lines.
    pub(crate) fn start(commands: Vec<Command>, token: &str) -> std::io::Result<Launch> {
        let errors = scratch_file()?;
        let (sender, lines) = channel();
        let mut launch = Launch { children: Vec::new(), token: token.to_owned(), gate: None, lines, errors };
        let mut sender = Some(sender);
        for mut command in commands {
            // Each process has a group of its own, so that Ctrl-C reaches us alone. Either we end
            // everything in order, or the laboratory in which they run ends with us.
            command.stderr(launch.errors.try_clone()?).process_group(0);
            let speaks = sender.take();
            if speaks.is_some() {
                command.stdin(Stdio::piped()).stdout(Stdio::piped());
            } else {
                command.stdin(Stdio::null()).stdout(Stdio::null());
            }
            let mut child = command.spawn()?;
            if let (Some(sender), Some(output)) = (speaks, child.stdout.take()) {
                launch.gate = child.stdin.take();
                std::thread::spawn(move || {
                    let lines = BufReader::new(output).lines().map_while(Result::ok);
                    for line in lines.filter_map(|line| Line::read(&line)) {
                        if sender.send(line).is_err() {
                            break;
                        }
                    }
                });
            }
            launch.children.push(child);
        }
        Ok(launch)
    }

    /// The next line.
    pub(crate) fn next(&mut self, limit: Duration) -> Result<Line, Silence> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(Silence::Timeout),
            Err(RecvTimeoutError::Disconnected) => Err(Silence::Ended(self.last_words())),
        }
    }

    /// Lets a rank that waits at a gate go on.
    pub(crate) fn open_gate(&mut self) -> std::io::Result<()> {
        match &mut self.gate {
            Some(gate) => gate.write_all(b"go\n").and_then(|()| gate.flush()),
            None => Ok(()),
        }
    }

    /// Every process of the launch, including helpers of launchers.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes::with_token(&self.token)
    }

    /// Waits until all processes have ended, at most `limit`; true if all of them ended well.
    pub(crate) fn wait(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        self.gate = None;
        let mut well = true;
        for child in &mut self.children {
            loop {
                match child.try_wait() {
                    Ok(Some(status)) => break well &= status.success(),
                    Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                    Ok(None) | Err(_) => return false,
                }
            }
        }
        well
    }

    /// The end of what it wrote to stderr, as one line.
    fn last_words(&mut self) -> String {
        // The first process that fails is usually followed by others that say so a moment later.
        self.wait(Duration::from_millis(300));
        let mut bytes = Vec::new();
        let from = self.errors.metadata().map_or(0, |data| data.len().saturating_sub(WORDS_MAX));
        let read = self.errors.seek(SeekFrom::Start(from)).and_then(|_| self.errors.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric)).collect();
        // Ranks that fail for the same reason say the same.
        lines.dedup();
        match (read, lines.len()) {
            (Ok(_), 1..) => lines[lines.len().saturating_sub(3)..].join(" / "),
            _ => "ended without a word".to_owned(),
        }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.gate = None;
        for pid in self.processes() {
            processes::kill(pid);
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A file without a name. Writing to it never blocks a rank.
fn scratch_file() -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!("trib-compare-{}-{:?}", std::process::id(), Instant::now()));
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

const WORDS_MAX: u64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Event;
    use crate::system::TOKEN_ENV;

    fn shell(script: &str, token: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env(TOKEN_ENV, token);
        command
    }

    #[test]
    fn a_gate_waits_until_it_is_opened() {
        let script = r#"echo '{"event":"ready"}'; read x; echo "noise"; echo '{"event":"done"}'"#;
        let mut launch = Launch::start(vec![shell(script, "t-gate"), shell("true", "t-gate")], "t-gate").unwrap();
        assert_eq!(launch.next(Duration::from_secs(5)), Ok(Line::Gate { event: Event::Ready }));
        assert_eq!(launch.next(Duration::from_millis(50)), Err(Silence::Timeout));
        launch.open_gate().unwrap();
        assert_eq!(launch.next(Duration::from_secs(5)), Ok(Line::Gate { event: Event::Done }));
        assert!(launch.wait(Duration::from_secs(5)));
    }

    #[test]
    fn failures_are_told_and_nothing_survives() {
        let mut launch = Launch::start(vec![shell("echo broken >&2; exit 3", "t-fail")], "t-fail").unwrap();
        assert_eq!(launch.next(Duration::from_secs(5)), Err(Silence::Ended("broken".to_owned())));
        // The grandchild leaves its process group, as a launcher's daemon does.
        let launch = Launch::start(vec![shell("setsid sleep 60 & sleep 60", "t-left")], "t-left").unwrap();
        while launch.processes().len() < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(launch);
        let deadline = Instant::now() + Duration::from_secs(5);
        while !processes::with_token("t-left").is_empty() {
            assert!(Instant::now() < deadline, "processes survived");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
