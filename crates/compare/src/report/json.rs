//! The comparison as one JSON object for programs.

use serde_json::{Value, json};

use super::Comparison;

/// `fabric`: what it ran on; `results`: one row per scenario, system and cell; `targets`: what was
/// required.
pub fn json(comparison: &Comparison) -> Value {
    let Comparison { rows, targets, machine, command, spent, seconds, .. } = comparison;
    let mut fabrics: Vec<Value> = Vec::new();
    for row in rows {
        let fabric =
            json!({ "scenario": row.scenario, "hosts": row.hosts, "rate_mbit": row.rate_mbit, "map": row.map });
        if !fabrics.contains(&fabric) {
            fabrics.push(fabric);
        }
    }
    json!({
        "fabric": {
            "processor": machine.processor,
            "cores": machine.cores,
            "kernel": machine.kernel,
            "date": machine.date,
            "busy_before": machine.busy,
            "command": command,
            "seconds": seconds,
            "waited_s": spent.waited.as_secs_f64(),
            "repeated": spent.repeated,
            "scenarios": fabrics,
        },
        "results": rows,
        "targets": targets,
    })
}

#[cfg(test)]
mod tests {
    use trib_wire::Collective;

    use super::*;
    use crate::cell::Cell;
    use crate::result::ResultRow;
    use crate::result::tests::study;

    #[test]
    fn rows_have_what_programs_look_for() {
        let cell = Cell::sustained(Collective::Allreduce, 1 << 20);
        let mut row = ResultRow::new(&study(&[cell]), "gloo", &cell);
        row.set_latencies(&[100_000.0, 110_000.0, 120_000.0]);
        let text = json(&Comparison { rows: vec![row], ..Comparison::default() });
        let row = &text["results"][0];
        for name in [
            "system",
            "collective",
            "bytes",
            "ranks",
            "hosts",
            "latency_us",
            "mbit_s",
            "share_of_link",
            "spread",
            "slowdown",
            "status",
        ] {
            assert!(!row[name].is_null(), "{name}: {row}");
        }
        assert_eq!(text["fabric"]["scenarios"].as_array().map(Vec::len), Some(1));
    }
}
