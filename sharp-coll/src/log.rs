//! Lines for people, on stderr. Each begins with host, rank and process, then the level.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::settings;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    Fatal = 0,
    Error = 1,
    Warn = 2,
    Info = 3,
    Debug = 4,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);
static IS_TOLD: AtomicBool = AtomicBool::new(false);
static RANK: AtomicI32 = AtomicI32::new(-1);

/// Reads the level from the environment.
pub fn read_level() {
    let level = settings::number("SHARP_COLL_LOG_LEVEL").unwrap_or(u64::from(Level::Warn as u8)).min(5);
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Sets the world rank that lines name from now on.
pub fn set_rank(rank: i32) {
    RANK.store(rank, Ordering::Relaxed);
}

pub fn fatal(text: Arguments<'_>) {
    line(Level::Fatal, "FATAL", text);
}

pub fn error(text: Arguments<'_>) {
    line(Level::Error, "ERROR", text);
}

pub fn warn(text: Arguments<'_>) {
    line(Level::Warn, "WARN", text);
}

pub fn info(text: Arguments<'_>) {
    line(Level::Info, "INFO", text);
}

pub fn debug(text: Arguments<'_>) {
    line(Level::Debug, "DEBUG", text);
}

/// Reports an error that the client wants hidden and of which its user hears in no other way. Only
/// the first one of this process is reported so; others are lines of level debug.
pub fn hidden_error(text: Arguments<'_>) {
    if Level::Error as u8 <= LEVEL.load(Ordering::Relaxed) && !IS_TOLD.swap(true, Ordering::Relaxed) {
        let all = format!("tributary: {text} (rank {}, {})\n", RANK.load(Ordering::Relaxed), host_name());
        let _ = std::io::stderr().write_all(all.as_bytes());
    } else {
        debug(text);
    }
}

fn line(level: Level, word: &str, text: Arguments<'_>) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let rank = RANK.load(Ordering::Relaxed);
    // One write call keeps the lines of ranks on one terminal apart.
    let all = format!(
        "[{}:{rank}:{}][libsharp_coll][{}.{:06}] {word:5} {text}\n",
        host_name(),
        std::process::id(),
        now.as_secs(),
        now.subsec_micros()
    );
    let _ = std::io::stderr().write_all(all.as_bytes());
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned())
}
