//! Which variables of ours all ranks get.

/// Those that belong to one host or to one rank.
pub(crate) const OF_ONE: [&str; 6] =
    ["TRIB_HOST", "TRIB_NUMA", "TRIB_RANK", "TRIB_SIZE", "TRIB_LOCAL_RANK", "TRIB_RENDEZVOUS"];

/// Whether a variable of ours means the same on every host and in every rank.
pub fn is_for_all(name: &str) -> bool {
    name.starts_with("TRIB_") && !OF_ONE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_host_stays_on_it() {
        assert!(is_for_all("TRIB_MANAGER") && is_for_all("TRIB_HOSTS_FILE"));
        assert!(!is_for_all("TRIB_HOST") && !is_for_all("TRIB_RANK") && !is_for_all("PATH"));
    }
}
