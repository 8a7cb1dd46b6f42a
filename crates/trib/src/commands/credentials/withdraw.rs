//! `trib credentials withdraw`: certificates that are not to be taken any more.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use trib_control::{KeyFolder, Serial};

use super::whose::Whose;
use crate::failure::{Failure, tell};
use crate::stdout;

/// Add certificates to DIR/withdrawn.txt, by which the manager refuses them
///
/// All that a holder has or had is withdrawn, as far as it has not ended; a new one is made by
/// `trib credentials renew`. The manager reads the file in its own folder of credentials when it
/// starts and on SIGHUP: where that is not DIR, copy the file there first. It then lets nobody in
/// who shows one of them, and closes the connections of those who have. Jobs that run go on without
/// the manager. The manager's own certificate cannot be withdrawn.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The operator's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    whose: Whose,
    /// The one with this serial number, as DIR/issued.txt, logs and `openssl x509 -serial` show it;
    /// may be repeated
    #[arg(long, value_name = "HEX", value_parser = str::parse::<Serial>)]
    serial: Vec<Serial>,
}

impl Arguments {
    /// Withdraws, and prints which.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let keys = KeyFolder::at(&self.folder);
        let holders = self.whose.holders()?;
        if holders.is_empty() && self.serial.is_empty() {
            return Err(Failure::Usage("say whose: --node, --tenant, --users or --serial".into()));
        }
        let mut withdrawn = Vec::new();
        for holder in &holders {
            withdrawn.extend(keys.withdraw(holder)?);
        }
        for serial in &self.serial {
            withdrawn.extend(keys.withdraw_serial(serial)?);
        }
        let mut text: String = withdrawn.iter().map(|serial| format!("{serial}\n")).collect();
        if withdrawn.is_empty() {
            text = "nothing was added: they are withdrawn already\n".into();
        }
        stdout::print(&text)?;
        tell(format_args!(
            "the manager reads withdrawn.txt in its own credentials folder, and when it is told to: copy {}/withdrawn.txt there, unless it is \
             that folder, then systemctl reload tributary-am, or kill -HUP; its log says how many it has read",
            self.folder.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib credentials withdraw /etc/tributary --node leaf3 && systemctl reload tributary-am
  trib credentials withdraw /etc/tributary --serial 4F1C09A2
  trib credentials withdraw . --users && scp withdrawn.txt am.cluster:/etc/tributary/    # then reload there";
