//! Which source of a value wins.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use trib_control::ManagerUrl;

use super::origin::{Given, Origin};
use super::{Daemon, Default, Setting, SettingsError, Value};
use super::{contradiction, file};

/// The sources of values.
pub struct Sources<'a> {
    /// The values of the command line, by the settings' names.
    pub command_line: &'a BTreeMap<&'static str, String>,
    /// What a variable of the environment holds. An empty one counts as not set.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The file.
    pub file: Option<&'a Path>,
}

/// The values that are given, by the settings' names.
pub(super) type Named = BTreeMap<&'static str, Given>;

/// One value for every setting of a daemon that has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Values {
    given: Named,
    overridden: Vec<String>,
}

impl Values {
    /// Chooses the value of every setting: the command line wins over the environment, the
    /// environment over the file, the file over the default. All of the file is checked, even
    /// values that another source overrides. The values that are chosen must not contradict each
    /// other.
    pub fn resolve(daemon: Daemon, sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let mut values = match sources.file {
            Some(path) => file::read(daemon, path)?,
            None => Named::new(),
        };
        let mut overridden = Vec::new();
        for setting in daemon.settings() {
            if let Some(value) = sources.beside_the_file(setting)? {
                let origin = value.origin.clone();
                let is_variable = matches!(origin, Origin::Variable(_));
                let hidden =
                    values.insert(setting.name, value).filter(|hidden| hidden.value != values[setting.name].value);
                if let Some(hidden) = hidden.filter(|_| is_variable) {
                    overridden.push(format!("`{}` is what the {origin} says, and not {}", setting.name, hidden.origin));
                }
            } else if !values.contains_key(setting.name)
                && let Some(value) = default(setting)?
            {
                values.insert(setting.name, value);
            }
        }
        contradiction::check(daemon, &values)?;
        Ok(Values { given: values, overridden })
    }

    /// A line for each value of the file in whose stead a variable's counts: a login shell may set
    /// variables for programs that daemons read, too.
    pub fn overridden(&self) -> &[String] {
        &self.overridden
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.given.remove(name).map(|given| given.value)
    }

    pub(super) fn text(&mut self, name: &str) -> String {
        match self.take(name) {
            Some(Value::Text(text)) => text,
            other => unfit(name, other),
        }
    }

    pub(super) fn path(&mut self, name: &str) -> PathBuf {
        self.optional_path(name).unwrap_or_else(|| unfit(name, None))
    }

    pub(super) fn optional_path(&mut self, name: &str) -> Option<PathBuf> {
        match self.take(name) {
            None => None,
            Some(Value::Path(path)) => Some(path),
            other => unfit(name, other),
        }
    }

    pub(super) fn address(&mut self, name: &str) -> SocketAddr {
        self.optional_address(name).unwrap_or_else(|| unfit(name, None))
    }

    pub(super) fn addresses(&mut self, name: &str) -> Vec<SocketAddr> {
        match self.take(name) {
            Some(Value::Addresses(addresses)) => addresses,
            other => unfit(name, other),
        }
    }

    pub(super) fn optional_address(&mut self, name: &str) -> Option<SocketAddr> {
        match self.take(name) {
            None => None,
            Some(Value::Address(address)) => Some(address),
            other => unfit(name, other),
        }
    }

    pub(super) fn manager(&mut self, name: &str) -> ManagerUrl {
        match self.take(name) {
            Some(Value::Manager(url)) => url,
            other => unfit(name, other),
        }
    }

    pub(super) fn integer(&mut self, name: &str) -> u64 {
        self.optional_integer(name).unwrap_or_else(|| unfit(name, None))
    }

    pub(super) fn optional_integer(&mut self, name: &str) -> Option<u64> {
        match self.take(name) {
            None => None,
            Some(Value::Integer(number)) => Some(number),
            other => unfit(name, other),
        }
    }
}

/// The table does not fit the code that reads it. This is a bug of the program, which its tests
/// find.
fn unfit(name: &str, value: Option<Value>) -> ! {
    panic!("the setting {name} is not of the kind its reader expects: {value:?}")
}

