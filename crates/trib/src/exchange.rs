//! The out-of-band exchange of ranks that are threads of one process: a channel in each direction
//! between rank 0 and every other rank.

use std::sync::mpsc::{Receiver, Sender, channel};

use trib_client::OutOfBand;

/// One rank's end of the exchange.
pub(crate) enum Exchange {
    /// Rank 0's end: the lines to all other ranks, in rank order.
    Root(Vec<Line>),
    /// Another rank's end: the line to rank 0.
    Other(Line),
}

/// One end of a line between two ranks.
pub(crate) struct Line {
    from: Receiver<Vec<u8>>,
    to: Sender<Vec<u8>>,
}

impl Exchange {
    /// The ends of all ranks, in rank order.
    pub(crate) fn among(ranks: u32) -> Vec<Exchange> {
        let mut root = Vec::new();
        let mut others = Vec::new();
        for _ in 1..ranks {
            let ((up, from_other), (down, from_root)) = (channel(), channel());
            root.push(Line { from: from_other, to: down });
            others.push(Exchange::Other(Line { from: from_root, to: up }));
        }
        std::iter::once(Exchange::Root(root)).chain(others).collect()
    }
}

impl OutOfBand for Exchange {
    fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32> {
        match self {
            Exchange::Root(others) => {
                let mut blocks = all.ok_or(MISUSED)?.chunks_exact_mut(mine.len());
                blocks.next().ok_or(MISUSED)?.copy_from_slice(mine);
                for Line { from, .. } in others {
                    blocks.next().ok_or(MISUSED)?.copy_from_slice(&from.recv().map_err(|_| GONE)?);
                }
                Ok(())
            }
            Exchange::Other(Line { to, .. }) => to.send(mine.to_vec()).map_err(|_| GONE),
        }
    }

    fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32> {
        match self {
            Exchange::Root(others) => {
                others.iter().try_for_each(|Line { to, .. }| to.send(bytes.to_vec()).map_err(|_| GONE))
            }
            Exchange::Other(Line { from, .. }) => {
                bytes.copy_from_slice(&from.recv().map_err(|_| GONE)?);
                Ok(())
            }
        }
    }
}

/// The code for an other rank that has given up.
const GONE: i32 = 1;
/// The code for lengths that do not fit.
const MISUSED: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_gather_at_the_first_and_hear_from_it() {
        let ends = Exchange::among(3);
        std::thread::scope(|scope| {
            for (rank, mut end) in ends.into_iter().enumerate() {
                scope.spawn(move || {
                    let mut all = [0; 6];
                    end.gather(&[rank as u8, 9], (rank == 0).then_some(&mut all[..])).unwrap();
                    assert!(rank != 0 || all == [0, 9, 1, 9, 2, 9]);
                    let mut word = [rank as u8 + 7];
                    end.bcast(&mut word).unwrap();
                    assert_eq!(word, [7]);
                });
            }
        });
    }

    #[test]
    fn who_is_alone_hears_that_the_others_are_gone() {
        let mut ends = Exchange::among(2);
        drop(ends.pop());
        assert_eq!(ends[0].gather(&[1], Some(&mut [0; 2])), Err(GONE));
    }
}
