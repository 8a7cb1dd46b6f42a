//! The options that name holders of certificates.

use clap::Args;
use trib_control::Holder;
use trib_topology::hostlist;

use crate::failure::Failure;

/// Whose certificates are meant.
#[derive(Args, Debug)]
pub(super) struct Whose {
    /// Those of nodes: a name, or a list like leaf[0-15],spine0; may be repeated
    #[arg(long, value_name = "NAMES")]
    node: Vec<String>,
    /// Those of a tenant; may be repeated
    #[arg(long, value_name = "NAME")]
    tenant: Vec<String>,
    /// That of the fabric's users
    #[arg(long)]
    users: bool,
}

impl Whose {
    /// The holders, in the order of the options.
    pub(super) fn holders(&self) -> Result<Vec<Holder>, Failure> {
        let mut holders = nodes(&self.node)?;
        for name in &self.tenant {
            holders.push(Holder::tenant(name)?);
        }
        holders.extend(self.users.then_some(Holder::Users));
        Ok(holders)
    }
}

/// The nodes in these lists.
pub(super) fn nodes(lists: &[String]) -> Result<Vec<Holder>, Failure> {
    let mut nodes = Vec::new();
    for list in lists {
        let names = hostlist::expand(list).map_err(|error| Failure::Usage(format!("--node {list}: {error}")))?;
        for name in names {
            nodes.push(Holder::node(&name)?);
        }
    }
    Ok(nodes)
}
