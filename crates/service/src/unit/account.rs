//! The system users as which the daemons run. Manager and nodes have one each, so that who has
//! taken over the one does not read the key of the other.

use std::fs;
use std::io;
use std::path::Path;

use super::supervisor::run;
use super::text::user;
use crate::settings::Daemon;

/// A user's entry in the user database below `root`, if it has one; `None` if there is no such
/// database.
fn entry(root: &Path, user: &str) -> Option<Option<String>> {
    let text = fs::read_to_string(root.join("etc/passwd")).ok()?;
    Some(text.lines().find(|line| line.split(':').next() == Some(user)).map(str::to_owned))
}

/// Makes the daemon's user if it is missing. `Ok(false)`: the user exists, or there is no user
/// database below `root`.
pub(super) fn make(root: &Path, daemon: Daemon) -> io::Result<bool> {
    let user = user(daemon);
    if entry(root, &user) != Some(None) {
        return Ok(false);
    }
    let options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"];
    let mut words = vec!["useradd"];
    let prefix = root.to_string_lossy();
    if root != Path::new("/") {
        words.extend(["--prefix", &prefix]);
    }
    words.extend(options);
    words.extend(["--shell", "/usr/sbin/nologin", "--comment", COMMENT, &user]);
    run(&words).map(|()| true)
}

/// Removes the daemon's user if [`make`] made it.
pub(super) fn remove(root: &Path, daemon: Daemon) -> io::Result<bool> {
    let user = user(daemon);
    let ours = |line: String| line.split(':').nth(4) == Some(COMMENT);
    if !entry(root, &user).flatten().is_some_and(ours) {
        return Ok(false);
    }
    let prefix = root.to_string_lossy();
    let words: &[&str] =
        if root == Path::new("/") { &["userdel", &user] } else { &["userdel", "--prefix", &prefix, &user] };
    run(words).map(|()| true)
}

/// The comment in the user database that distinguishes the daemons' users from a person with that
/// name.
const COMMENT: &str = "Tributary daemons";
