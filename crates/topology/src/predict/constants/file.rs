//! Constants as a TOML file.
//!
//! ```toml
//! [about]
//! machine = "AMD EPYC 7763, 64 cores"
//! kernel = "6.1.0"
//! date = "2026-11-22"
//! how = "loopback, 5 rounds"
//!
//! [constants]                      # those that are not here have the default
//! node_byte_ns = { value = 0.19, spread = 0.04, how = "..." }
//! workers = 16                     # or a number alone
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Constant, Constants, Model};

/// What is wrong with constants.
#[derive(Debug, thiserror::Error)]
pub enum ConstantsError {
    /// The file cannot be read.
    #[error("cannot read the constants in {0}: {1}")]
    Unreadable(String, std::io::Error),
    /// The file is no TOML, or has an unknown field.
    #[error("{0}: {1}; `trib plan --calibrate` writes such a file")]
    Syntax(String, String),
    /// No constant has this name.
    #[error("there is no constant `{0}`; there are {names}", names = names())]
    Unknown(String),
    /// A value is not possible.
    #[error("{0} = {1} makes no sense: give a number from {2} to {3}")]
    Range(&'static str, f64, f64, f64),
    /// A value is not in the form in which it has to be written.
    #[error("`{0}` is not {1}")]
    Form(String, String),
    /// An error in this file.
    #[error("{0}: {1}")]
    In(String, Box<ConstantsError>),
}

fn names() -> String {
    super::CONSTANTS.iter().map(|constant| constant.name).collect::<Vec<_>>().join(", ")
}

/// Where and when the constants were measured.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The processor, and the number of its cores.
    #[serde(default)]
    pub machine: String,
    /// The release of the kernel.
    #[serde(default)]
    pub kernel: String,
    /// The date as year-month-day.
    #[serde(default)]
    pub date: String,
    /// Over what it was measured, and how often.
    #[serde(default)]
    pub how: String,
}

/// One constant as it was measured, in its own unit.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The constant that was measured.
    pub constant: &'static Constant,
    /// The median.
    pub value: f64,
    /// The largest deviation from it, as a share of it.
    pub spread: f64,
    /// What was measured for it.
    pub how: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    about: About,
    #[serde(default)]
    constants: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, or { value = NUMBER, spread = SHARE, how = TEXT }")]
enum Value {
    Number(f64),
    Whole(i64),
    Measured(Full),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    value: f64,
    #[serde(default, rename = "spread")]
    _spread: f64,
    #[serde(default, rename = "how")]
    _how: String,
}

impl Constants {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Constants, ConstantsError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ConstantsError::Unreadable(name.clone(), error))?;
        Constants::parse(&text, &name)
    }

    /// Reads the text of a file. `name` stands in errors, and is the constants' source.
    pub fn parse(text: &str, name: &str) -> Result<Constants, ConstantsError> {
        let syntax =
            |error: toml::de::Error| ConstantsError::Syntax(name.into(), error.to_string().trim().replace('\n', " "));
        let File { about, constants } = toml::from_str(text).map_err(syntax)?;
        let mut model = Model::server();
        for (constant, value) in &constants {
            let value = match value {
                Value::Number(value) | Value::Measured(Full { value, .. }) => *value,
                Value::Whole(value) => *value as f64,
            };
            let taken = Constant::named(constant).and_then(|constant| constant.take(&mut model, value));
            taken.map_err(|error| ConstantsError::In(name.into(), Box::new(error)))?;
        }
        let About { machine, kernel, date, .. } = about;
        let mut source = name.to_owned();
        if !machine.is_empty() {
            write!(source, ", measured on {machine}").expect(MEMORY);
        }
        for (what, word) in [("Linux", kernel), ("", date)] {
            if !word.is_empty() {
                write!(source, ", {what}{}{word}", if what.is_empty() { "" } else { " " }).expect(MEMORY);
            }
        }
        let rest: Vec<&str> = super::CONSTANTS
            .iter()
            .map(|constant| constant.name)
            .filter(|constant| !constants.contains_key(*constant))
            .collect();
        if !rest.is_empty() {
            write!(source, "; defaults for servers: {}", rest.join(", ")).expect(MEMORY);
        }
        Ok(Constants { model, source })
    }
}

/// The text of a file.
pub fn written(about: &About, measured: &[Measured]) -> String {
    let mut text = "# Constants of the model by which `trib plan` and the manager predict: docs/topology.md.\n\
                    # `spread` is the largest deviation of a round from the median, as a share of it.\n\n[about]\n"
        .to_owned();
    let About { machine, kernel, date, how } = about;
    for (name, value) in [("machine", machine), ("kernel", kernel), ("date", date), ("how", how)] {
        writeln!(text, "{name} = {}", toml::Value::String(value.clone())).expect(MEMORY);
    }
    text.push_str("\n[constants]\n");
    for Measured { constant, value, spread, how } in measured {
        let how = toml::Value::String(how.clone());
        let Constant { name, .. } = constant;
        writeln!(text, "{name} = {{ value = {value:.4}, spread = {spread:.3}, how = {how} }}").expect(MEMORY);
    }
    text
}

/// The file of a laboratory's manager.
pub fn laboratory_file() -> String {
    let about = About {
        machine: "the two cores of docs/performance.md".into(),
        kernel: String::new(),
        date: "2026-11-22".into(),
        how: "a whole laboratory on one machine: hosts and nodes share its cores".into(),
    };
    let how = "the comparison in docs/performance.md".to_owned();
    let one =
        |constant: &'static Constant| Measured { constant, value: constant.laboratory, spread: 0.0, how: how.clone() };
    written(&about, &super::CONSTANTS.iter().map(one).collect::<Vec<_>>())
}

const MEMORY: &str = "writing to memory cannot fail";
