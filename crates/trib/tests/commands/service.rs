//! `trib service` as its users see it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Image(PathBuf);

impl Image {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("trib-service-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn rights(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_daemons_may_read_what_they_need_whatever_the_administrators_umask() {
    let image = Image::new("umask");
    let (trib, root) = (env!("CARGO_BIN_EXE_trib"), image.0.display());
    let script = format!(
        "umask 077; {trib} service install am --root {root} && {trib} credentials {root}/etc/tributary && \
         {trib} credentials {root}/etc/tributary --node leaf0"
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (path, wanted) in [
        ("etc/systemd/system/tributary-am.service", 0o644),
        ("etc/tributary", 0o755),
        ("etc/tributary/am.toml", 0o644),
        ("etc/tributary/ca.pem", 0o644),
        ("etc/tributary/manager.pem", 0o644),
        ("etc/tributary/manager.key", 0o600),
        ("etc/tributary/users", 0o755),
        ("etc/tributary/users/user.pem", 0o644),
        ("etc/tributary/nodes/leaf0/node.key", 0o600),
    ] {
        assert_eq!(rights(&image.0.join(path)), wanted, "{path}");
    }
}
