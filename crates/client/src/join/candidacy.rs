//! This rank as a candidate for nodes of its own job: it listens before it asks to join, and serves
//! if the manager has chosen it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use trib_control::ManagerUrl;
use trib_messages::job::JobTicket;
use trib_messages::processes::Process;
use trib_messages::request::ServeRequest;
use trib_node::{Deputy, Serving, Told};

use super::manager;
use crate::engine::SignalMask;
use crate::params::Params;

/// A rank that listens.
pub(super) struct Candidacy {
    deputy: Deputy,
    address: SocketAddr,
    url: ManagerUrl,
}

impl Candidacy {
    /// Listens, where that is possible: a rank that knows no manager does not know by which of its
    /// addresses others reach it, and is no candidate.
    pub(super) fn open(params: &Params) -> Option<Candidacy> {
        let url = manager::url(params).ok()?;
        let ip = own_address(&url.address())?;
        let any: IpAddr = match ip {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut deputy =
            Deputy::listen(any).inspect_err(|cause| tracing::info!(%cause, "this rank hosts no nodes")).ok()?;
        let address = SocketAddr::new(ip, deputy.port());
        if Params::shares_memory().unwrap_or(false) {
            deputy.share_at(address);
        }
        Some(Candidacy { address, deputy, url })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves as the ticket says. Without a part for this rank nobody will call it.
    pub(super) fn serve(self, params: &Params, ticket: &JobTicket) -> Option<Serving> {
        let rank = params.rank;
        let own = ticket.deputies.iter().filter(|deputy| deputy.rank == rank);
        let grants: Vec<_> = own.map(|deputy| deputy.grant.clone()).collect();
        if grants.is_empty() {
            return None;
        }
        let process = Process { host: params.host_name().ok()?, pid: std::process::id() };
        let (job, pass, stream) = (ticket.job, ticket.pass.clone(), self.address);
        let told = Told { url: self.url, request: ServeRequest { job, pass, rank, process, stream } };
        // Signals are for the application's threads.
        let _mask = SignalMask::block_all();
        let serving = self.deputy.serve(grants, told);
        serving.inspect_err(|cause| tracing::warn!(%cause, "this rank cannot host nodes of its job")).ok()
    }
}

/// The address from which this host reaches the manager. Nothing is sent for that.
fn own_address(manager: &str) -> Option<IpAddr> {
    let target = manager.to_socket_addrs().ok()?.next()?;
    let any: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
