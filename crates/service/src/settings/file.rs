//! A daemon's configuration file: `setting = value` lines of TOML, without tables.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::origin::{Given, Origin};
use super::values::Named;
use super::{Daemon, Kind, Setting, SettingsError, Value};

/// Reads a file; relative paths in it are relative to its own folder.
pub(super) fn read(daemon: Daemon, path: &Path) -> Result<Named, SettingsError> {
    let unreadable = |cause| SettingsError::Unreadable { file: path.to_owned(), cause };
    let mut text = String::new();
    let length = File::open(path).and_then(|file| file.take(LENGTH_MAX + 1).read_to_string(&mut text));
    if length.map_err(unreadable)? as u64 > LENGTH_MAX {
        return Err(unreadable(io::Error::other(format!("it is longer than {LENGTH_MAX} bytes"))));
    }
    parse(daemon, &text, path)
}

/// Reads the text of such a file.
fn parse(daemon: Daemon, text: &str, path: &Path) -> Result<Named, SettingsError> {
    let line_of = |span: Option<Range<usize>>| {
        let start = span.map_or(0, |span| span.start).min(text.len());
        text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let fault = |span: Option<Range<usize>>, cause: String, remedy: String| {
        let (file, line) = (path.to_owned(), line_of(span));
        SettingsError::File { file, line, cause, remedy }
    };
    let table = DeTable::parse(text).map_err(|error| {
        let cause = error.message().replace('\n', ": ");
        fault(error.span(), cause, "write one `setting = value` a line".to_owned())
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut given = Named::new();
    for (key, value) in table.get_ref() {
        let Some(setting) = daemon.settings().iter().find(|setting| setting.name == key.get_ref().as_ref()) else {
            let names: Vec<&str> = daemon.settings().iter().map(|setting| setting.name).collect();
            let cause = format!("{} is no setting of `trib {daemon}`", key.get_ref());
            return Err(fault(Some(key.span()), cause, format!("remove it or write one of {}", names.join(", "))));
        };
        let span = value.span();
        let origin = Origin::File(path.to_owned(), line_of(Some(span.clone())));
        let value = value_of(setting, value).map_err(|cause| {
            let Setting { name, kind, .. } = setting;
            let quotes = if kind.is_quoted() { ", in quotes" } else { "" };
            fault(Some(span), format!("{name}: {cause}"), format!("write {}{quotes}", kind.form()))
        })?;
        let value = match value {
            Value::Path(path) => Value::Path(folder.join(path)),
            other => other,
        };
        given.insert(setting.name, Given { value, origin });
    }
    Ok(given)
}

fn value_of(setting: &Setting, value: &Spanned<DeValue<'_>>) -> Result<Value, String> {
    match (value.get_ref(), setting.kind) {
        (DeValue::Integer(number), Kind::Integer { .. }) if number.radix() == 10 => setting.kind.parse(number.as_str()),
        (DeValue::Integer(_), Kind::Integer { .. }) => Err("the number is not decimal".to_owned()),
        (DeValue::String(text), kind) if kind.is_quoted() => kind.parse(text),
        (other, _) => Err(format!("it does not take a value of type {}", other.type_str())),
    }
}

/// A file longer than this is not a configuration.
const LENGTH_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::PathBuf;

    fn node(text: &str) -> Result<Named, String> {
        parse(Daemon::Node, text, Path::new("/etc/x/an.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_read_and_relative_paths_start_at_the_file() {
        let given = node("name = \"leaf0\"\nworkers = 4\nlog_file = \"an.log\"\n").unwrap();
        assert_eq!(given["name"].value, Value::Text("leaf0".into()));
        assert_eq!(given["workers"].value, Value::Integer(4));
        assert_eq!(given["log_file"].value, Value::Path(PathBuf::from("/etc/x/an.log")));
        assert_eq!(given["log_file"].origin, Origin::File("/etc/x/an.toml".into(), 3));
        assert_eq!(given.len(), 3);
    }

    #[test]
    fn every_slip_is_told_with_file_line_cause_and_remedy() {
        for (text, words) in [
            (
                "\nnmae = \"leaf0\"",
                ["/etc/x/an.toml:2", "nmae is no setting of `trib an`", "write one of name, manager"],
            ),
            ("workers = 65", ["an.toml:1", "workers: 65 lies outside 1..=64", "write a whole number, 1 to 64"]),
            ("workers = \"4\"", ["an.toml:1", "does not take a value of type string", "a whole number"]),
            (
                "# x\n\nlisten = 7071",
                ["an.toml:3", "type integer", "IP:PORT, or [IPv6]:PORT; up to 16 with commas between, in quotes"],
            ),
            ("listen = \"here\"", ["an.toml:1", "`here` is no IP address", "IP:PORT"]),
            ("name = \"a\"\nname = \"b\"", ["an.toml:2", "duplicate", "one `setting = value` a line"]),
            ("name = \"a", ["an.toml:1", "string", "one `setting = value` a line"]),
            ("[an]\nname = \"a\"", ["an.toml:1", "an is no setting", "remove it"]),
            ("workers = 0x4", ["an.toml:1", "not decimal", "a whole number"]),
        ] {
            let error = node(text).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_or_too_long_is_named() {
        let missing = read(Daemon::Manager, Path::new("/nonexistent/am.toml")).unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/am.toml") && !missing.is_usage(), "{missing}");
        let endless = read(Daemon::Manager, Path::new("/dev/zero")).unwrap_err();
        assert!(endless.to_string().contains("longer than"), "{endless}");
    }

    proptest! {
        #[test]
        fn no_text_brings_the_reader_down(text in "[a-z_=\"\\[\\]0-9\n#. ]{0,200}") {
            let _ = node(&text);
        }

        #[test]
        fn what_stands_in_the_file_is_what_is_read(workers in 1u64..=64, name in "[a-z][a-z0-9-]{0,20}") {
            let given = node(&format!("workers = {workers}\nname = \"{name}\"")).unwrap();
            prop_assert_eq!(&given["workers"].value, &Value::Integer(workers));
            prop_assert_eq!(&given["name"].value, &Value::Text(name));
        }
    }
}
