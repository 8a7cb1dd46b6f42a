//! Which rows are ours and which are a peer's, and how much faster than the best peer ours is, cell
//! by cell.

use crate::result::ResultRow;

/// One of our cells beside the best peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gain<'a> {
    pub(crate) ours: &'a ResultRow,
    /// The peer with the smallest median.
    pub(crate) peer: &'a ResultRow,
    /// Its time over ours: the median of the ratios inside the rounds. Zero if ours gave no figure.
    pub(crate) ratio: f64,
}

/// All of our cells that a peer has measured, too.
pub(crate) fn gains<'a>(rows: &[&'a ResultRow]) -> Vec<Gain<'a>> {
    let gain = |ours: &'a ResultRow| {
        let peers = rows.iter().copied().filter(|other| is_peer(other) && is_same_cell(other, ours));
        let timed = peers.filter_map(|peer| Some((peer, peer.time_us()?)));
        let (peer, _) = timed.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let of_peer = ours.over(peer, |round| Some(round.time_us(ours.bytes)));
        Some(Gain { ours, peer, ratio: of_peer.map_or(0.0, |of_peer| 1.0 / of_peer) })
    };
    rows.iter().copied().filter(|row| is_ours(row)).filter_map(gain).collect()
}

/// The geometric mean of the ratios, if there are any.
pub(crate) fn mean(gains: &[Gain<'_>]) -> Option<f64> {
    let sum: f64 = gains.iter().map(|gain| gain.ratio.ln()).sum();
    (!gains.is_empty()).then(|| (sum / gains.len() as f64).exp())
}

/// Whether the row is that of the native interface.
pub(crate) fn is_ours(row: &ResultRow) -> bool {
    row.system == "tributary"
}

/// Whether the row is neither ours nor the yardstick's.
pub(crate) fn is_peer(row: &ResultRow) -> bool {
    !row.system.starts_with("tributary") && row.system != "pingpong"
}

/// Whether two rows are of the same operation on as many ranks and hosts.
pub(crate) fn is_same_cell(a: &ResultRow, b: &ResultRow) -> bool {
    let (of_a, of_b) = ((a.hosts, a.ranks), (b.hosts, b.ranks));
    a.collective == b.collective && a.bytes == b.bytes && a.mode == b.mode && a.map == b.map && of_a == of_b
}

#[cfg(test)]
mod tests {
    use trib_wire::Collective::Allreduce;

    use super::*;
    use crate::cell::Cell;
    use crate::result::Round;
    use crate::result::tests::study;

    fn row(system: &str, bytes: u64, us: &[f64]) -> ResultRow {
        let cell = Cell::sustained(Allreduce, bytes);
        let mut row = ResultRow::new(&study(&[cell]), system, &cell);
        row.set_latencies(us);
        let round = |(number, us): (u32, &f64)| Round {
            number,
            latency_us: *us,
            call_median_us: *us,
            call_p99_us: *us,
            cpu_us: None,
        };
        row.each_round = (0..).zip(us).map(round).collect();
        row
    }

    #[test]
    fn the_best_peer_is_taken_and_a_cell_without_a_figure_of_ours_gains_nothing() {
        let rows = [
            row("tributary", 4096, &[10.0, 40.0]),
            row("mpich", 4096, &[20.0, 80.0]),
            row("gloo", 4096, &[90.0, 90.0]),
            row("tributary", 8192, &[]),
            row("mpich", 8192, &[20.0]),
            row("tributary", 16384, &[20.0]),
        ];
        let all = gains(&rows.iter().collect::<Vec<_>>());
        let told: Vec<(u64, &str, f64)> =
            all.iter().map(|gain| (gain.ours.bytes, gain.peer.system.as_str(), gain.ratio)).collect();
        assert_eq!(told, [(4096, "mpich", 2.0), (8192, "mpich", 0.0)]);
        assert_eq!((mean(&all), mean(&all[..1]), mean(&[])), (Some(0.0), Some(2.0), None));
    }
}
