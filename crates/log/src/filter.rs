//! Which events are let through: the language of `TRIB_LOG`.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// A filter that cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log level `{filter}` makes no sense: {cause}; write error, warn, info, debug, trace, or crate=level,...")]
pub struct FilterError {
    /// The text.
    pub filter: String,
    /// What is wrong with it.
    pub cause: String,
}

/// What a filter lets through: a level, or `crate=level,...`, where crates that it does not name
/// log at `info`. The parser of `Targets` would silence these, and take a bare name as `trace`.
///
/// # Errors
/// The filter makes no sense.
pub fn filter(text: &str) -> Result<Targets, FilterError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let mut targets = Targets::new().with_default(LevelFilter::INFO);
    for part in parts {
        let fault = |cause: String| FilterError { filter: text.to_owned(), cause };
        let (target, level) = part.split_once('=').unwrap_or(("", part));
        let level: LevelFilter = level.parse().map_err(|_| fault(format!("`{level}` is no level")))?;
        targets = match target {
            "" => targets.with_default(level),
            name => targets.with_target(name, level),
        };
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_is_a_level_and_exceptions() {
        let all = filter("").unwrap();
        assert!(all.would_enable("trib_node", &Level::INFO) && !all.would_enable("trib_node", &Level::DEBUG));
        let some = filter("warn, trib_node=debug").unwrap();
        assert!(some.would_enable("trib_node::worker", &Level::DEBUG) && !some.would_enable("rustls", &Level::INFO));
        let only = filter("trib_node=off").unwrap();
        assert!(!only.would_enable("trib_node", &Level::ERROR) && only.would_enable("rustls", &Level::INFO));
        let error = filter("info,trib_node").unwrap_err().to_string();
        assert!(error.contains("`trib_node` is no level") && error.contains("crate=level"), "{error}");
    }
}
