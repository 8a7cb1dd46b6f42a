//! The findings, and the report of them.

use std::fmt;

use serde_json::json;

use crate::table::Table;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Good,
    Warning,
    Failed,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Warning => "warning",
            State::Failed => "FAILED",
        }
    }
}

/// One finding.
#[derive(Debug)]
struct Check {
    name: String,
    state: State,
    found: String,
    remedy: Option<String>,
}

/// All findings, in the order of the checks.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: Vec<Check>,
}

impl Report {
    /// Adds a finding that is as it should be.
    pub(super) fn good(&mut self, name: impl Into<String>, found: impl fmt::Display) {
        self.add(name, State::Good, found, None);
    }

    /// Adds a finding with which jobs run, but not as well as they could, or not for long.
    pub(super) fn warn(&mut self, name: impl Into<String>, found: impl fmt::Display, remedy: impl Into<String>) {
        self.add(name, State::Warning, found, Some(remedy.into()));
    }

    /// Adds a finding with which no job of this host runs, or none that needs this node.
    pub(super) fn fail(&mut self, name: impl Into<String>, found: impl fmt::Display, remedy: Option<String>) {
        self.add(name, State::Failed, found, remedy);
    }

    fn add(&mut self, name: impl Into<String>, state: State, found: impl fmt::Display, remedy: Option<String>) {
        self.checks.push(Check { name: name.into(), state, found: found.to_string(), remedy });
    }

    /// Whether nothing failed.
    pub(super) fn is_sound(&self) -> bool {
        self.checks.iter().all(|check| check.state != State::Failed)
    }

    /// The report as JSON for tools.
    pub(super) fn json(&self) -> String {
        let checks = self.checks.iter().map(|Check { name, state, found, remedy }| {
            json!({ "check": name, "state": state.word().to_lowercase(), "found": found, "remedy": remedy })
        });
        let report = json!({ "sound": self.is_sound(), "checks": checks.collect::<Vec<_>>() });
        format!("{report:#}\n")
    }
}

/// For people: a table, and below it what to do.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["CHECK", "STATE", "FOUND"]);
        for check in &self.checks {
            table.row([check.name.as_str(), check.state.word(), &check.found]);
        }
        write!(f, "{table}")?;
        let remedies = || self.checks.iter().filter_map(|check| Some((&check.name, check.remedy.as_ref()?)));
        if remedies().next().is_some() {
            writeln!(f)?;
        }
        for (name, remedy) in remedies() {
            writeln!(f, "{name}: {remedy}")?;
        }
        let count = |state| self.checks.iter().filter(|check| check.state == state).count();
        match (count(State::Failed), count(State::Warning)) {
            (0, 0) => writeln!(f, "\nNothing stands in the way of a job."),
            (0, warnings) => writeln!(f, "\nNothing stands in the way of a job; warnings: {warnings}."),
            (failed, _) => writeln!(f, "\nChecks that failed: {failed}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_leaves_a_set_up_sound_and_a_failure_does_not() {
        let mut report = Report::default();
        report.good("manager", "answers");
        assert!(
            report.is_sound()
                && report.to_string().ends_with("ok     answers\n\nNothing stands in the way of a job.\n")
        );
        report.warn("clock", "2 s apart", "run chrony");
        assert!(report.is_sound() && report.to_string().contains("\nclock: run chrony"));
        report.fail("node leaf0", "away", Some("start it".into()));
        assert!(!report.is_sound());
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!((&json["sound"], &json["checks"][2]["state"]), (&json!(false), &json!("failed")));
        assert_eq!(json["checks"][0]["remedy"], serde_json::Value::Null);
    }
}
