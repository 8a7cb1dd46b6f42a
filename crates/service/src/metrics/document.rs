//! The table of metrics in words.

use std::fmt::Write as _;

use super::table::METRICS;
use crate::settings::Daemon;

/// Markdown tables: of metrics of both daemons, of the manager's, and of a node's.
fn document() -> String {
    let mut text = String::new();
    for (title, daemon) in
        [("Both daemons", None), ("The manager", Some(Daemon::Manager)), ("A node", Some(Daemon::Node))]
    {
        writeln!(text, "## {title}\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |")
            .expect("writing to memory cannot fail");
        for metric in METRICS.iter().filter(|metric| metric.daemon == daemon) {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(", ") };
            writeln!(text, "| `{}` | {} | {labels} | {} |", metric.name, metric.kind.word(), metric.meaning)
                .expect("writing to memory cannot fail");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn file(name: &str) -> String {
        let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn the_document_shows_the_table_as_it_is() {
        let tables = document();
        assert!(file("docs/metrics.md").contains(tables.trim_end()), "docs/metrics.md should say:\n\n{tables}");
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_there_are() {
        let text = file("deploy/grafana/tributary.json");
        let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(dashboard["panels"].as_array().unwrap().len() >= 8);
        let mut asked = 0;
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| is_metric(word)) {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
            assert!(METRICS.iter().any(|metric| metric.name == base || metric.name == word), "{word}");
            asked += 1;
        }
        assert!(asked >= 10, "{asked}");
    }

    fn is_metric(word: &str) -> bool {
        word.starts_with("tributary_") || word.starts_with("process_")
    }
}
