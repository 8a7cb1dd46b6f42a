//! What lies in the folder of a connected node: whether its credentials were renewed, and whether
//! the node's next connection could be made with them.
//!
//! A certificate alone says neither. One that came with a key that the node may not read leaves the
//! node as it is, until it connects the next time and fails.

use std::path::Path;
use std::time::{Duration, Instant};

use trib_control::{Credentials, Error};

/// The credentials of a node as they were when it looked last.
pub(crate) struct Renewal<'a> {
    folder: &'a Path,
    name: &'a str,
    /// When the certificate ends that could be used last.
    ends: Option<u64>,
    /// Why what lies there now cannot be used, as it was told.
    unusable: Option<String>,
    looked: Instant,
}

impl<'a> Renewal<'a> {
    /// Of a node that has just connected with what lies there.
    pub(crate) fn new(folder: &'a Path, name: &'a str) -> Self {
        let mut renewal = Renewal { folder, name, ends: None, unusable: None, looked: Instant::now() };
        renewal.look();
        renewal
    }

    /// Looks, if it is time to, and returns the new end of a certificate that was renewed.
    pub(crate) fn look_now_and_then(&mut self) -> Option<u64> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        self.look()
    }

    /// The end of the certificate, if it is another one than before and all that belongs to it can
    /// be used. If it cannot, the log says so once for each cause.
    fn look(&mut self) -> Option<u64> {
        match Credentials::load_node(self.folder, self.name) {
            Ok(credentials) => {
                self.unusable = None;
                let ends = credentials.certificate().ends;
                (self.ends.replace(ends) != Some(ends)).then_some(ends)
            }
            Err(error) => {
                self.warn(&error);
                None
            }
        }
    }

    fn warn(&mut self, error: &Error) {
        let why = error.to_string();
        if self.unusable.as_ref() != Some(&why) {
            tracing::warn!(
                folder = %self.folder.display(),
                %error,
                "what lies in the node's credentials folder cannot be used: the node stays connected, and does not get in again \
                 when it or the manager is restarted"
            );
            self.unusable = Some(why);
        }
    }
}

/// How often a node looks whether its certificate was renewed.
const LOOK: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use trib_control::{Holder, KeyFolder, VALIDITY};

    #[test]
    fn a_certificate_whose_key_cannot_be_used_is_not_taken_for_a_renewed_one() {
        let top = std::env::temp_dir().join(format!("trib-renewal-{}", std::process::id()));
        let (keys, node) = (KeyFolder::at(&top), Holder::node("leaf0").unwrap());
        keys.create(VALIDITY).unwrap();
        let folder = keys.add(&node, VALIDITY).unwrap();
        let mut renewal = Renewal::new(&folder, "leaf0");
        assert_eq!((renewal.look(), renewal.unusable.is_none()), (None, true), "nothing has happened");
        let before = renewal.ends;
        assert!(before.is_some());

        let renewed = keys.renew(&node, VALIDITY * 2).unwrap().ends;
        let key = folder.join("node.key");
        let whole = fs::read(&key).unwrap();
        fs::write(&key, "no key").unwrap();
        assert_eq!((renewal.look(), renewal.ends), (None, before), "the node cannot connect with it");
        assert!(renewal.unusable.as_ref().is_some_and(|why| why.contains("node.key")), "{:?}", renewal.unusable);

        fs::write(&key, whole).unwrap();
        assert_eq!((renewal.look(), renewal.unusable.is_none()), (Some(renewed), true));
        assert_eq!(renewal.look(), None, "it is told once");
        fs::remove_dir_all(&top).unwrap();
    }
}
