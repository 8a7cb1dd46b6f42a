//! The system user as which the daemons run.

use std::fs;
use std::io;
use std::path::Path;

use super::supervisor::run;
use super::text::USER;

/// The user's entry in the user database below `root`, if it has one; `None` if there is no such
/// database.
fn entry(root: &Path) -> Option<Option<String>> {
    let text = fs::read_to_string(root.join("etc/passwd")).ok()?;
    Some(text.lines().find(|line| line.split(':').next() == Some(USER)).map(str::to_owned))
}

/// Makes the user if it is missing. `Ok(false)`: the user exists, or there is no user database
/// below `root`.
pub(super) fn make(root: &Path) -> io::Result<bool> {
    if entry(root) != Some(None) {
        return Ok(false);
    }
    let options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"];
    let mut words = vec!["useradd"];
    let prefix = root.to_string_lossy();
    if root != Path::new("/") {
        words.extend(["--prefix", &prefix]);
    }
    words.extend(options);
    words.extend(["--shell", "/usr/sbin/nologin", "--comment", COMMENT, USER]);
    run(&words).map(|()| true)
}

/// Removes the user if [`make`] made it.
pub(super) fn remove(root: &Path) -> io::Result<bool> {
    let ours = |line: String| line.split(':').nth(4) == Some(COMMENT);
    if !entry(root).flatten().is_some_and(ours) {
        return Ok(false);
    }
    let prefix = root.to_string_lossy();
    let words: &[&str] =
        if root == Path::new("/") { &["userdel", USER] } else { &["userdel", "--prefix", &prefix, USER] };
    run(words).map(|()| true)
}

/// The comment in the user database that distinguishes the daemons' user from a person with that
/// name.
const COMMENT: &str = "Tributary daemons";
