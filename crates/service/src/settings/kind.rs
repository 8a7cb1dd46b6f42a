//! What a setting's value may be.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use trib_control::ManagerUrl;
use trib_messages::node::PORTS_MAX;

/// The kind of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A name, which is not empty.
    Name,
    /// A file.
    File,
    /// A folder.
    Folder,
    /// The address at which a daemon listens.
    Address,
    /// One or several addresses at which a daemon listens.
    Addresses,
    /// The manager's address.
    Manager,
    /// What is logged.
    Filter,
    /// A whole number within bounds.
    Integer {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
}

/// A value of one of these kinds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A name, or what is logged.
    Text(String),
    /// A file or a folder.
    Path(PathBuf),
    /// The address at which a daemon listens.
    Address(SocketAddr),
    /// The addresses at which a daemon listens, at least one.
    Addresses(Vec<SocketAddr>),
    /// The manager's address.
    Manager(ManagerUrl),
    /// A number.
    Integer(u64),
}

impl Kind {
    /// What stands for a value in a line of usage.
    pub const fn placeholder(self) -> &'static str {
        match self {
            Kind::Name => "NAME",
            Kind::File => "FILE",
            Kind::Folder => "DIR",
            Kind::Address => "IP:PORT",
            Kind::Addresses => "IP:PORT,...",
            Kind::Manager => "URL",
            Kind::Filter => "LEVEL",
            Kind::Integer { .. } => "N",
        }
    }

    /// What a value looks like, for documents and remedies.
    pub fn form(self) -> String {
        match self {
            Kind::Name => "a name".to_owned(),
            Kind::File => "the path of a file".to_owned(),
            Kind::Folder => "the path of a folder".to_owned(),
            Kind::Address => "IP:PORT, or [IPv6]:PORT".to_owned(),
            Kind::Addresses => format!("IP:PORT, or [IPv6]:PORT; up to {PORTS_MAX} with commas between"),
            Kind::Manager => "tls://HOST:PORT?credentials=DIR".to_owned(),
            Kind::Filter => "error, warn, info, debug, trace, or crate=level,...".to_owned(),
            Kind::Integer { least, most } => format!("a whole number, {least} to {most}"),
        }
    }

    /// Whether a file writes it in quotes.
    pub const fn is_quoted(self) -> bool {
        !matches!(self, Kind::Integer { .. })
    }

    /// Reads a value. The error says what is wrong with it.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        if text.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        match self {
            Kind::Name => Ok(Value::Text(text.to_owned())),
            Kind::File | Kind::Folder => Ok(Value::Path(PathBuf::from(text))),
            Kind::Address => address(text).map(Value::Address),
            Kind::Addresses => addresses(text).map(Value::Addresses),
            Kind::Manager => text.parse().map(Value::Manager).map_err(|error: trib_control::Error| error.to_string()),
            Kind::Filter => match trib_log::filter(text) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(error) => Err(error.to_string()),
            },
            Kind::Integer { least, most } => match text.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(Value::Integer(number)),
                Ok(number) => Err(format!("{number} lies outside {least}..={most}")),
                Err(_) => Err(format!("`{text}` is no whole number")),
            },
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no IP address with a port"))
}

/// Reads addresses, which must differ. An unspecified address stands for all of a host's, so no
/// other may be beside it.
fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for part in text.split(',') {
        let next = address(part.trim())?;
        if all.iter().any(|known| known.ip() == next.ip()) {
            return Err(format!("`{text}` names {} twice", next.ip()));
        }
        if all.len() == PORTS_MAX {
            return Err(format!("`{text}` names more than {PORTS_MAX} addresses"));
        }
        all.push(next);
    }
    match all.iter().find(|address| address.ip().is_unspecified()) {
        Some(any) if all.len() > 1 => Err(format!("`{text}`: {} cannot stand beside others", any.ip())),
        _ => Ok(all),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Path(path) => path.display().fmt(f),
            Value::Address(address) => address.fmt(f),
            Value::Addresses(addresses) => {
                let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
                f.write_str(&all.join(","))
            }
            Value::Manager(url) => f.write_str(&url.address()),
            Value::Integer(number) => number.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_their_kind_are_refused_with_the_cause() {
        for (kind, text, cause) in [
            (Kind::Name, " ", "it is empty"),
            (Kind::Address, "7070", "`7070` is no IP address with a port"),
            (Kind::Address, "localhost:1", "no IP address"),
            (Kind::Addresses, "10.0.0.1:1,", "`` is no IP address"),
            (Kind::Addresses, "10.0.0.1:1, 10.0.0.1:2", "names 10.0.0.1 twice"),
            (Kind::Addresses, "10.0.0.1:1,0.0.0.0:1", "0.0.0.0 cannot stand beside others"),
            (Kind::Manager, "am0", "no port"),
            (Kind::Filter, "info=very", "`info=very`"),
            (Kind::Integer { least: 1, most: 64 }, "65", "65 lies outside 1..=64"),
            (Kind::Integer { least: 1, most: 64 }, "many", "`many` is no whole number"),
            (Kind::Integer { least: 1, most: 64 }, "-1", "no whole number"),
        ] {
            let error = kind.parse(text).unwrap_err();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }

    #[test]
    fn values_of_their_kind_are_taken() {
        let two = Kind::Addresses.parse("10.0.0.1:7, [fd00::1]:0").unwrap();
        assert_eq!(two, Value::Addresses(["10.0.0.1:7", "[fd00::1]:0"].map(|text| text.parse().unwrap()).to_vec()));
        assert_eq!(two.to_string(), "10.0.0.1:7,[fd00::1]:0");
        let many: Vec<String> = (0..=PORTS_MAX).map(|i| format!("10.0.0.{i}:7")).collect();
        assert!(Kind::Addresses.parse(&many[1..].join(",")).is_ok());
        assert!(Kind::Addresses.parse(&many.join(",")).unwrap_err().contains("more than 16"));
        assert_eq!(Kind::Address.parse("[::1]:7").unwrap(), Value::Address("[::1]:7".parse().unwrap()));
        assert_eq!(Kind::Integer { least: 1, most: 64 }.parse("64").unwrap(), Value::Integer(64));
        assert_eq!(Kind::Filter.parse("warn,trib_node=debug").unwrap(), Value::Text("warn,trib_node=debug".into()));
    }
}
