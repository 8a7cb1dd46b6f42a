//! The text of a unit.

use std::path::Path;

use crate::settings::Daemon;

/// One service: a daemon under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    daemon: Daemon,
    name: Option<String>,
}

/// A name that no service can have.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` cannot be part of a unit's name: use 1 to 64 letters, digits, `-` and `_`")]
pub struct NameError(String);

impl Service {
    /// The daemon's only service on this machine or, with a name, one of several.
    pub fn new(daemon: Daemon, name: Option<&str>) -> Result<Self, NameError> {
        let fits = |name: &str| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        match name {
            Some(name) if !fits(name) => Err(NameError(name.to_owned())),
            name => Ok(Service { daemon, name: name.map(str::to_owned) }),
        }
    }

    /// The daemon.
    pub fn daemon(&self) -> Daemon {
        self.daemon
    }

    /// Its file name: `tributary-an.service`, or `tributary-an-NAME.service`.
    pub fn unit(&self) -> String {
        format!("tributary-{}.service", self.label())
    }

    /// The name of its configuration in [`CONFIGURATION`]: `an.toml`, or `an-NAME.toml`.
    pub fn configuration(&self) -> String {
        format!("{}.toml", self.label())
    }

    /// The file in which a manager keeps its jobs.
    fn state(&self) -> String {
        format!("{STATE}/{}.jobs", self.label())
    }

    fn label(&self) -> String {
        match &self.name {
            None => self.daemon.word().to_owned(),
            Some(name) => format!("{}-{name}", self.daemon),
        }
    }

    /// The unit, which runs `program` with the configuration at its usual path.
    pub fn text(&self, program: &Path) -> String {
        let Service { daemon, name } = self;
        let name = name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        let (keeps, start) = match daemon {
            Daemon::Manager => (format!(" --state {}", self.state()), START_OF_MANAGER),
            Daemon::Node => (String::new(), START_OF_NODE),
        };
        format!(
            "[Unit]\n\
             Description=Tributary {title}{name}\n\
             Documentation=man:trib(1)\n\
             Wants=network-online.target\n\
             After=network-online.target\n\
             {START_LIMIT}\
             \n\
             [Service]\n\
             Type=notify\n\
             NotifyAccess=main\n\
             ExecStart={program} {daemon} --config {CONFIGURATION}/{configuration}{keeps}\n\
             User={user}\n\
             Group={user}\n\
             {start}LogsDirectory=tributary/{daemon}\n\
             {COMMON}\n\
             [Install]\n\
             WantedBy=multi-user.target\n",
            user = user(*daemon),
            title = daemon.title(),
            program = word(&program.to_string_lossy()),
            configuration = self.configuration(),
        )
    }
}

/// Whether a unit cannot see what lies at this path.
pub fn is_hidden(path: &Path) -> bool {
    HIDDEN.iter().any(|folder| path.starts_with(folder))
}

