//! One page in the text exposition format.
//!
//! ```text
//!   # HELP tributary_jobs Jobs that are admitted now.
//!   # TYPE tributary_jobs gauge
//!   tributary_jobs 3
//! ```

use std::fmt::{Display, Write as _};

use trib_control::Histogram;

use super::table::{Metric, Type};

/// The page as it grows.
#[derive(Default, Debug)]
pub(super) struct Page {
    text: String,
}

/// The samples of one metric.
pub(super) struct Samples<'a> {
    page: &'a mut Page,
    metric: &'static Metric,
}

impl Page {
    /// Begins a metric; all its samples follow.
    pub(super) fn metric(&mut self, name: &str) -> Samples<'_> {
        let metric = Metric::named(name);
        let meaning = metric.meaning.replace('\\', r"\\");
        self.write(format_args!("# HELP {name} {meaning}.\n# TYPE {name} {}\n", metric.kind.word()));
        Samples { page: self, metric }
    }

    /// The text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn write(&mut self, what: std::fmt::Arguments<'_>) {
        self.text.write_fmt(what).expect("writing to memory cannot fail");
    }
}

impl Samples<'_> {
    /// One sample, with a value for every label.
    pub(super) fn sample(&mut self, labels: &[&str], value: impl Display) -> &mut Self {
        debug_assert!(self.metric.kind != Type::Histogram);
        let labels = self.labels(labels, None);
        self.page.write(format_args!("{}{labels} {value}\n", self.metric.name));
        self
    }

    /// A histogram, with a value for every label.
    pub(super) fn histogram(&mut self, labels: &[&str], histogram: &Histogram) -> &mut Self {
        debug_assert!(self.metric.kind == Type::Histogram);
        let name = self.metric.name;
        let mut sum = 0;
        for (bound, count) in histogram.buckets() {
            sum += count;
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
            let labels = self.labels(labels, Some(&bound));
            self.page.write(format_args!("{name}_bucket{labels} {sum}\n"));
        }
        let labels = self.labels(labels, None);
        self.page.write(format_args!(
            "{name}_sum{labels} {}\n{name}_count{labels} {sum}\n",
            histogram.total().as_secs_f64()
        ));
        self
    }

    fn labels(&self, values: &[&str], bound: Option<&str>) -> String {
        debug_assert_eq!(self.metric.labels.len(), values.len(), "{}", self.metric.name);
        let pairs = self.metric.labels.iter().copied().zip(values.iter().copied());
        let pairs: Vec<String> = pairs
            .chain(bound.map(|bound| ("le", bound)))
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn samples_stand_below_their_metric_with_their_labels_escaped() {
        let mut page = Page::default();
        page.metric("tributary_jobs").sample(&[], 3);
        page.metric("tributary_job_ranks").sample(&["7", "a\"b\\c\nd", "u"], 1.5);
        assert_eq!(
            page.into_text(),
            "# HELP tributary_jobs Jobs that are admitted now.\n\
             # TYPE tributary_jobs gauge\n\
             tributary_jobs 3\n\
             # HELP tributary_job_ranks Ranks of an admitted job.\n\
             # TYPE tributary_job_ranks gauge\n\
             tributary_job_ranks{job_id=\"7\",program=\"a\\\"b\\\\c\\nd\",user=\"u\"} 1.5\n"
        );
    }

    #[test]
    fn a_histogram_counts_upwards_to_all() {
        let mut histogram = Histogram::default();
        for micros in [300, 3_000, 30_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let mut page = Page::default();
        page.metric("tributary_admission_seconds").histogram(&["admitted"], &histogram);
        let text = page.into_text();
        for line in [
            "tributary_admission_seconds_bucket{result=\"admitted\",le=\"0.000524288\"} 1\n",
            "tributary_admission_seconds_bucket{result=\"admitted\",le=\"0.004194304\"} 2\n",
            "tributary_admission_seconds_bucket{result=\"admitted\",le=\"+Inf\"} 3\n",
            "tributary_admission_seconds_sum{result=\"admitted\"} 30.0033\n",
            "tributary_admission_seconds_count{result=\"admitted\"} 3\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
