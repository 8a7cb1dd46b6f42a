//! What subcommands share that ask the manager and print its answer.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use trib_control::Channel;
use trib_messages::reply::Reply;
use trib_messages::request::Request;

use super::manager_option::ManagerOption;
use super::units::some_seconds;
use crate::failure::Failure;
use crate::stdout;

/// How the manager is asked, and how its answer is printed.
#[derive(Args, Debug)]
pub struct Query {
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// How long the manager may take, seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = some_seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    pub manager: ManagerOption,
}

impl Query {
    /// The manager's answer.
    pub fn ask(&self, request: &Request) -> Result<Reply, Failure> {
        self.manager.ask(request, self.timeout)
    }

    /// A connection for several questions.
    pub fn connect(&self) -> Result<Channel, Failure> {
        self.manager.connect(self.timeout)
    }

    /// Prints the answer: as JSON if that was asked for, else as this text.
    pub fn print(&self, answer: &impl Serialize, text: impl FnOnce() -> String) -> Result<ExitCode, Failure> {
        let text = match self.json {
            true => serde_json::to_string_pretty(answer).expect("an answer has string keys only") + "\n",
            false => text(),
        };
        stdout::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
