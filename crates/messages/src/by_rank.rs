//! Lists with an entry for each rank of a job.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use trib_wire::ranks::WORLD_MAX;

/// Reads a list of at most [`WORLD_MAX`] entries. A longer one is refused at the first entry that
/// is too many: an entry takes many times the bytes that it has in a message.
pub(crate) fn read<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_seq(Entries(PhantomData))
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list by rank")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = from.next_element()? {
            if entries.len() == WORLD_MAX as usize {
                return Err(A::Error::custom(alloc::format!("a job has at most {WORLD_MAX} ranks")));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    #[derive(serde::Deserialize)]
    struct Named {
        #[serde(deserialize_with = "read")]
        hosts: Vec<String>,
    }

    #[test]
    fn a_list_has_an_entry_for_each_rank_and_no_more() {
        let of = |count: usize| {
            let hosts = ["\"\""].repeat(count).join(",");
            serde_json::from_str::<Named>(&alloc::format!("{{\"hosts\":[{hosts}]}}")).map(|named| named.hosts.len())
        };
        assert_eq!(of(3).ok(), Some(3));
        assert_eq!(of(WORLD_MAX as usize).ok(), Some(WORLD_MAX as usize));
        assert!(of(WORLD_MAX as usize + 1).unwrap_err().to_string().contains("at most 1048576 ranks"));
    }
}
