//! The manager's address, and the credentials for it.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;

/// The environment variable with the manager's address.
pub const MANAGER_ENV: &str = "TRIB_MANAGER";
/// The environment variable with the credentials folder, for addresses that name none.
pub const CREDENTIALS_ENV: &str = "TRIB_CREDENTIALS";

/// `tls://HOST:PORT?credentials=DIR`, or `HOST:PORT` with the default credentials folder.
///
/// The default folder is `$TRIB_CREDENTIALS`, else `/etc/tributary` if it exists, else
/// `$XDG_CONFIG_HOME/tributary` (`~/.config/tributary`). DIR is taken as it is, without escapes, up
/// to the end of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagerUrl {
    host: String,
    port: u16,
    credentials: PathBuf,
}

impl ManagerUrl {
    /// The address of `host` (a name, an IPv4 or a bare IPv6 address) with credentials in `folder`.
    pub fn new(host: impl Into<String>, port: u16, folder: impl Into<PathBuf>) -> Self {
        ManagerUrl { host: host.into(), port, credentials: folder.into() }
    }

    /// What `TRIB_MANAGER` says.
    pub fn from_env() -> Result<Self, Error> {
        match env::var(MANAGER_ENV) {
            Ok(text) if !text.trim().is_empty() => text.parse(),
            Err(env::VarError::NotUnicode(text)) => {
                Err(Error::BadUrl { url: text.to_string_lossy().into_owned(), cause: "it is not UTF-8".into() })
            }
            _ => Err(Error::NoManager),
        }
    }

    /// Host name or IP address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The credentials folder.
    pub fn credentials(&self) -> &Path {
        &self.credentials
    }

    /// `HOST:PORT`, with brackets around an IPv6 address.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for ManagerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tls://{}?credentials={}", self.address(), self.credentials.display())
    }
}

impl FromStr for ManagerUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text.trim()).map_err(|cause| Error::BadUrl { url: text.into(), cause })
    }
}

fn parse(text: &str) -> Result<ManagerUrl, String> {
    let rest = match text.split_once("://") {
        Some(("tls", rest)) => rest,
        Some((scheme, _)) => return Err(format!("unknown scheme `{scheme}`")),
        None => text,
    };
    let (address, query) = match rest.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (rest, None),
    };
    let (host, port) = split_port(address.strip_suffix('/').unwrap_or(address))?;
    let credentials = match query {
        None => default_folder(),
        Some(query) => match query.strip_prefix("credentials=") {
            Some("") => return Err("`credentials=` names no folder".into()),
            Some(folder) => folder.into(),
            None => return Err(format!("unknown parameter `{query}`")),
        },
    };
    Ok(ManagerUrl { host, port, credentials })
}

fn split_port(address: &str) -> Result<(String, u16), String> {
    let (host, port) = address.rsplit_once(':').ok_or("it has no port")?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or("`[` without `]`")?,
        None if host.contains(':') => return Err("an IPv6 address stands in brackets, [::1]:7070".into()),
        None => host,
    };
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || "/@[]".contains(c)) {
        return Err(format!("`{host}` is not a host name"));
    }
    match port.parse() {
        Ok(0) | Err(_) => Err(format!("`{port}` is not a port (1 to 65535)")),
        Ok(port) => Ok((host.into(), port)),
    }
}

fn default_folder() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let system = Path::new("/etc/tributary");
    if let Some(folder) = set(CREDENTIALS_ENV) {
        return folder;
    }
    let personal = || set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    match personal() {
        Some(folder) if !system.is_dir() => folder.join("tributary"),
        _ => system.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_printing_and_parsing() {
        for text in [
            "tls://127.0.0.1:7070?credentials=/run/x",
            "tls://[::1]:1?credentials=relative/with?and=&more",
            "tls://am.cluster.example:65535?credentials=/a b",
        ] {
            let url: ManagerUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), text);
        }
    }

    #[test]
    fn a_bare_address_takes_the_default_folder() {
        let url: ManagerUrl = "am0:7070".parse().unwrap();
        assert_eq!((url.host(), url.port()), ("am0", 7070));
        assert_eq!(url.credentials(), default_folder());
    }

    #[test]
    fn nonsense_is_refused_with_its_cause() {
        for (text, cause) in [
            ("am0", "no port"),
            ("http://am0:1", "scheme `http`"),
            ("am0:0", "not a port"),
            ("am0:65536", "not a port"),
            ("::1:80", "brackets"),
            ("[::1:80", "without `]`"),
            (":80", "not a host name"),
            ("a b:80", "not a host name"),
            ("tls://am0:1?credentials=", "names no folder"),
            ("tls://am0:1?key=/x", "unknown parameter"),
        ] {
            let error = text.parse::<ManagerUrl>().unwrap_err().to_string();
            assert!(error.contains(cause) && error.contains(text), "{text}: {error}");
        }
    }
}
