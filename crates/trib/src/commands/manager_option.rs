//! The option that several subcommands share: where the manager is.

use clap::Args;
use trib_control::ManagerUrl;

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
}
