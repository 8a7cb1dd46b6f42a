//! How long fragments and segments stay at a node.

use std::ops::AddAssign;

use trib_control::Histogram;
use trib_proto::node::Stage;
use trib_proto::{Nanos, Path};

/// Stays by path and stage. Times are those of the worker's turns: all that comes in one turn has
/// the same time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Latencies {
    /// Stays of fragments, which come as datagrams.
    pub datagrams: Stages,
    /// Stays of segments, which come over streams.
    pub streams: Stages,
}

/// Stays on one path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stages {
    /// From the first contribution to the fold: how far the children are apart.
    pub gather: Histogram,
    /// From the fold to the result from above.
    pub answer: Histogram,
}

impl Latencies {
    #[inline]
    pub(crate) fn took(&mut self, path: Path, stage: Stage, span: Nanos) {
        let stages = match path {
            Path::Datagram => &mut self.datagrams,
            Path::Stream => &mut self.streams,
        };
        let histogram = match stage {
            Stage::Gather => &mut stages.gather,
            Stage::Answer => &mut stages.answer,
        };
        histogram.observe_ns(span.0);
    }
}

impl AddAssign<&Latencies> for Latencies {
    fn add_assign(&mut self, more: &Latencies) {
        for (sum, more) in [(&mut self.datagrams, &more.datagrams), (&mut self.streams, &more.streams)] {
            sum.gather.add(&more.gather);
            sum.answer.add(&more.answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_of_every_path_is_counted_apart_and_sums_keep_them_apart() {
        let mut latencies = Latencies::default();
        latencies.took(Path::Datagram, Stage::Gather, Nanos(7));
        for _ in 0..2 {
            latencies.took(Path::Datagram, Stage::Answer, Nanos(8));
        }
        latencies.took(Path::Stream, Stage::Gather, Nanos::from_millis(1));
        let mut sum = latencies.clone();
        sum += &latencies;
        let counts =
            |of: &Latencies| [&of.datagrams, &of.streams].map(|stages| (stages.gather.count(), stages.answer.count()));
        assert_eq!((counts(&latencies), counts(&sum)), ([(1, 2), (1, 0)], [(2, 4), (2, 0)]));
        assert_eq!(sum.streams.gather.total().as_millis(), 2);
    }
}
