//! The one table of settings: the environment, `sharp_coll_print_config`, `sharp_coll_dump_config`
//! and docs/sharp-coll.md are made from it.
//!
//! Names and meanings come from the API. Many settings are about InfiniBand and change nothing
//! here; they are accepted, and the table says so.

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The variable of the environment.
    pub name: &'static str,
    /// The value that counts when nothing is set.
    pub default: &'static str,
    /// What it means; if it has no effect here, what it means elsewhere.
    pub doc: &'static str,
    /// Whether it changes anything here.
    pub has_effect: bool,
}

const fn takes_effect(name: &'static str, default: &'static str, doc: &'static str) -> Setting {
    Setting { name, default, doc, has_effect: true }
}

const fn accepted(name: &'static str, default: &'static str, doc: &'static str) -> Setting {
    Setting { name, default, doc, has_effect: false }
}

/// All settings.
pub const SETTINGS: &[Setting] = &[
    takes_effect("SHARP_COLL_LOG_LEVEL", "2", "Lines on stderr: 0 fatal, 1 error, 2 warn, 3 info, 4 debug, 5 trace"),
    takes_effect(
        "SHARP_COLL_ENABLE_SAT",
        "1",
        "Long vectors go by streams. With 0 everything goes by datagrams, and the feature is not reported. Rank 0's value is everybody's",
    ),
    takes_effect(
        "SHARP_COLL_SAT_THRESHOLD",
        "auto",
        "Shortest message that goes by a stream, bytes; auto: as the fabric has it",
    ),
    takes_effect(
        "SHARP_COLL_SAT_LOCK_BATCH_SIZE",
        "infinity",
        "Streaming operations of one lease on a stream context; 1 shares it between groups after each",
    ),
    takes_effect(
        "SHARP_COLL_JOB_QUOTA_OSTS",
        "0",
        "Operations by datagram under way at one node, of all groups together; fewer than 16 bound those of one group as well; \
         0: the fabric's default",
    ),
    takes_effect("SHARP_COLL_JOB_QUOTA_PAYLOAD_PER_OST", "0", "Bytes of one of them; 0: the fabric's default"),
    takes_effect("SHARP_COLL_MAX_PAYLOAD_SIZE", "0", "Older spelling of the same, where that is not set"),
    takes_effect(
        "SHARP_COLL_OSTS_PER_GROUP",
        "0",
        "Operations by datagram of one group, 1 to 64; 0: the fabric's default",
    ),
    takes_effect("SHARP_COLL_JOB_QUOTA_MAX_GROUPS", "0", "Groups alive at once; 0: the fabric's default"),
    takes_effect(
        "SHARP_COLL_JOB_NUM_TREES",
        "0",
        "Lanes of the job, over as many different trees as there are, 1 to 8: long vectors are cut over them; 0: as the fabric has it",
    ),
    takes_effect("SHARP_COLL_GROUPS_PER_COMM", "0", "The same, counted for each group; the larger number holds"),
    takes_effect(
        "SHARP_COLL_JOB_CREATE_TIMEOUT",
        "0",
        "Time limit of sharp_coll_init, ms; 0: TRIB_TIMEOUT_MS, otherwise 30000",
    ),
    takes_effect(
        "SHARP_COLL_STATS_DUMP_MODE",
        "0",
        "1: every process writes its counters in sharp_coll_finalize; 2: rank 0 writes their sum, for which \
         sharp_coll_finalize and sharp_coll_dump_stats use the out-of-band calls of the job. Rank 0's mode is everybody's",
    ),
    takes_effect("SHARP_COLL_STATS_FILE", "", "File that counters are appended to; empty: stderr"),
    takes_effect(
        "SHARP_COLL_ON_ERROR",
        "abort",
        "What an operation does that fails for good after it was posted, where sharp_coll_req_test cannot tell, or that cannot be \
         posted through no fault of the caller's, where some clients do not look: abort ends the process with the reason, complete \
         lets the request end with its buffers undefined, and the post give its code. Not part of the API",
    ),
    takes_effect("SHARP_COLL_ENABLE_CUDA", "2", "Memory of GPUs: 0 never, 1 and 2 if the driver is there"),
    accepted(
        "SHARP_COLL_NUM_COLL_GROUP_RESOURCE_ALLOC_THRESHOLD",
        "0",
        "Collectives before a group takes its resources; here always in sharp_coll_comm_init",
    ),
    accepted(
        "SHARP_COLL_LOCK_ON_COMM_INIT",
        "0",
        "Take the streaming lock in sharp_coll_comm_init; leases need no such choice",
    ),
    accepted("SHARP_COLL_JOB_QUOTA_MAX_QPS_PER_PORT", "0", "Queue pairs"),
    accepted("SHARP_COLL_JOB_MEMBER_LIST_TYPE", "2", "How members are listed to the manager"),
    accepted("SHARP_COLL_JOB_REQ_EXCLUSIVE_LOCK_MODE", "0", "Exclusive streaming"),
    accepted("SHARP_COLL_JOB_PRIORITY", "0", "Priority of the job; here the manager's configuration decides"),
    accepted("SHARP_COLL_PIPELINE_DEPTH", "64", "Fragments under way"),
    accepted("SHARP_COLL_POLL_BATCH", "4", "Completions of one poll"),
    accepted("SHARP_COLL_GROUP_RESOURCE_POLICY", "1", "How groups share operations under way"),
    accepted("SHARP_COLL_GROUP_IS_TARGET", "1", "Reliable distribution of results"),
    accepted("SHARP_COLL_ENABLE_GROUP_TRIM", "1", "Drop unused parts of the tree; always done"),
    accepted("SHARP_COLL_ENABLE_MCAST_TARGET", "1", "Results by multicast"),
    accepted("SHARP_COLL_SHARP_ENABLE_MCAST_TARGET", "1", "Older spelling of the same"),
    accepted("SHARP_COLL_MCAST_TARGET_GROUP_SIZE_THRESHOLD", "2", "Smallest group for multicast"),
    accepted("SHARP_COLL_ENABLE_MCAST", "0", "Allgather by multicast"),
    accepted("SHARP_COLL_ENABLE_GPU_DIRECT_RDMA", "0", "Network cards that read the memory of GPUs"),
    accepted("SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING", "0", "Order of writes on the bus"),
    accepted("SHARP_COLL_ERROR_CHECK_INTERVAL", "180000", "Looking for errors, ms; here nodes and ranks tell at once"),
    accepted("SHARP_COLL_STATS_TRIGGER", "exit", "When counters are written; here in sharp_coll_finalize"),
    accepted("SHARP_COLL_SHARPD_SOCKET_NAME", "", "Socket of a daemon that is no more"),
    accepted("SHARP_COLL_BUFFER_POOL_SIZE", "4096", "Buffers in the pool"),
    accepted("SHARP_COLL_MAX_INLINE_SIZE", "256", "Inline sends, bytes"),
    accepted("SHARP_COLL_NUM_SHARP_COLL_REQ", "128", "Request objects; here as many as are asked for"),
    accepted("SHARP_COLL_MAX_SEND_WR", "64", "Work requests of a queue pair"),
    accepted("SHARP_COLL_MAX_RECV_WR", "256", "Work requests of a queue pair"),
    accepted("SHARP_COLL_MAX_RX_FILL_SIZE", "256", "Receives posted at once"),
    accepted("SHARP_COLL_RX_PREPOST_THRESHOLD", "64", "When receives are posted again"),
    accepted("SHARP_COLL_RX_PREPOST_THRESHOLD_SOFT", "255", "When receives are posted again"),
    accepted("SHARP_COLL_USER_GROUP_QUOTA_PERCENT", "0", "Share of the quota for groups of the user"),
    accepted("SHARP_COLL_CHECK_GROUP_LEAVE_ERRORS", "0", "Report errors of leaving a group"),
    accepted("SHARP_COLL_ENABLE_GLOBAL_ERROR_SYNC", "1", "Agree on errors; always done"),
    accepted("SHARP_COLL_JOB_CREATE_POLLING_DELAY", "1", "ms"),
    accepted("SHARP_LOG_VERBOSTIRY", "2", "Lines of a lower library"),
    accepted("SHARP_LOG_FILE", "stdout", "Where a lower library writes them"),
    accepted(
        "SHARP_SMX_SOCK_INTERFACE",
        "",
        "Interface of the management network; here TRIB_MANAGER says where the manager is",
    ),
    accepted("SHARP_SMX_UCX_INTERFACE", "", "Interface of the management network"),
    accepted("SHARP_SMX_SOCK_ADDR_FAMILY", "auto", "Address family of the management network"),
];

