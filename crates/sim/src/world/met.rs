//! What a run has met, so that one can count in how many runs it is.

use trib_proto::liveness::NODE_PATIENCE;
use trib_wire::WireFormat;

use super::World;
use super::actor::Pause;

impl World {
    /// Names of what this run has met.
    pub(super) fn met(&self) -> Vec<&'static str> {
        let options = &self.environment.options;
        let limits = &options.limits;
        let mut cables = self.environment.cables.iter();
        let (nodes, ranks) = self.pauses.split_at(self.environment.sites.processes());
        let is_longer = |pause: &Pause, than: trib_proto::Nanos| pause.end.since(pause.start) > than;
        let met = [
            ("a strict job", options.strict),
            ("nodes hurt", options.hurts > 0),
            ("three nodes hurt", options.hurts >= 3),
            ("a partition", options.partitions > 0),
            ("a new epoch", self.environment.checkers.has_moved()),
            ("a link cut one way", cables.any(|[down, up]| down.outages != up.outages)),
            ("a node stopped for longer than others wait", nodes.iter().flatten().any(|p| is_longer(p, NODE_PATIENCE))),
            (
                "a rank stopped for longer than others wait",
                ranks.iter().flatten().any(|p| is_longer(p, limits.dead_after)),
            ),
            ("ranks on hosts", options.hosts),
            ("a rank seen gone", self.environment.checkers.gone().0 > 0),
            ("a node that nobody needed any more", self.environment.checkers.gone().1 > 0),
            ("a lease rolled back", self.environment.rolled_back),
            ("a program that blocks", options.blocking),
            ("a contended lock", options.contention),
            ("a window over 16", limits.window > 16),
            ("a payload over 64 bytes", limits.payload > 64),
            ("a full quota", options.full_quota),
            (
                "a sum in blocks",
                self.work.operations.iter().any(|operation| operation.signature.format == WireFormat::Int8Blocks),
            ),
        ];
        met.into_iter().filter(|(_, is_met)| *is_met).map(|(name, _)| name).collect()
    }
}
