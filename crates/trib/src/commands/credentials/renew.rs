//! `trib credentials renew`: new certificates in the place of those that end.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use trib_control::clock::{DAY, date, unix_s};
use trib_control::{Certificate, Holder};

use super::Signing;
use super::whose::Whose;
use crate::failure::Failure;
use crate::stdout;

/// Issue new certificates and keys by the same authority, in the same files
///
/// Without further options those are renewed that end within 60 days. The manager takes its new
/// files within a second, nodes and programs theirs with their next connection; nothing is
/// restarted, and connections that are open stay. What lies on other hosts has to be copied there,
/// and a daemon's key given to its group again. The old certificates stay valid until they end:
/// `trib credentials withdraw` is for keys that others may have.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The operator's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    whose: Whose,
    /// That of the manager, `trib am`
    #[arg(long)]
    am: bool,
    /// Everybody's
    #[arg(long, conflicts_with_all = ["node", "tenant", "users", "am"])]
    all: bool,
    #[command(flatten)]
    signing: Signing,
}

impl Arguments {
    /// Renews, and prints what.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut holders = self.whose.holders()?;
        holders.extend(self.am.then_some(Holder::Manager));
        let validity = self.signing.validity();
        let keys = self.signing.keys(self.folder);
        if holders.is_empty() {
            let there = keys.certificates()?;
            let next = there.iter().min_by_key(|certificate| certificate.ends).map(Certificate::to_string);
            let due = there.into_iter().filter(|it| self.all || it.seconds_left(unix_s()) < DUE);
            holders = due.map(|certificate| certificate.holder).collect();
            if let (true, Some(next)) = (holders.is_empty(), next) {
                stdout::print(&format!("nothing ends within 60 days; next is {next}\n"))?;
            }
        }
        for holder in holders {
            let Certificate { holder, serial, ends } = keys.renew(&holder, validity)?;
            stdout::print(&format!("{holder}: until {}, serial {serial}\n", date(ends)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What ends so soon is renewed: twice the time of warnings, so that who renews once a month is
/// never warned.
const DUE: i64 = 60 * DAY as i64;

const EXAMPLES: &str = "\
Examples:
  trib credentials renew /etc/tributary                # what is due, for a monthly timer
  trib credentials renew /etc/tributary --node 'leaf[0-15]' --am
  trib credentials renew /etc/tributary --all --days 90
  trib credentials renew . --authority-key /media/safe/authority-key.pem";
