//! Looking again and again. On a terminal one picture is drawn anew; elsewhere one block follows
//! another.
//!
//! A thread of its own asks the manager, so that the picture follows the window's size and ends at
//! Ctrl-C even while an answer is awaited.

use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::canvas::{Canvas, text};
use super::line::{Line, Tone};
use super::screen::Screen;
use crate::failure::{self, Failure};
use crate::stdout;

/// A thing that can be looked at.
pub trait View: Sync {
    /// What one look finds.
    type Look: Send + 'static;

    /// Looks.
    fn look(&self) -> Result<Self::Look, Failure>;

    /// The lines for people. They compare the look with the one before.
    fn draw(&self, before: Option<&Self::Look>, now: &Self::Look, canvas: Canvas) -> Vec<Line>;

    /// The line for programs.
    fn json(&self, now: &Self::Look) -> String;

    /// Whether nothing will change any more.
    fn is_last(&self, now: &Self::Look) -> bool;
}

/// The time from a first look to a second one, which gives rates. The time that nodes take to
/// answer is a small part of it.
pub const FIRST_SPAN: Duration = Duration::from_millis(500);

/// Shows a view every `interval` until nothing changes any more, nothing reads the output, or a
/// signal ends it.
///
/// # Errors
/// The error of the first look. Later errors are only reported, because a manager may be restarted.
pub fn watch(view: &impl View, interval: Duration, json: bool) -> Result<ExitCode, Failure> {
    let first = view.look()?;
    match Canvas::of_stdout() {
        Canvas::Terminal { .. } if !json => on_terminal(view, first, interval),
        _ => in_blocks(view, first, interval, json),
    }
}

fn in_blocks<V: View>(view: &V, first: V::Look, interval: Duration, json: bool) -> Result<ExitCode, Failure> {
    // Without an earlier look the first block would have no rates.
    let mut before = None;
    let mut now = first;
    if !json && !view.is_last(&now) {
        thread::sleep(FIRST_SPAN.min(interval));
        let second = view.look()?;
        before = Some(std::mem::replace(&mut now, second));
    }
    let mut is_first = true;
    let mut next = Instant::now() + interval;
    loop {
        let block = match json {
            true => format!("{}\n", view.json(&now)),
            false => {
                let gap = if is_first { "" } else { "\n" };
                gap.to_owned() + &text(&view.draw(before.as_ref(), &now, Canvas::Pipe), Canvas::Pipe)
            }
        };
        is_first = false;
        if !stdout::offer(&block)? || view.is_last(&now) {
            return Ok(ExitCode::SUCCESS);
        }
        let look = loop {
            thread::sleep(next.saturating_duration_since(Instant::now()));
            next = Instant::now() + interval;
            match view.look() {
                Ok(look) => break look,
                Err(failure) => failure::tell(&failure),
            }
        };
        before = Some(std::mem::replace(&mut now, look));
    }
}

enum Event<L> {
    Looked(Result<L, Failure>),
    Signal(i32),
}

fn on_terminal<V: View>(view: &V, first: V::Look, interval: Duration) -> Result<ExitCode, Failure> {
    let (sender, events) = mpsc::channel();
    watch_signals(sender.clone())?;
    let mut screen = Some(Screen::open().map_err(Failure::environment)?);
    let end = thread::scope(|scope| {
        let (stop, stopped) = mpsc::channel::<()>();
        scope.spawn(move || {
            let mut pause = FIRST_SPAN.min(interval);
            while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                let began = Instant::now();
                let _ = sender.send(Event::Looked(view.look()));
                pause = interval.saturating_sub(began.elapsed());
            }
        });
        let (mut before, mut now, mut trouble) = (None, first, None);
        let end = loop {
            if let Some(screen) = &screen {
                screen.show(&picture(view, before.as_ref(), &now, trouble.as_ref())).map_err(Failure::environment)?;
            }
            if view.is_last(&now) {
                break None;
            }
            match events.recv() {
                Ok(Event::Looked(Ok(look))) => {
                    before = Some(std::mem::replace(&mut now, look));
                    trouble = None;
                }
                Ok(Event::Looked(Err(failure))) => trouble = Some(failure),
                Ok(Event::Signal(SIGWINCH)) => {}
                Ok(Event::Signal(SIGTSTP)) => {
                    screen = None;
                    // This thread goes on when the shell brings the job back.
                    emulate_default_handler(SIGTSTP).map_err(Failure::environment)?;
                    screen = Some(Screen::open().map_err(Failure::environment)?);
                }
                Ok(Event::Signal(signal)) => {
                    // A look may go on for seconds; it ends with the process.
                    screen = None;
                    emulate_default_handler(signal).map_err(Failure::environment)?;
                    break Some(signal);
                }
                Err(mpsc::RecvError) => break None,
            }
        };
        drop(stop);
        drop(screen.take());
        // The last picture stays above the user's next prompt.
        if end.is_none() {
            let canvas = Canvas::of_stdout();
            stdout::print(&text(&view.draw(before.as_ref(), &now, canvas), canvas))?;
        }
        Ok::<_, Failure>(end)
    })?;
    Ok(end.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128u8.saturating_add(signal as u8))))
}

fn picture<V: View>(view: &V, before: Option<&V::Look>, now: &V::Look, trouble: Option<&Failure>) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(failure) = trouble {
        lines.push(Line::new(Tone::Alarm, format!("{}{failure}; what follows was before that", failure::PREFIX)));
        lines.push(Line::default());
    }
    lines.extend(view.draw(before, now, Canvas::of_stdout()));
    lines
}

/// Turns these signals into events from now on.
fn watch_signals<L: Send + 'static>(events: Sender<Event<L>>) -> Result<(), Failure> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH]).map_err(Failure::environment)?;
    let forward = move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(forward).map_err(Failure::environment)?;
    Ok(())
}
