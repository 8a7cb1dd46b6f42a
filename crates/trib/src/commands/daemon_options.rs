//! The options of a daemon, made from its table of settings.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use trib_service::settings::{Daemon, Default, Setting, SettingsError, Sources, Values};

use crate::failure::Failure;
use crate::stdout;

/// A type that says which daemon's options these are.
pub trait OfDaemon {
    /// The daemon.
    const DAEMON: Daemon;
}

/// The options on a daemon's command line.
#[derive(Debug)]
pub struct DaemonOptions<D> {
    given: BTreeMap<&'static str, String>,
    config: Option<PathBuf>,
    print_config: bool,
    daemon: PhantomData<D>,
}

impl<D: OfDaemon> DaemonOptions<D> {
    /// Combines command line, environment and file. If only the example file is wanted, it is
    /// printed instead.
    pub fn settings<S: From<Values>>(&self) -> Result<Wanted<S>, Failure> {
        if self.print_config {
            let text = D::DAEMON.example_file();
            stdout::print(&text)?;
            return Ok(Wanted::Nothing(ExitCode::SUCCESS));
        }
        let environment = |variable: &str| std::env::var_os(variable).map(|text| text.to_string_lossy().into_owned());
        let sources = Sources { command_line: &self.given, environment: &environment, file: self.config.as_deref() };
        let values = Values::resolve(D::DAEMON, &sources)?;
        let notices = values.overridden().to_vec();
        Ok(Wanted::Daemon { settings: values.into(), notices })
    }
}

/// What a daemon's command line asks for.
pub enum Wanted<S> {
    /// The daemon, with these settings, and what its log has to say about where they are from.
    Daemon {
        /// The settings.
        settings: S,
        /// Lines for the log.
        notices: Vec<String>,
    },
    /// Nothing more than was printed; this is the exit code.
    Nothing(ExitCode),
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::environment(error) }
    }
}

impl<D: OfDaemon> Args for DaemonOptions<D> {
    fn augment_args(command: Command) -> Command {
        let option = |setting: &'static Setting| {
            Arg::new(setting.name).long(setting.option).value_name(setting.kind.placeholder()).help(help(setting))
        };
        command
            .args(D::DAEMON.settings().iter().map(option))
            .arg(
                Arg::new(CONFIG)
                    .long(CONFIG)
                    .value_name("FILE")
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("Settings of a file, for those that neither the command line nor the environment gives"),
            )
            .arg(
                Arg::new(PRINT_CONFIG)
                    .long(PRINT_CONFIG)
                    .action(ArgAction::SetTrue)
                    .help("Print such a file with every setting explained, and do nothing else"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<D: OfDaemon> FromArgMatches for DaemonOptions<D> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = BTreeMap::new();
        for setting in D::DAEMON.settings() {
            given.extend(matches.get_one::<String>(setting.name).map(|text| (setting.name, text.clone())));
        }
        let config = matches.get_one::<PathBuf>(CONFIG).cloned();
        Ok(DaemonOptions { given, config, print_config: matches.get_flag(PRINT_CONFIG), daemon: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn help(setting: &Setting) -> String {
    let Setting { meaning, variable, .. } = setting;
    let default = match setting.default {
        Default::Required => String::new(),
        Default::Off => " [default: off]".to_owned(),
        Default::Is(value) => format!(" [default: {value}]"),
    };
    format!("{meaning}{default} [env: {variable}]")
}

const CONFIG: &str = "config";
const PRINT_CONFIG: &str = "print-config";
