//! Connections that have proven nothing yet. When there are too many, the oldest of the address
//! that has most of them gives way: an honest one has its proof in a moment.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, TcpStream};

/// These connections by number, in the order in which they came.
#[derive(Default)]
pub(super) struct Strangers {
    all: BTreeMap<u64, (IpAddr, Option<TcpStream>)>,
    last: u64,
}

impl Strangers {
    /// One more. It is closed when it has to give way, if that is possible.
    pub(super) fn enter(&mut self, address: IpAddr, stream: Option<TcpStream>) -> u64 {
        while self.all.len() >= STRANGERS_MAX {
            self.give_way();
        }
        self.last += 1;
        self.all.insert(self.last, (address, stream));
        self.last
    }

    fn give_way(&mut self) {
        let mut count: BTreeMap<IpAddr, usize> = BTreeMap::new();
        self.all.values().for_each(|(address, _)| *count.entry(*address).or_default() += 1);
        let Some((most, _)) = count.into_iter().max_by_key(|(_, count)| *count) else { return };
        let oldest = self.all.iter().find(|(_, (address, _))| *address == most).map(|(number, _)| *number);
        if let Some((_, Some(stream))) = oldest.and_then(|number| self.all.remove(&number)) {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// It has proven what it is, or has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.all.remove(&number);
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

/// The largest number of connections that have proven nothing yet.
const STRANGERS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_address_with_most_gives_way() {
        let mut strangers = Strangers::default();
        let (quiet, loud) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = strangers.enter(quiet, None);
        let loudest: Vec<u64> = (0..STRANGERS_MAX + 10).map(|_| strangers.enter(loud, None)).collect();
        assert_eq!(strangers.len(), STRANGERS_MAX);
        assert!(strangers.all.contains_key(&first) && !strangers.all.contains_key(&loudest[0]));
        strangers.leave(first);
        assert_eq!(strangers.len(), STRANGERS_MAX - 1);
    }
}
