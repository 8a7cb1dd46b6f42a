//! Ping-pong over one TCP connection, between the two hosts that are farthest apart.

use std::process::Command;

use super::{Job, Programs};
use crate::network::Network;

pub(super) fn commands(network: &dyn Network, programs: &Programs, job: &Job) -> Vec<Command> {
    let last = format!("h{}", network.hosts() - 1);
    let mut ping = network.command("h0", &programs.trib);
    ping.args(["bench", "pingpong", "--connect", &format!("{last}:{PORT}")]).args(&job.arguments);
    let mut pong = network.command(&last, &programs.trib);
    pong.args(["bench", "pingpong", "--listen", &format!("0.0.0.0:{PORT}")]);
    vec![ping, pong]
}

const PORT: u16 = 29_600;