/// What happens when an operation fails after it was posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnError {
    /// The process ends with the reason.
    Abort,
    /// The request ends, with its buffers undefined.
    Complete,
}

impl OnError {
    /// Reads the environment.
    pub fn from_env() -> OnError {
        match value("SHARP_COLL_ON_ERROR").as_deref() {
            Some("complete") => OnError::Complete,
            _ => OnError::Abort,
        }
    }
}

/// A variable's value. A value that is empty or not UTF-8 counts as not set.
pub fn value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty())
}

/// The value as a number; `None` if it is not set or is no number.
pub fn number(name: &str) -> Option<u64> {
    value(name)?.trim().parse().ok()
}

/// The value as a number above zero, because for all settings zero stands for the default.
pub fn wish(name: &str) -> Option<u64> {
    number(name).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_this_table() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sharp-coll.md")).unwrap();
        for Setting { name, default, doc, has_effect } in SETTINGS {
            let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
            let effect = if *has_effect { "" } else { "*accepted*. " };
            let row = format!("| `{name}` | {default} | {effect}{doc} |");
            assert!(page.contains(&row), "docs/sharp-coll.md lacks this row:\n{row}");
        }
    }

    /// A page that names a variable which nothing reads would make its readers look for an effect.
    #[test]
    fn the_documentation_names_nothing_else() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let page = std::fs::read_to_string(format!("{folder}/docs/sharp-coll.md")).unwrap();
        let header = std::fs::read_to_string(format!("{folder}/sharp-coll/include/sharp/api/sharp_coll.h")).unwrap();
        let words = page.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for word in words.filter(|word| word.starts_with("SHARP_COLL_") || word.starts_with("SHARP_SMX_")) {
            let is_setting = SETTINGS.iter().any(|setting| setting.name == word);
            assert!(is_setting || header.contains(word), "docs/sharp-coll.md names {word}, which nobody reads");
        }
    }

    #[test]
    fn the_documentation_says_what_ucc_needs_and_how_to_see_that_it_is_used() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sharp-coll.md")).unwrap();
        let section = page.split("\n## ").find(|section| section.starts_with("With UCC\n")).unwrap();
        let needed = [
            "UCC_TLS=self,sharp,ucp",
            "UCC_TL_SHARP_MIN_TEAM_SIZE=2",
            "UCC_TL_SHARP_TEAM_MAX_PPN=",
            "UCC_TL_SHARP_TUNE=inf",
        ];
        let seen = ["UCC_COLL_TRACE=info", "`trib status`", "tributary: sharp_coll_init: Cannot create SHARP job"];
        let faults = ["UCC_OP_MAXLOC", "In-place reduce-scatter", "UCC_CLS=hier", "UCC_CL_HIER_NODE_LEADERS_SBGP_TLS="];
        for words in needed.iter().chain(&seen).chain(&faults) {
            assert!(section.contains(words), "docs/sharp-coll.md, \"With UCC\", no longer tells {words}");
        }
    }

    #[test]
    fn every_setting_is_there_once() {
        let names: std::collections::BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
        assert!(SETTINGS.iter().all(|setting| !setting.doc.is_empty() && setting.name.starts_with("SHARP_")));
    }
}
