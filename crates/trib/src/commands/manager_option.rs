//! The option that several subcommands share: where the manager is, and how it is asked.

use std::time::Duration;

use clap::Args;
use trib_control::{Channel, ManagerUrl};
use trib_wire::control::hello::Role;
use trib_wire::control::reply::Reply;
use trib_wire::control::request::Request;

use crate::failure::Failure;

/// Where the manager is.
#[derive(Args, Debug)]
pub struct ManagerOption {
    /// Where the manager is: tls://HOST:PORT?credentials=DIR
    #[arg(long, value_name = "URL", env = "TRIB_MANAGER", hide_env_values = true)]
    pub manager: Option<String>,
}

impl ManagerOption {
    /// The option's value, which clap has taken from the environment where the option was not given.
    pub fn url(&self) -> Result<ManagerUrl, Failure> {
        match &self.manager {
            Some(url) => Ok(url.parse::<ManagerUrl>()?),
            None => Err(trib_control::Error::NoManager.into()),
        }
    }

    /// A connection to the manager as a user, made within `limit`.
    pub fn connect(&self, limit: Duration) -> Result<Channel, Failure> {
        Ok(Channel::connect(&self.url()?, Role::User, limit)?)
    }

    /// One question over a connection of its own; connection and answer may take `limit` each.
    pub fn ask(&self, request: &Request, limit: Duration) -> Result<Reply, Failure> {
        Ok(self.connect(limit)?.ask(request, limit)?)
    }
}

/// The failure that an answer is which was not hoped for: a refusal, or one to another question.
pub fn unexpected(reply: Reply) -> Failure {
    match reply {
        Reply::Refused(refusal) => trib_control::Error::Refused(refusal).into(),
        other => Failure::Operation(format!("the manager answered something else: {other:?}")),
    }
}
