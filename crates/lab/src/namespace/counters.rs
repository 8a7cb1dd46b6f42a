//! What an interface has sent and received, counted by the kernel.

use std::ops::Sub;

use serde::{Deserialize, Serialize};

use super::error::LabError;

/// Totals of one host's link since it exists, as the host sees them: link-layer frames, acknowledgements included.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Counters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
}

impl Counters {
    /// Reads the answer of `ip -j -s link show`.
    pub(super) fn parse(command: &str, answer: &str) -> Result<Self, LabError> {
        let unreadable = |reason: String| LabError::Answer { command: command.to_owned(), reason };
        let links: Vec<Link> = serde_json::from_str(answer).map_err(|error| unreadable(error.to_string()))?;
        let link = links.first().ok_or_else(|| unreadable("it lists no interface".to_owned()))?;
        let Statistics { rx, tx } = &link.stats64;
        Ok(Self { rx_bytes: rx.bytes, rx_packets: rx.packets, tx_bytes: tx.bytes, tx_packets: tx.packets })
    }
}

impl Sub for Counters {
    type Output = Self;

    /// What was counted between an earlier reading and this one.
    fn sub(self, earlier: Self) -> Self {
        Self {
            rx_bytes: self.rx_bytes - earlier.rx_bytes,
            rx_packets: self.rx_packets - earlier.rx_packets,
            tx_bytes: self.tx_bytes - earlier.tx_bytes,
            tx_packets: self.tx_packets - earlier.tx_packets,
        }
    }
}

#[derive(Deserialize)]
struct Link {
    stats64: Statistics,
}

#[derive(Deserialize)]
struct Statistics {
    rx: Direction,
    tx: Direction,
}

#[derive(Deserialize)]
struct Direction {
    bytes: u64,
    packets: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"[{"ifname":"eth0","mtu":1500,"stats64":{"rx":{"bytes":270,"packets":3,"errors":0},"tx":{"bytes":90,"packets":1,"errors":0}}}]"#;

    #[test]
    fn reads_what_ip_prints() {
        let counters = Counters::parse("ip", ANSWER).unwrap();
        assert_eq!(counters, Counters { rx_bytes: 270, rx_packets: 3, tx_bytes: 90, tx_packets: 1 });
        assert_eq!(counters - counters, Counters::default());
    }

    #[test]
    fn another_answer_is_an_error_that_names_the_command() {
        for answer in ["", "[]", "{}", "[{\"ifname\":\"eth0\"}]"] {
            let error = Counters::parse("ip -s link", answer).unwrap_err().to_string();
            assert!(error.contains("ip -s link"), "{error}");
        }
    }
}
