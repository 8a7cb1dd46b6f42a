//! A fabric on loopback with all its parts in this process.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use trib_control::{Holder, KeyFolder, ManagerUrl, VALIDITY};
use trib_manager::{Manager, Options};
use trib_node::Node;

/// A manager and its nodes.
pub struct Fabric {
    folder: PathBuf,
    nodes: Vec<Node>,
    manager: Option<Manager>,
    /// The manager's address, for ranks.
    pub url: String,
}

impl Fabric {
    /// Starts the manager of a topology and these of its nodes, each with one worker.
    pub fn up(name: &str, topology_text: &str, nodes: &[&str]) -> Fabric {
        let folder = std::env::temp_dir().join(format!("trib-{name}-{}", std::process::id()));
        let keys = KeyFolder::at(&folder);
        keys.create(VALIDITY).unwrap();
        nodes.iter().for_each(|name| drop(keys.add(&Holder::node(name).unwrap(), VALIDITY).unwrap()));
        let topology = folder.join("topology.toml");
        fs::write(&topology, topology_text).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let options =
            Options { listen, topology, credentials: folder.clone(), state: None, tenants: None, constants: None };
        let manager = Manager::bind(&options).unwrap();
        let url = ManagerUrl::new("127.0.0.1", manager.address().port(), &folder);
        let start = |name: &&str| {
            let options = trib_node::Options {
                name: (*name).into(),
                manager: url.clone(),
                listen: vec![listen],
                workers: 1,
                memory: None,
            };
            let node = Node::start(options).unwrap();
            assert!(node.wait_registered(Duration::from_secs(20)).unwrap(), "{name} is not taken in");
            node
        };
        let nodes = nodes.iter().map(start).collect();
        Fabric { folder, nodes, manager: Some(manager), url: url.to_string() }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.nodes.clear();
        self.manager = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}
