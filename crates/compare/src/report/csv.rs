//! All rows as CSV.

use crate::result::ResultRow;

/// A heading and one line per row; what was not measured is empty.
pub(super) fn csv(rows: &[ResultRow]) -> String {
    let mut text = HEAD.to_owned();
    for row in rows {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
        let fields = [
            row.scenario.clone(),
            row.system.clone(),
            row.collective.clone(),
            row.bytes.to_string(),
            row.mode.name().to_owned(),
            row.map.to_owned(),
            row.ranks.to_string(),
            row.hosts.to_string(),
            row.rate_mbit.to_string(),
            row.rounds.to_string(),
            number(row.latency_us),
            number(row.mbit_s),
            number(row.share_of_link),
            number(Some(row.spread)),
            number(Some(row.slowdown)),
            number(row.call_median_us),
            number(row.call_p99_us),
            number(row.cpu_us),
            number(row.context_switches),
            number(row.system_calls),
            row.status.clone(),
        ];
        let line: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        text.push_str(&line.join(","));
        text.push('\n');
    }
    text
}

/// A field as CSV wants it: quoted if it has a comma, a quote or a line's end.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

const HEAD: &str = "scenario,system,collective,bytes,mode,map,ranks,hosts,rate_mbit,rounds,latency_us,mbit_s,share_of_link,\
                    spread,slowdown,call_median_us,call_p99_us,cpu_us,context_switches,system_calls,status\n";

#[cfg(test)]
mod tests {
    use trib_wire::Collective;

    use super::*;
    use crate::cell::Cell;
    use crate::result::tests::study;

    #[test]
    fn every_line_has_as_many_fields_as_the_head() {
        let cell = Cell::sustained(Collective::Barrier, 0);
        let mut row = ResultRow::new(&study(&[cell]), "mpich", &cell);
        row.status = "failed: no \"one\"".to_owned();
        let text = csv(&[row]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
        assert!(lines[1].ends_with("\"failed: no \"\"one\"\"\""));
    }
}
