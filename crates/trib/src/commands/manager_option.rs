//! The option that several subcommands share: the manager's address, and how the manager is asked.

use std::time::Duration;

use clap::Args;
use trib_control::{Channel, ManagerUrl};
use trib_messages::hello::Role;
use trib_messages::reply::Reply;
use trib_messages::request::Request;

use crate::failure::Failure;

/// Where the manager is.
#[derive(Args, Debug)]
pub struct ManagerOption {
    /// Where the manager is: tls://HOST:PORT?credentials=DIR
    #[arg(long, value_name = "URL", env = "TRIB_MANAGER", hide_env_values = true)]
    pub manager: Option<String>,
}

impl ManagerOption {
    /// The option's value. Without the option, clap has taken it from the environment.
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

    /// Asks one question over a connection of its own. Connection and answer may take `limit` each.
    pub fn ask(&self, request: &Request, limit: Duration) -> Result<Reply, Failure> {
        Ok(self.connect(limit)?.ask(request, limit)?)
    }
}

/// The failure for an unexpected answer: a refusal, or an answer to another question.
pub fn unexpected(reply: Reply) -> Failure {
    match reply {
        Reply::Refused(refusal) => trib_control::Error::Refused(refusal).into(),
        other => Failure::Operation(format!("the manager answered something else: {other:?}")),
    }
}
