//! Settings that both daemons have.

use super::{Default, Kind, Setting};

/// The address at which metrics are served.
pub(super) const fn metrics(variable: &'static str, example: &'static str) -> Setting {
    Setting {
        name: "metrics",
        option: "metrics",
        variable,
        kind: Kind::Address,
        default: Default::Off,
        unit: "",
        meaning: "Where to serve metrics for Prometheus, at /metrics over plain HTTP; port 0 takes a free one",
        example,
    }
}

/// What is logged. All tools have the same variable.
pub(super) const LOG: Setting = Setting {
    name: "log",
    option: "log",
    variable: "TRIB_LOG",
    kind: Kind::Filter,
    default: Default::Is("info"),
    unit: "",
    meaning: "What is logged",
    example: "warn",
};

/// The file to which a daemon logs besides stderr.
pub(super) const fn log_file(variable: &'static str, example: &'static str) -> Setting {
    Setting {
        name: "log_file",
        option: "log-file",
        variable,
        kind: Kind::File,
        default: Default::Off,
        unit: "",
        meaning: "A file to log to, besides stderr; it is opened again when it was moved away",
        example,
    }
}
