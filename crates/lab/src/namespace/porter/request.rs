//! What is asked of the porter.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// A program that is to run in a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) place: String,
    /// The working directory.
    pub(super) folder: PathBuf,
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    /// The whole environment.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Standard input, output and error.
pub(super) type Streams = [OwnedFd; 3];

impl Request {
    /// For `command` as it would run here.
    pub(super) fn new(place: &str, command: &Command) -> io::Result<Self> {
        let mut environment: std::collections::BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => drop(environment.insert(name.to_owned(), value.to_owned())),
                None => drop(environment.remove(name)),
            }
        }
        let words = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_owned);
        // A folder that is gone is none to work in; the root will do there, too.
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Ok(Self {
            place: place.to_owned(),
            folder,
            words: words.collect(),
            environment: environment.into_iter().collect(),
        })
    }

    /// The program, ready to be started by a process that is in the place.
    pub(super) fn command(&self) -> io::Result<Command> {
        let (program, arguments) = self.words.split_first().ok_or(ErrorKind::InvalidData)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// Sends it, with the open files that the program is to have.
    pub(super) fn send(&self, mut stream: &UnixStream, files: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let text = self.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        let length = (text.len() as u64).to_le_bytes();
        // So few bytes always fit into the socket's buffer.
        let sent = rustix::net::sendmsg(stream, &[IoSlice::new(&length)], &mut ancillary, SendFlags::NOSIGNAL)?;
        if sent != length.len() {
            return Err(ErrorKind::WriteZero.into());
        }
        stream.write_all(&text)
    }

    /// Receives one.
    pub(super) fn receive(stream: &UnixStream) -> io::Result<(Self, Streams)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut length = [0; 8];
        let mut slices = [IoSliceMut::new(&mut length)];
        let got = rustix::net::recvmsg(stream, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let mut files = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(come) = message {
                files.extend(come);
            }
        }
        let streams = files.try_into().map_err(|_| ErrorKind::InvalidData)?;
        let length = u64::from_le_bytes(length);
        if got.bytes != 8 || length > LONGEST {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut text = Vec::new();
        stream.take(length).read_to_end(&mut text)?;
        let request = Self::decode(&text).ok_or(ErrorKind::InvalidData)?;
        Ok((request, streams))
    }

    /// Place, folder, number of words, words, and variables; each ends with a zero, which none of
    /// them can hold.
    fn encode(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut add = |item: &[u8]| text.extend(item.iter().chain(&[0]));
        add(self.place.as_bytes());
        add(self.folder.as_os_str().as_bytes());
        add(self.words.len().to_string().as_bytes());
        self.words.iter().for_each(|word| add(word.as_bytes()));
        for (name, value) in &self.environment {
            add(&[name.as_bytes(), value.as_bytes()].join(&b'='));
        }
        text
    }

    fn decode(text: &[u8]) -> Option<Self> {
        let mut items = text.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let owned = |item: &[u8]| OsString::from_vec(item.to_owned());
        let place = String::from_utf8(items.next()?.to_owned()).ok()?;
        let folder = PathBuf::from(owned(items.next()?));
        let count: usize = std::str::from_utf8(items.next()?).ok()?.parse().ok()?;
        let words: Vec<OsString> = items.by_ref().take(count).map(owned).collect();
        let environment = items.map(|item| {
            // A name has one byte at least, which may be anything.
            let at = 1 + item.get(1..)?.iter().position(|byte| *byte == b'=')?;
            Some((owned(&item[..at]), owned(&item[at + 1..])))
        });
        let environment = environment.collect::<Option<_>>()?;
        (words.len() == count).then_some(Self { place, folder, words, environment })
    }
}

/// More than arguments and environment of a program may have.
const LONGEST: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    fn request() -> Request {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        Request {
            place: "h1".to_owned(),
            folder: "/a b".into(),
            words: vec!["sh".into(), "-c".into(), String::new().into(), OsString::from_vec(vec![0xff, b'\n'])],
            environment: vec![pair("A", "1=2"), pair("EMPTY", ""), pair("=odd", "x")],
        }
    }

    #[test]
    fn what_is_sent_arrives_with_its_files() {
        let (near, far) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        request().send(&near, [reader.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
        let (came, [input, ..]) = Request::receive(&far).unwrap();
        assert_eq!(came, request());
        writer.write_all(b"x").unwrap();
        let mut byte = [0];
        std::fs::File::from(input).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn half_a_request_is_none() {
        let text = Request { environment: Vec::new(), ..request() }.encode();
        assert!(Request::decode(&text).is_some());
        assert!((0..text.len()).all(|end| Request::decode(&text[..end]).is_none()));
    }

    #[test]
    fn the_environment_is_ours_with_what_the_command_changes() {
        let mut command = Command::new("true");
        command.env("TRIB_TEST", "1").env_remove("PATH");
        let Request { environment, words, .. } = Request::new("h0", &command).unwrap();
        assert_eq!(words, ["true"]);
        assert!(environment.contains(&("TRIB_TEST".into(), "1".into())));
        assert!(environment.iter().all(|(name, _)| name != "PATH"));
    }
}