/// One word of a command line in a unit.
fn word(text: &str) -> String {
    let text = text.replace('%', "%%").replace('$', "$$");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-%$:@=,".contains(&byte);
    if text.bytes().all(plain) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

/// The user that services of a daemon run as.
pub(super) fn user(daemon: Daemon) -> String {
    format!("tributary-{daemon}")
}

/// What `ProtectHome` and `PrivateTmp` hide from a unit, systemd.exec(5).
pub const HIDDEN: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// The folder of configurations.
pub(super) const CONFIGURATION: &str = "/etc/tributary";
/// The folder of the daemons' folders of logs, for `log_file`.
pub(super) const LOGS: &str = "/var/log/tributary";

/// The folder of what managers keep for their successors.
pub(super) const STATE: &str = "/var/lib/tributary";

/// A daemon that ends again and again stays down, so that somebody looks why: who makes it end must
/// not keep its host busy for ever. A fabric goes on without one of its nodes, and jobs without the
/// manager. `systemctl reset-failed` gives it new starts.
const START_LIMIT: &str = "\
StartLimitIntervalSec=600
StartLimitBurst=30
";
/// A manager is ready as soon as it listens. It has a thread for each connection, 8,192 at most,
/// which is more than systemd lets a service of a small machine have. It writes to its own folder
/// and to the log's, and nowhere else. On SIGHUP it reads the list of withdrawn certificates again.
const START_OF_MANAGER: &str = "\
ExecReload=/bin/kill -HUP $MAINPID
TimeoutStartSec=30
TasksMax=16384
StateDirectory=tributary
StateDirectoryMode=0750
RestrictRealtime=yes
";
/// A node is ready when the manager has accepted it. The manager may be started later, so a node
/// whose time is over is started again; without a limit the boot of its host, and what restarts it,
/// would wait as long. That is seldom enough for the limit of starts. Its threads may go before
/// other programs if these leave them no processor.
const START_OF_NODE: &str = "\
TimeoutStartSec=90
LimitRTPRIO=1
RestrictRealtime=no
";

/// What both daemons have in common. A wrong configuration (exit code 2) does not become right by
/// another try. Neither daemon needs a capability, writes anything but its log and the manager's
/// jobs, or makes memory executable.
const COMMON: &str = "\
TimeoutStopSec=15
WatchdogSec=30
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2
LimitNOFILE=65536
LogsDirectoryMode=0750
UMask=0027

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_after_its_daemon_and_its_name() {
        let only = Service::new(Daemon::Node, None).unwrap();
        assert_eq!((only.unit().as_str(), only.configuration().as_str()), ("tributary-an.service", "an.toml"));
        let one = Service::new(Daemon::Node, Some("leaf0")).unwrap();
        assert_eq!(
            (one.unit().as_str(), one.configuration().as_str()),
            ("tributary-an-leaf0.service", "an-leaf0.toml")
        );
        for bad in ["", "a b", "../x", "x.service", &"x".repeat(65)] {
            assert!(Service::new(Daemon::Node, Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_unit_sees_no_home_and_no_temporary_folder() {
        for folder in HIDDEN {
            assert!(is_hidden(&Path::new(folder).join("ada/bin/trib")), "{folder}");
        }
        for seen in ["/usr/local/bin/trib", "/opt/home/trib", "/homes/trib", "/var/lib/trib"] {
            assert!(!is_hidden(Path::new(seen)), "{seen}");
        }
    }

    #[test]
    fn a_unit_starts_its_daemon_with_its_file_and_every_line_is_a_section_or_a_setting() {
        let text = Service::new(Daemon::Manager, Some("a")).unwrap().text(Path::new("/usr/bin/trib"));
        assert!(
            text.contains(
                "\nExecStart=/usr/bin/trib am --config /etc/tributary/am-a.toml --state /var/lib/tributary/am-a.jobs\n"
            ),
            "{text}"
        );
        assert!(text.contains("Description=Tributary aggregation manager a\n"), "{text}");
        let node = Service::new(Daemon::Node, None).unwrap().text(Path::new("/usr/bin/trib"));
        assert!(node.contains("/etc/tributary/an.toml\n") && !node.contains("StateDirectory"), "{node}");
        for (unit, daemon) in [(&text, "am"), (&node, "an")] {
            assert!(unit.contains(&format!("\nUser=tributary-{daemon}\nGroup=tributary-{daemon}\n")), "{unit}");
            assert!(unit.contains(&format!("\nLogsDirectory=tributary/{daemon}\n")), "{unit}");
        }
        assert!(node.contains("\nLimitRTPRIO=1\n") && !text.contains("LimitRTPRIO"), "{node}");
        for line in text.lines().filter(|line| !line.is_empty()) {
            let name = line.split('=').next().unwrap();
            let section = line.starts_with('[') && line.ends_with(']');
            assert!(section || (line.contains('=') && name.bytes().all(|b| b.is_ascii_alphanumeric())), "{line}");
        }
    }

    #[test]
    fn a_path_stands_in_a_unit_as_one_word() {
        assert_eq!(word("/opt/trib-1.0/bin/trib"), "/opt/trib-1.0/bin/trib");
        assert_eq!(word("/opt/my trib/100%/$x"), "\"/opt/my trib/100%%/$$x\"");
        assert_eq!(word("/a\"b\\c"), "\"/a\\\"b\\\\c\"");
    }
}
