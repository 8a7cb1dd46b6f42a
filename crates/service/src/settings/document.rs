//! The tables of settings in words: as a file to start from, and in docs/configuration.md.

use std::fmt::Write as _;

use super::{Daemon, Default, Setting};

/// A file with every setting. Those that may be left out are comments.
pub(super) fn example_file(daemon: Daemon) -> String {
    let mut text = format!(
        "# Settings of the {} (`trib {daemon} --config FILE`). What stands behind a # is the default, or an example.\n\
         # The command line wins over the environment, and the environment over this file.\n",
        daemon.title()
    );
    for setting in daemon.settings() {
        let Setting { name, variable, kind, meaning, example, .. } = setting;
        let (mark, value, note) = match setting.default {
            Default::Required => ("", *example, "required"),
            Default::Off => ("#", *example, "off where nothing is said"),
            Default::Is(value) => ("#", value, "the default"),
        };
        let value = if kind.is_quoted() { format!("\"{value}\"") } else { value.to_owned() };
        writeln!(text, "\n# {meaning}.\n# {}; {note}; in the environment {variable}.", with_unit(setting))
            .expect("writing to memory cannot fail");
        writeln!(text, "{mark}{name} = {value}").expect("writing to memory cannot fail");
    }
    text
}

fn with_unit(setting: &Setting) -> String {
    let form = setting.kind.form();
    if setting.unit.is_empty() { form } else { format!("{form}, {}", setting.unit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::file;
    use std::path::Path;

    /// A Markdown table.
    fn table(daemon: Daemon) -> String {
        let mut text = "| in the file | on the command line | in the environment | value | default | meaning |\n\
                        | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
        for setting in daemon.settings() {
            let Setting { name, option, variable, kind, meaning, .. } = setting;
            let (form, default) = (with_unit(setting), default(setting));
            let placeholder = kind.placeholder();
            writeln!(text, "| `{name}` | `--{option} {placeholder}` | `{variable}` | {form} | {default} | {meaning} |")
                .expect("writing to memory cannot fail");
        }
        text
    }

    fn default(setting: &Setting) -> String {
        match setting.default {
            Default::Required => "required".to_owned(),
            Default::Off => "off".to_owned(),
            Default::Is(value) => format!("`{value}`"),
        }
    }

    #[test]
    fn the_document_shows_the_tables_as_they_are() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let document = std::fs::read_to_string(&path).unwrap();
        for daemon in Daemon::ALL {
            let table = table(daemon);
            assert!(document.contains(&table), "docs/configuration.md should have this table:\n\n{table}");
        }
    }

    #[test]
    fn the_example_is_a_file_that_can_be_read_with_all_its_comments_taken_away() {
        for daemon in Daemon::ALL {
            let text = example_file(daemon);
            let open =
                text.lines().map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line));
            let open = open.collect::<Vec<_>>().join("\n");
            let required = daemon.settings().iter().filter(|setting| setting.default == Default::Required).count();
            for (text, count) in [(&text, required), (&open, daemon.settings().len())] {
                let path = std::env::temp_dir().join(format!("trib-example-{}-{daemon}-{count}", std::process::id()));
                std::fs::write(&path, text).unwrap();
                let given = file::read(daemon, &path);
                std::fs::remove_file(&path).unwrap();
                assert_eq!(given.unwrap().len(), count, "{text}");
            }
        }
    }
}
