//! Tests with real TLS on loopback: which sides may speak, what is carried, and what each failure
//! is called.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trib_control::clock::unix_s;
use trib_control::{
    Channel, Credentials, Error, HANDSHAKE, Holder, KeyFolder, Listener, ManagerUrl, Serial, VALIDITY, software_version,
};
use trib_messages::hello::{Hello, Role};
use trib_messages::reply::{Reply, Resource};

const LIMIT: Duration = Duration::from_secs(10);
const ANY: &str = "127.0.0.1:0";

/// A new folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let unique = format!("trib-control-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        Folder(std::env::temp_dir().join(unique))
    }

    fn with_credentials() -> Self {
        let folder = Self::new();
        folder.keys().create(VALIDITY).unwrap();
        folder
    }

    fn keys(&self) -> KeyFolder {
        KeyFolder::at(&self.0)
    }

    fn with_node(&self, name: &str) -> Holder {
        let node = Holder::node(name).unwrap();
        self.keys().add(&node, VALIDITY).unwrap();
        node
    }

    fn load(&self, role: Role) -> Credentials {
        Credentials::load(&self.0, role).unwrap()
    }

    fn listener(&self) -> Arc<Listener> {
        Arc::new(Listener::bind(ANY.parse().unwrap(), &self.0).unwrap())
    }

    fn url(&self, address: SocketAddr) -> ManagerUrl {
        ManagerUrl::new(address.ip().to_string(), address.port(), &self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn hello(role: Role) -> Hello {
    Hello { version: trib_wire::VERSION, software: "test 1".into(), role }
}

/// Some message, told from others by this text.
fn text(software: String) -> Hello {
    Hello { software, ..hello(Role::User) }
}

/// Both ends' results of one connection.
fn meet(
    manager: &Folder,
    connect: impl FnOnce(SocketAddr) -> Result<Channel, Error> + Send,
) -> (Result<Channel, Error>, Result<Channel, Error>) {
    meet_at(&manager.listener(), connect)
}

/// Both ends' results of one connection to this listener.
fn meet_at(
    listener: &Listener,
    connect: impl FnOnce(SocketAddr) -> Result<Channel, Error> + Send,
) -> (Result<Channel, Error>, Result<Channel, Error>) {
    let address = listener.address();
    thread::scope(|scope| {
        let server = scope.spawn(|| listener.accept().unwrap().establish(LIMIT));
        let client = connect(address);
        (server.join().unwrap(), client)
    })
}

#[test]
fn messages_of_any_size_arrive_whole_in_both_directions_at_once() {
    let folder = Folder::with_credentials();
    folder.with_node("leaf0");
    let (server, client) = meet(&folder, |at| Channel::connect_node(&folder.url(at), "leaf0", LIMIT));
    let (server, client) = (server.unwrap(), client.unwrap());
    assert_eq!((server.peer().role(), client.peer().role()), (Role::Node, Role::Manager));
    assert_eq!((server.peer().node(), server.peer().tenant()), (Some("leaf0"), None));
    assert_eq!(server.peer().software, software_version());
    let sizes = [0usize, 1, 16_384, 16_385, 3_000_000];
    let talk = |channel: &Channel, letter: &str| {
        thread::scope(|scope| {
            scope.spawn(|| sizes.iter().for_each(|size| channel.send(&text(letter.repeat(*size))).unwrap()));
            sizes.map(|_| channel.recv::<Hello>(Some(LIMIT)).unwrap())
        })
    };
    let (at_server, at_client) = thread::scope(|scope| {
        let server = scope.spawn(|| talk(&server, "s"));
        let client = talk(&client, "c");
        (server.join().unwrap(), client)
    });
    assert_eq!(at_server, sizes.map(|size| text("c".repeat(size))));
    assert_eq!(at_client, sizes.map(|size| text("s".repeat(size))));
}

#[test]
fn a_wait_that_times_out_loses_nothing_and_a_close_wakes_it() {
    let folder = Folder::with_credentials();
    let (server, client) = meet(&folder, |at| Channel::connect(&folder.url(at), Role::User, LIMIT));
    let (server, client) = (server.unwrap(), client.unwrap());
    let brief = Some(Duration::from_millis(20));
    assert!(matches!(client.recv::<Hello>(brief), Err(Error::Timeout { .. })));
    server.send(&text("7".into())).unwrap();
    assert_eq!(client.recv::<Hello>(Some(LIMIT)).unwrap(), text("7".into()));
    assert!(!client.is_closed());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.recv::<Hello>(None));
        server.send(&text("8".into())).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), text("8".into()));
        let waiting = scope.spawn(|| client.recv::<Hello>(None));
        server.close();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Closed { .. })));
    });
    assert!(client.is_closed());
}

