//! The results of many jobs together.

use std::time::Duration;

use serde_json::json;
use trib_client::Error;

use super::program::Run;

/// The results of one slot's jobs, or of all jobs.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    runs: Vec<Run>,
    failures: Vec<String>,
}

impl Outcome {
    /// Adds a job.
    pub(super) fn add(&mut self, number: u32, run: Result<Run, Error>) {
        match run {
            Ok(run) => self.runs.push(run),
            Err(error) => self.failures.push(format!("job {}: {error}", number + 1)),
        }
    }

    /// Adds another slot's jobs.
    pub(super) fn join(&mut self, other: Outcome) {
        self.runs.extend(other.runs);
        self.failures.extend(other.failures);
    }

    /// The jobs that failed, in words.
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// The results as text for people.
    pub(super) fn text(&self, took: Duration) -> String {
        let (join, group) = (self.quantiles(|run| run.joined_us), self.quantiles(|run| run.grouped_us));
        format!(
            "{} jobs in {:.2} s, {:.1} per second; failed: {}; tries repeated: {}\n\
             joining, ms:         median {:.2}, 99 % {:.2}, longest {:.2}\n\
             making groups, ms:   median {:.2}, 99 % {:.2}, longest {:.2}",
            self.runs.len(),
            took.as_secs_f64(),
            self.rate(took),
            self.failures.len(),
            self.retries(),
            join[0] / 1e3,
            join[1] / 1e3,
            join[2] / 1e3,
            group[0] / 1e3,
            group[1] / 1e3,
            group[2] / 1e3,
        )
    }

    /// The results as JSON for tools.
    pub(super) fn json(&self, took: Duration) -> String {
        let quantiles = |[median, p99, longest]: [f64; 3]| json!({ "median": median, "p99": p99, "max": longest });
        let report = json!({
            "jobs": self.runs.len(),
            "failed": self.failures.len(),
            "retries": self.retries(),
            "seconds": took.as_secs_f64(),
            "jobs_per_second": self.rate(took),
            "join_us": quantiles(self.quantiles(|run| run.joined_us)),
            "groups_us": quantiles(self.quantiles(|run| run.grouped_us)),
        });
        report.to_string()
    }

    fn rate(&self, took: Duration) -> f64 {
        self.runs.len() as f64 / took.as_secs_f64()
    }

    fn retries(&self) -> u32 {
        self.runs.iter().map(|run| run.retries).sum()
    }

    /// Median, 99th percentile and maximum; zeros without jobs.
    fn quantiles(&self, of: impl Fn(&Run) -> f64) -> [f64; 3] {
        let mut all: Vec<f64> = self.runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        let at = |part: f64| all.get((all.len() as f64 * part) as usize).or(all.last()).copied().unwrap_or(0.0);
        [at(0.5), at(0.99), at(1.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_failures_are_of_all_jobs() {
        let mut all = Outcome::default();
        for number in 0..200 {
            let mut one = Outcome::default();
            one.add(number, Ok(Run { joined_us: f64::from(number), grouped_us: 5.0, retries: number % 2 }));
            all.join(one);
        }
        all.add(200, Err(Error::Timeout("late".into())));
        assert_eq!(all.quantiles(|run| run.joined_us), [100.0, 198.0, 199.0]);
        assert_eq!((all.retries(), all.failures()), (100, &["job 201: late".to_owned()][..]));
        assert!(all.text(Duration::from_secs(2)).starts_with("200 jobs in 2.00 s, 100.0 per second; failed: 1;"));
        assert_eq!(Outcome::default().quantiles(|run| run.joined_us), [0.0; 3]);
    }
}
