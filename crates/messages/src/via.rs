//! By which transport an edge goes, as the topology says of the link from its lower end upwards.

/// A transport between processes that share no memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// Streams over TCP, and datagrams over UDP.
    #[default]
    Tcp,
    /// Both over UCX.
    Ucx,
}

impl Via {
    /// Whether it is the one that edges take of which nothing is said.
    pub fn is_tcp(&self) -> bool {
        *self == Via::Tcp
    }
}
