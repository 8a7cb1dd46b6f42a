//! What the manager predicted for a job. The job's program chooses by it between the tree and its
//! MPI.

use std::fmt::Write as _;

use trib_compare::cell::human;
use trib_messages::prediction::{PredictedTime, PredictionStatus, Range};

use crate::commands::plan::duration;
use crate::table::Table;

/// A sentence for each collective, the times behind it, and the source of the constants.
pub(super) fn text(prediction: &PredictionStatus) -> String {
    let PredictionStatus { constants, assumed_rate, workers, whole, times } = prediction;
    let barriers = if whole.barrier { "barriers too" } else { "barriers not" };
    let mut text = format!(
        "\nThe tree is predicted to be as fast as the hosts alone, or faster, for allreduces {}, reduces {}, {barriers};\n\
         what else its program does stays with the MPI (`predicted_slower`; TRIB_MPI=force: the tree all the same).\n\n",
        sizes(&whole.allreduce),
        sizes(&whole.reduce)
    );
    let mut table = Table::new(["ALLREDUCE", "TREE", "HOSTS ALONE", "BY"]);
    for PredictedTime { bytes, tree, tree_ns, hosts, hosts_ns } in times {
        let seconds = |ns: u64| duration(ns as f64 * 1e-9);
        table.row([human(*bytes), format!("{} ({tree})", seconds(*tree_ns)), seconds(*hosts_ns), hosts.clone()]);
    }
    let plural = if *workers == 1 { "" } else { "s" };
    write!(text, "{table}Constants: {constants}; nodes with {workers} worker{plural}").expect(MEMORY);
    if let Some(rate) = assumed_rate {
        write!(text, "; links whose rate the topology does not tell are taken to have {rate}").expect(MEMORY);
    }
    text + "\n"
}

/// Ranges of sizes in words.
pub(in crate::commands) fn sizes(ranges: &[Range]) -> String {
    let one = |range: &Range| match (range.from, range.to) {
        (0, u64::MAX) => "of any size".to_owned(),
        (0, to) => format!("up to {}", human(to)),
        (from, u64::MAX) => format!("from {} on", human(from)),
        (from, to) => format!("from {} to {}", human(from), human(to)),
    };
    match ranges {
        [] => "of no size".to_owned(),
        some => some.iter().map(one).collect::<Vec<_>>().join(" and "),
    }
}

const MEMORY: &str = "writing to memory cannot fail";

#[cfg(test)]
mod tests {
    use trib_messages::prediction::ShapePrediction;

    use super::*;

    #[test]
    fn one_worker_is_one_and_several_are_several() {
        let said = |workers: u32| {
            let whole = ShapePrediction::default();
            let constants = "of a server".into();
            text(&PredictionStatus { constants, assumed_rate: None, workers, whole, times: Vec::new() })
        };
        assert!(said(1).ends_with("Constants: of a server; nodes with 1 worker\n"), "{}", said(1));
        assert!(said(2).ends_with("nodes with 2 workers\n"), "{}", said(2));
    }

    #[test]
    fn ranges_are_said_in_words() {
        let range = |from, to| Range { from, to };
        assert_eq!(sizes(&[]), "of no size");
        assert_eq!(sizes(&[range(0, u64::MAX)]), "of any size");
        assert_eq!(sizes(&[range(0, 8), range(1 << 20, u64::MAX)]), "up to 8 B and from 1 MiB on");
        assert_eq!(sizes(&[range(1024, 4096)]), "from 1 KiB to 4 KiB");
    }
}