#[test]
fn a_role_that_the_certificate_does_not_give_is_refused_with_a_reason() {
    let folder = Folder::with_credentials();
    let user = folder.load(Role::User);
    let (server, client) = meet(&folder, |at| Channel::connect_as(&folder.url(at), &user, hello(Role::Node), LIMIT));
    assert!(matches!(server, Err(Error::Refused(refusal)) if refusal.resource == Resource::Role));
    match client.unwrap().recv::<Reply>(Some(LIMIT)).unwrap() {
        Reply::Refused(refusal) => assert!(refusal.text.contains("user certificate cannot speak as node"), "{refusal}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_but_a_manager_passes_for_one() {
    let folder = Folder::with_credentials();
    folder.with_node("leaf0");
    for own in ["nodes/leaf0/node", "user"] {
        // It calls itself a manager, and its certificate does not.
        let false_one = Folder::new();
        std::fs::create_dir(&false_one.0).unwrap();
        for (from, to) in
            [("ca.pem", "ca.pem"), (&format!("{own}.pem"), "manager.pem"), (&format!("{own}.key"), "manager.key")]
        {
            std::fs::copy(folder.0.join(from), false_one.0.join(to)).unwrap();
        }
        let listener = false_one.listener();
        let url = folder.url(listener.address());
        thread::scope(|scope| {
            scope.spawn(|| assert!(listener.accept().unwrap().establish(LIMIT).is_err()));
            let error = Channel::connect(&url, Role::User, LIMIT).map(drop).unwrap_err();
            assert!(matches!(error, Error::BadCertificate(_)), "{error}");
        });
    }
}

#[test]
fn another_fabrics_credentials_do_not_open_the_door() {
    let (ours, theirs) = (Folder::with_credentials(), Folder::with_credentials());
    let (server, client) = meet(&ours, |at| Channel::connect(&theirs.url(at), Role::User, LIMIT));
    assert!(matches!(client, Err(Error::BadCertificate(_))));
    assert!(server.is_err());

    // The authority is the right one, so the manager is trusted, but the certificate is another
    // authority's.
    let mixed = Folder::new();
    std::fs::create_dir_all(&mixed.0).unwrap();
    for (from, file) in [(&ours, "ca.pem"), (&theirs, "user.pem"), (&theirs, "user.key")] {
        std::fs::copy(from.0.join(file), mixed.0.join(file)).unwrap();
    }
    let (server, client) = meet(&ours, |at| Channel::connect(&mixed.url(at), Role::User, LIMIT));
    let error = client.map(drop).unwrap_err();
    assert!(matches!(&error, Error::BadCertificate(text) if text.contains("rejects ours")), "{error}");
    assert!(matches!(server, Err(Error::BadCertificate(_))));
}

#[test]
fn a_tenant_is_known_by_its_certificate_to_a_manager_that_started_before_it_was_added() {
    let fabric = Folder::with_credentials();
    let before = fabric.listener();
    let astro = fabric.keys().add(&Holder::tenant("astro").unwrap(), VALIDITY).unwrap();
    let connect = |at: SocketAddr, folder: &std::path::Path| {
        Channel::connect(&ManagerUrl::new(at.ip().to_string(), at.port(), folder), Role::User, LIMIT)
    };
    let (server, client) = meet_at(&before, |at| connect(at, &astro));
    let (server, _client) = (server.unwrap(), client.unwrap());
    assert_eq!((server.peer().role(), server.peer().tenant()), (Role::User, Some("astro")));
    let (server, client) = meet_at(&before, |at| connect(at, &fabric.0));
    assert_eq!(server.unwrap().peer().tenant(), None);
    assert_eq!(client.unwrap().peer().tenant(), None);
}

#[test]
fn renewed_credentials_are_taken_by_both_sides_without_a_restart() {
    let fabric = Folder::with_credentials();
    let listener = fabric.listener();
    let call = || meet_at(&listener, |at| Channel::connect(&fabric.url(at), Role::User, LIMIT));
    let serials = |server: &Channel, client: &Channel| -> [Serial; 2] {
        [client, server].map(|channel| channel.peer().certificate.serial.clone())
    };
    let (server, client) = call();
    let (server, client) = (server.unwrap(), client.unwrap());
    let old = serials(&server, &client);
    let new = [Holder::Manager, Holder::Users].map(|holder| fabric.keys().renew(&holder, VALIDITY).unwrap().serial);
    assert!(old != new && old[0] != old[1]);
    let end = Instant::now() + LIMIT;
    // The listener looks at its files once a second.
    while {
        let (server, client) = call();
        serials(&server.unwrap(), &client.unwrap()) != new
    } {
        assert!(Instant::now() < end, "the renewed certificates are not taken");
        thread::sleep(Duration::from_millis(50));
    }
    // The connection from before lives on.
    client.send(&text("1".into())).unwrap();
    assert_eq!(server.recv::<Hello>(Some(LIMIT)).unwrap(), text("1".into()));
}

#[test]
fn a_certificate_that_has_ended_is_refused_in_words_at_both_ends() {
    let fabric = Folder::with_credentials();
    let (short, listener) = (Duration::from_secs(1), fabric.listener());
    let node = Holder::node("leaf0").unwrap();
    fabric.keys().add(&node, short).unwrap();
    let ends = fabric.keys().certificate(&node).unwrap().ends;
    while unix_s() <= ends {
        thread::sleep(Duration::from_millis(50));
    }
    let (server, client) = meet_at(&listener, |at| Channel::connect_node(&fabric.url(at), "leaf0", LIMIT));
    // The one that connects has sent its part when it is refused, so it may hear of it later.
    let client = client.and_then(|channel| channel.recv::<Hello>(Some(LIMIT))).map(drop);
    for error in [server.map(drop).unwrap_err(), client.unwrap_err()] {
        assert!(matches!(error, Error::Ended { .. }), "{error}");
        let words = error.to_string();
        assert!(words.contains("node leaf0 ended on ") && words.contains("renew DIR --node leaf0"), "{words}");
    }
    // So is the manager's, by who connects.
    fabric.keys().renew(&Holder::Manager, short).unwrap();
    let (ends, listener) = (fabric.keys().certificate(&Holder::Manager).unwrap().ends, fabric.listener());
    while unix_s() <= ends {
        thread::sleep(Duration::from_millis(50));
    }
    let (server, client) = meet_at(&listener, |at| Channel::connect(&fabric.url(at), Role::User, LIMIT));
    for error in [server.map(drop).unwrap_err(), client.map(drop).unwrap_err()] {
        let words = error.to_string();
        assert!(words.contains("manager ended on ") && words.contains("renew DIR --am"), "{words}");
    }
}

#[test]
fn a_withdrawn_certificate_is_refused_once_the_list_is_read_and_a_new_one_is_taken() {
    let fabric = Folder::with_credentials();
    let node = fabric.with_node("leaf0");
    fabric.with_node("leaf1");
    let (listener, keys) = (fabric.listener(), fabric.keys());
    let call = |name| meet_at(&listener, |at| Channel::connect_node(&fabric.url(at), name, LIMIT));
    let (server, _client) = call("leaf0");
    let shown = server.unwrap().peer().certificate.clone();
    let serial = shown.serial.clone();
    assert_eq!(keys.withdraw(&node).unwrap(), std::slice::from_ref(&serial));
    assert!(keys.withdraw(&node).unwrap().is_empty(), "it is on the list already");
    assert!(call("leaf0").0.is_ok() && !listener.is_withdrawn(&shown));
    assert_eq!(listener.read_withdrawn().unwrap(), 1);
    assert!(listener.is_withdrawn(&shown));
    let (server, client) = call("leaf0");
    let client = client.and_then(|channel| channel.recv::<Hello>(Some(LIMIT))).map(drop);
    for error in [server.map(drop).unwrap_err(), client.unwrap_err()] {
        assert!(matches!(error, Error::Withdrawn { .. }), "{error}");
        let words = error.to_string();
        assert!(words.contains("node leaf0") && words.contains(&serial.to_string()), "{words}");
    }
    assert!(call("leaf1").0.is_ok());
    // What was renewed is another certificate. To withdraw takes what was issued before it, too.
    let renewed = keys.renew(&node, VALIDITY).unwrap();
    assert!(call("leaf0").0.is_ok());
    let last = keys.renew(&node, VALIDITY).unwrap();
    assert_eq!(keys.withdraw(&node).unwrap(), [renewed.serial, last.serial]);
    assert!(matches!(keys.withdraw(&Holder::Manager), Err(Error::ManagerWithdrawn)));
    assert!(matches!(keys.withdraw(&Holder::node("leaf9").unwrap()), Err(Error::NotIssued { .. })));
}

#[test]
fn a_version_mismatch_names_both_versions_on_both_sides() {
    let folder = Folder::with_credentials();
    let user = folder.load(Role::User);
    let strange = Hello { version: 99, ..hello(Role::User) };
    let (server, client) = meet(&folder, |at| Channel::connect_as(&folder.url(at), &user, strange, LIMIT));
    let ours = trib_wire::VERSION;
    assert!(matches!(server, Err(Error::VersionMismatch { ours: a, theirs: 99, .. }) if a == ours));
    let error = client.map(drop).unwrap_err();
    assert!(matches!(error, Error::VersionMismatch { ours: 99, theirs, .. } if theirs == ours));
    let text = error.to_string();
    assert!(text.contains("99") && text.contains("install the same release"), "{text}");
}

#[test]
fn missing_and_damaged_credentials_are_named_by_file() {
    let folder = Folder::new();
    let url = ManagerUrl::new("127.0.0.1", 1, &folder.0);
    let error = Channel::connect(&url, Role::User, LIMIT).map(drop).unwrap_err();
    assert!(matches!(&error, Error::NoCredentials { path, .. } if path.ends_with("ca.pem")), "{error}");

    folder.keys().create(VALIDITY).unwrap();
    let key = folder.0.join("user.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(folder.keys().create(VALIDITY), Err(Error::Exists { .. })), "never replaced");
    std::fs::copy(folder.0.join("user.pem"), &key).unwrap();
    let error = Channel::connect(&url, Role::User, LIMIT).map(drop).unwrap_err();
    assert!(matches!(&error, Error::BadCredentials { path, .. } if *path == key), "{error}");
    std::fs::copy(folder.0.join("manager.key"), &key).unwrap();
    let error = Channel::connect(&url, Role::User, LIMIT).map(drop).unwrap_err();
    assert!(matches!(&error, Error::BadCredentials { path, .. } if *path == key), "{error}");
}

#[test]
fn who_is_not_there_is_unreachable_and_who_is_silent_times_out() {
    let folder = Folder::with_credentials();
    let free = TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let error = Channel::connect(&folder.url(free), Role::User, LIMIT).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Unreachable { address, .. } if *address == free.to_string()), "{error}");

    let silent = TcpListener::bind(ANY).unwrap();
    let start = Instant::now();
    let url = folder.url(silent.local_addr().unwrap());
    let error = Channel::connect(&url, Role::User, Duration::from_millis(200)).map(drop).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!((200..5_000).contains(&start.elapsed().as_millis()));
}

/// The caller's time limit decides, not that of the manager, which a slow caller outlasts.
#[test]
fn who_is_cut_off_for_being_slow_calls_again() {
    let folder = Folder::with_credentials();
    let listener = folder.listener();
    let url = folder.url(listener.address());
    let manager = thread::spawn(move || {
        let slow = listener.accept().unwrap();
        thread::sleep(HANDSHAKE);
        drop(slow);
        listener.accept().unwrap().establish(LIMIT).unwrap()
    });
    let channel = Channel::connect(&url, Role::User, 2 * HANDSHAKE + LIMIT).unwrap();
    manager.join().unwrap().send(&text("1".into())).unwrap();
    assert_eq!(channel.recv::<Hello>(Some(LIMIT)).unwrap(), text("1".into()));
}

#[test]
fn strangers_without_tls_or_words_cost_only_their_time_limit() {
    let folder = Folder::with_credentials();
    let listener = folder.listener();
    let mut babbler = TcpStream::connect(listener.address()).unwrap();
    babbler.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(listener.accept().unwrap().establish(LIMIT).is_err());
    babbler.set_read_timeout(Some(LIMIT)).unwrap();
    let mut rest = Vec::new();
    // This gives an alert or a reset; either way the connection is over.
    let _ = babbler.read_to_end(&mut rest);

    let _silent = TcpStream::connect(listener.address()).unwrap();
    let brief = Duration::from_millis(100);
    assert!(matches!(listener.accept().unwrap().establish(brief), Err(Error::Timeout { .. })));
}

#[test]
fn one_that_sends_on_and_on_has_no_more_time_than_one_that_is_silent() {
    let (folder, brief) = (Folder::with_credentials(), Duration::from_millis(100));
    // A handshake of 64 KiB, byte by byte, which takes seconds at least.
    let listener = folder.listener();
    let mut trickle = TcpStream::connect(listener.address()).unwrap();
    trickle.set_nodelay(true).unwrap();
    let sending = thread::spawn(move || {
        let record = [&[22, 3, 1, 64, 0, 1, 0, 255, 255][..], &[0; 16_380]].concat();
        let mut bytes = record.iter().chain(std::iter::repeat_n(&record, 3).flatten());
        bytes.all(|byte| {
            thread::sleep(Duration::from_micros(100));
            trickle.write_all(&[*byte]).is_ok()
        })
    });
    assert!(matches!(listener.accept().unwrap().establish(brief), Err(Error::Timeout { .. })));
    assert!(!sending.join().unwrap(), "it is cut off");

    let (server, client) = meet(&folder, |at| Channel::connect(&folder.url(at), Role::User, LIMIT));
    let (server, client) = (server.unwrap(), client.unwrap());
    // What is there may be a whole message, and the time is for what can be read in it.
    let long = text("x".repeat(100_000));
    client.send(&long).unwrap();
    assert!(matches!(server.recv::<Hello>(Some(Duration::ZERO)), Err(Error::Timeout { .. })));
    assert_eq!(server.recv::<Hello>(Some(LIMIT)).unwrap(), long);
    let (end, word) = (Instant::now() + LIMIT, text("x".repeat(10_000)));
    thread::scope(|scope| {
        let sending = scope.spawn(|| while Instant::now() < end && client.send(&word).is_ok() {});
        server.finish(brief);
        sending.join().unwrap();
    });
    assert!(Instant::now() < end, "the channel is closed when the time for a last word is over");
}

#[test]
fn what_is_no_message_closes_the_channel() {
    let folder = Folder::with_credentials();
    let (server, client) = meet(&folder, |at| Channel::connect(&folder.url(at), Role::User, LIMIT));
    let (server, client) = (server.unwrap(), client.unwrap());
    client.send(&text("not a reply".into())).unwrap();
    assert!(matches!(server.recv::<Reply>(Some(LIMIT)), Err(Error::Malformed { .. })));
    assert!(matches!(client.recv::<Reply>(Some(LIMIT)), Err(Error::Closed { .. })));
}

#[test]
fn a_closed_listener_lets_its_thread_go() {
    let listener = Folder::with_credentials().listener();
    thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept().map(drop));
        listener.close();
        assert!(accepting.join().unwrap().is_err());
    });
}

