//! A node and a manager of two releases, as they meet while a fabric is upgraded.

use std::time::Duration;

use trib_control::{Error, Holder, KeyFolder, Listener, ManagerUrl, VALIDITY};
use trib_messages::hello::{Hello, Role};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_node::{Node, Options};

#[test]
fn a_node_waits_for_a_manager_of_its_own_version() {
    let folder = std::env::temp_dir().join(format!("trib-upgrade-{}", std::process::id()));
    let keys = KeyFolder::at(&folder);
    keys.create(VALIDITY).unwrap();
    keys.add(&Holder::node("leaf0").unwrap(), VALIDITY).unwrap();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), &folder).unwrap();
    let manager = ManagerUrl::new("127.0.0.1", listener.address().port(), &folder);
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let node = Node::start(Options { name: "leaf0".into(), manager, listen, workers: 1, memory: None }).unwrap();

    let version = trib_wire::VERSION - 1;
    let before = Hello { version, software: "the release before".into(), role: Role::Manager };
    for _ in 0..2 {
        let met = listener.accept().unwrap().establish_as(&before, LIMIT);
        assert!(matches!(met, Err(Error::VersionMismatch { .. } | Error::Closed { .. })), "{:?}", met.err());
        assert!(!node.wait_registered(Duration::from_millis(300)).unwrap(), "it has not given up");
    }

    let channel = listener.accept().unwrap().establish(LIMIT).unwrap();
    assert!(
        matches!(channel.recv::<NodeMessage>(Some(LIMIT)).unwrap(), NodeMessage::Register { name, .. } if name == "leaf0")
    );
    channel.send(&ManagerMessage::Registered).unwrap();
    assert!(node.wait_registered(LIMIT).unwrap());
    node.shutdown();
    std::fs::remove_dir_all(&folder).unwrap();
}

const LIMIT: Duration = Duration::from_secs(20);