impl Sources<'_> {
    fn beside_the_file(&self, setting: &Setting) -> Result<Option<Given>, SettingsError> {
        let (text, origin) = if let Some(text) = self.command_line.get(setting.name) {
            (text.clone(), Origin::Option(setting.option))
        } else if let Some(text) = (self.environment)(setting.variable).filter(|text| !text.trim().is_empty()) {
            (text, Origin::Variable(setting.variable))
        } else {
            return Ok(None);
        };
        match setting.kind.parse(&text) {
            Ok(value) => Ok(Some(Given { value, origin })),
            Err(cause) => Err(SettingsError::Value { origin: origin.to_string(), cause, form: setting.kind.form() }),
        }
    }
}

fn default(setting: &Setting) -> Result<Option<Given>, SettingsError> {
    let Setting { name, meaning, option, variable, .. } = *setting;
    match setting.default {
        Default::Required => Err(SettingsError::Missing { name, meaning, option, variable }),
        Default::Off => Ok(None),
        Default::Is(text) => {
            let value = setting.kind.parse(text).expect("a default is of its setting's kind");
            Ok(Some(Given { value, origin: Origin::Default }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{ManagerSettings, NodeSettings};
    use proptest::prelude::*;

    fn resolve(
        daemon: Daemon,
        command_line: &[(&'static str, &str)],
        environment: &[(&str, &str)],
        file: Option<&str>,
    ) -> Result<Values, String> {
        let command_line = command_line.iter().map(|&(name, text)| (name, text.to_owned())).collect();
        let of =
            |variable: &str| environment.iter().find(|(name, _)| *name == variable).map(|(_, text)| (*text).to_owned());
        let path = file.map(|text| {
            let unique = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
            let path = std::env::temp_dir().join(format!("trib-settings-{}-{unique}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            path
        });
        let sources = Sources { command_line: &command_line, environment: &of, file: path.as_deref() };
        let values = Values::resolve(daemon, &sources).map_err(|error| error.to_string());
        if let Some(path) = path {
            std::fs::remove_file(path).unwrap();
        }
        values
    }

    #[test]
    fn a_variable_that_hides_the_file_is_told() {
        let file = "name = \"leaf0\"\nmanager = \"tls://a:1?credentials=/c\"\nlisten = \"127.0.0.1:0\"\n";
        let told = |environment: &[(&str, &str)]| {
            let values = resolve(Daemon::Node, &[("name", "leaf1")], environment, Some(file)).unwrap();
            values.overridden().to_vec()
        };
        let others = [("TRIB_MANAGER", "tls://a:1?credentials=/users")];
        let [line] = &told(&others)[..] else { panic!("{:?}", told(&others)) };
        assert!(
            line.starts_with("`manager` is what the environment variable TRIB_MANAGER says, and not conf"),
            "{line}"
        );
        assert!(line.ends_with(":2"), "{line}");
        assert_eq!(told(&[("TRIB_MANAGER", "tls://a:1?credentials=/c")]), [] as [&str; 0], "it says the same");
    }

    #[test]
    fn defaults_fill_what_nobody_says_and_what_is_required_is_asked_for() {
        let given = [("topology", "/t"), ("credentials", "/c")];
        let settings: ManagerSettings = resolve(Daemon::Manager, &given, &[], None).unwrap().into();
        assert_eq!(settings.listen, "0.0.0.0:7070".parse().unwrap());
        assert_eq!((settings.log.as_str(), settings.log_file), ("info", None));
        let error = resolve(Daemon::Manager, &given[..1], &[], None).unwrap_err();
        for word in ["credentials", "--credentials", "TRIB_AM_CREDENTIALS", "credentials = ..."] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn every_setting_reaches_the_daemon_that_has_it() {
        for daemon in Daemon::ALL {
            let given: Vec<_> = daemon.settings().iter().map(|setting| (setting.name, setting.example)).collect();
            let values = resolve(daemon, &given, &[], None).unwrap();
            assert_eq!(values.given.len(), given.len());
            match daemon {
                Daemon::Manager => drop(ManagerSettings::from(values)),
                Daemon::Node => drop(NodeSettings::from(values)),
            }
        }
    }

    #[test]
    fn a_bad_value_names_where_it_comes_from() {
        let error = resolve(Daemon::Node, &[("workers", "0")], &[], None).unwrap_err();
        assert!(error.starts_with("no name is given: say --name, set TRIB_AN_NAME in the environment"), "{error}");
        let rest = [("name", "a"), ("manager", "am:1"), ("listen", "127.0.0.1:0")];
        let error = resolve(Daemon::Node, &rest, &[("TRIB_AN_WORKERS", "x")], None).unwrap_err();
        assert!(error.contains("TRIB_AN_WORKERS") && error.contains("`x`") && error.contains("1 to 64"), "{error}");
        let given = [&rest[..], &[("workers", "65")]].concat();
        let error = resolve(Daemon::Node, &given, &[], None).unwrap_err();
        assert!(error.starts_with("--workers: 65 lies outside"), "{error}");
    }

    #[test]
    fn what_contradicts_itself_is_told_with_both_sources() {
        let file = "topology = \"t.toml\"\ncredentials = \"c\"\n\nmetrics = \"10.0.0.1:7070\"\n";
        let error = resolve(Daemon::Manager, &[], &[], Some(file)).unwrap_err();
        for word in [":4: metrics = 10.0.0.1:7070 contradicts", "listen = 0.0.0.0:7070 (the default)", "another port"] {
            assert!(error.contains(word), "{error}");
        }
        assert!(error.starts_with("configuration "), "{error}");
        let given = [("topology", "/t"), ("credentials", "/c"), ("state", "/s"), ("log_file", "/s")];
        let error = resolve(Daemon::Manager, &given, &[], None).unwrap_err();
        assert_eq!(error, "--log-file: log_file = /s contradicts state = /s (--state); give each a path of its own");
        let node = [("name", "a"), ("manager", "10.0.0.1:7070"), ("listen", "10.0.0.1:7070")];
        let error = resolve(Daemon::Node, &node, &[], None).unwrap_err();
        assert!(error.contains("manager = 10.0.0.1:7070 (--manager)") && error.contains("of its own"), "{error}");
        let node = [("name", "a"), ("manager", "am:1"), ("listen", "10.0.0.1:7,10.1.0.1:9"), ("metrics", "10.1.0.1:9")];
        let error = resolve(Daemon::Node, &node, &[], None).unwrap_err();
        assert!(error.contains("metrics = 10.1.0.1:9 contradicts listen = 10.0.0.1:7,10.1.0.1:9"), "{error}");
        // Only names that are addresses can be compared, and ports that the kernel chooses never
        // meet.
        let node = [("name", "a"), ("manager", "am:7070"), ("listen", "10.0.0.1:0"), ("metrics", "10.0.0.1:0")];
        assert!(resolve(Daemon::Node, &node, &[], None).is_ok());
    }

    proptest! {
        // The plain reference: of four sources, the first that holds something.
        #[test]
        fn the_first_source_that_says_something_wins(sources in proptest::array::uniform3(proptest::option::of(1u64..=64))) {
            let [command_line, environment, file] = sources;
            let texts = [command_line, environment].map(|number| number.map(|number| number.to_string()));
            let mut options = vec![("name", "a"), ("manager", "am:1"), ("listen", "127.0.0.1:0")];
            options.extend(texts[0].as_deref().map(|text| ("workers", text)));
            let variables = [("TRIB_AN_WORKERS", texts[1].as_deref().unwrap_or(""))];
            let text = file.map(|number| format!("workers = {number}\nname = \"from the file\"\n"));
            let values = resolve(Daemon::Node, &options, &variables, text.as_deref()).unwrap();
            let settings = NodeSettings::from(values);
            let expected = command_line.or(environment).or(file).unwrap_or(1);
            prop_assert_eq!(settings.workers as u64, expected);
            prop_assert_eq!(settings.name.as_str(), "a");
        }
    }
}