#[test]
fn a_daemon_does_not_start_with_a_key_that_others_can_read() {
    let folder = Folder::with_credentials();
    folder.with_node("leaf0");
    let open = |name: &str, mode| {
        std::fs::set_permissions(folder.0.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open("manager.key", 0o640);
    folder.load(Role::Manager);
    for (name, command) in
        [("manager.key", "chmod o="), ("nodes/leaf0/node.key", "chmod o="), ("authority-key.pem", "chmod 600")]
    {
        open(name, 0o644);
        let error = match name {
            "manager.key" => Credentials::load(&folder.0, Role::Manager).map(drop).unwrap_err(),
            "authority-key.pem" => folder.keys().renew(&Holder::Manager, VALIDITY).map(drop).unwrap_err(),
            _ => Credentials::load_node(&folder.0, "leaf0").map(drop).unwrap_err(),
        };
        assert!(matches!(error, Error::OpenKey { .. }), "{error}");
        assert!(error.to_string().contains(command) && error.to_string().contains(name), "{error}");
    }
    // Everybody of a cluster may be its user.
    open("user.key", 0o644);
    folder.load(Role::User);
}

#[test]
fn a_nodes_own_files_come_before_those_in_the_operators_folder() {
    let folder = Folder::with_credentials();
    folder.with_node("leaf0");
    folder.with_node("leaf1");
    let found = |name| Credentials::load_node(&folder.0, name).unwrap().certificate().holder.clone();
    assert_eq!((found("leaf0"), found("leaf1")), (Holder::node("leaf0").unwrap(), Holder::node("leaf1").unwrap()));
    // On a node's host its files lie in the folder itself, also where it is the operator's.
    for file in ["node.pem", "node.key"] {
        std::fs::copy(folder.0.join("nodes/leaf1").join(file), folder.0.join(file)).unwrap();
    }
    assert_eq!(found("leaf0"), Holder::node("leaf1").unwrap());
}
