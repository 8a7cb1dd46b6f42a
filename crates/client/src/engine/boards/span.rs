//! How a group lies on several hosts.
//!
//! ```text
//!   group     0  1  2  3  4  5  6
//!   hosts    |  h0   |  h1  |h2 |     local: the members here
//!   heads     0        3      6       one of each host: its first member
//! ```
//! The heads are a group of their own, in which each gives what its host has come to. All members
//! know all of this from the job's tree, so they agree without a word.

use trib_transport::memory::{Board, MEMBERS_MAX};
use trib_wire::{NodeId, RankList};

use super::shape::{HostTrees, Shape, shape_of};

/// A group of several hosts, as one of its members sees it.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// The host of each member.
    host_of: Vec<u32>,
    /// The first member of each host.
    heads: Vec<u32>,
    /// This member, and its host.
    me: u32,
    home: u32,
    /// The members on it.
    local: Vec<u32>,
    /// How these are folded, by their positions among themselves.
    shape: Shape,
    /// All members in the order in which their blocks take turns.
    turns: Vec<u32>,
    /// The bytes of a piece. All hosts cut alike, so that of the fullest host counts.
    piece_len: usize,
}

impl Span {
    /// `None` if the group has one member on each host, so that none has anybody to share memory
    /// with, or is on one host, or has more members on a host than a board has.
    pub(super) fn of(trees: &HostTrees, members: &RankList, me: u32) -> Option<Span> {
        let mut tops: Vec<Top> = Vec::new();
        let mut all: Vec<Vec<u32>> = Vec::new();
        let mut host_of = Vec::with_capacity(members.len() as usize);
        let mut ways = Vec::new();
        for (member, rank) in (0..).zip(members.iter()) {
            let (top, way) = match trees.way(rank.0) {
                Some((node, way)) => (Top::Node(node), way),
                // A rank that is alone on its host has no node there.
                None => (Top::Rank(rank.0), Vec::new()),
            };
            ways.push(way);
            let host = tops.iter().position(|other| *other == top).unwrap_or(tops.len());
            if host == tops.len() {
                tops.push(top);
                all.push(Vec::new());
            }
            all[host].push(member);
            host_of.push(host as u32);
        }
        let most = all.iter().map(Vec::len).max().unwrap_or(0);
        if tops.len() < 2 || !(2..=MEMBERS_MAX).contains(&most) {
            return None;
        }
        let home = *host_of.get(me as usize)?;
        let local = all[home as usize].clone();
        let own: Vec<_> = local.iter().enumerate().map(|(at, member)| (at, ways[*member as usize].clone())).collect();
        let shape = shape_of(&own, 0)?;
        // A tree that is none would be one at each host that it has, and is not at another.
        let is_tree = |members: &Vec<u32>| {
            let ways: Vec<_> =
                members.iter().map(|member| (*member as usize, ways[*member as usize].clone())).collect();
            shape_of(&ways, 0).is_some()
        };
        if !all.iter().all(is_tree) {
            return None;
        }
        let heads = all.iter().filter_map(|members| members.first().copied()).collect();
        let piece_len = Board::piece_len_of(most)?;
        let turns = (0..most).flat_map(|at| all.iter().filter_map(move |members| members.get(at).copied())).collect();
        Some(Span { host_of, heads, me, home, local, turns, shape, piece_len })
    }

    /// The members on this host, by their positions in the group.
    pub(super) fn local(&self) -> &[u32] {
        &self.local
    }

    /// How these are folded, by their positions among themselves.
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes of a piece on each of the group's boards.
    pub(super) fn piece_len(&self) -> usize {
        self.piece_len
    }

    /// How many members the group has.
    pub(super) fn size(&self) -> u32 {
        self.host_of.len() as u32
    }

    /// Which of them this is.
    pub(super) fn me(&self) -> u32 {
        self.me
    }

    /// How many hosts there are.
    pub(super) fn hosts(&self) -> u32 {
        self.heads.len() as u32
    }

    /// Which of them is this one.
    pub(super) fn home(&self) -> u32 {
        self.home
    }

    /// The host of a member, and which of the members here that is, if it is here.
    pub(super) fn find(&self, member: u32) -> Option<(u32, Option<u32>)> {
        let host = *self.host_of.get(member as usize)?;
        Some((host, self.local.iter().position(|other| *other == member).map(|at| at as u32)))
    }

    /// The member that has this turn where the blocks of all take turns. Hosts alternate: to the
    /// host whose turn it is nothing comes down meanwhile, and what comes next makes up for it only
    /// as far as the board has room.
    pub(super) fn turn(&self, turn: u32) -> u32 {
        self.turns[turn as usize]
    }

    /// The ranks of the heads, of a group of these members.
    pub(super) fn heads(&self, members: &RankList) -> RankList {
        RankList::from_ranks(self.heads.iter().filter_map(|head| members.nth(*head)).map(|rank| rank.0))
    }
}

/// What the ranks of a host have in common in the job's tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Top {
    Node(NodeId),
    Rank(u32),
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::trees;
    use super::*;

    /// Hosts 1 and 2 are below leaf 0, which is in no rank; rank 5 is alone.
    fn three_hosts() -> HostTrees {
        let nodes = [(1, Some((0, 0))), (2, Some((0, 1)))];
        trees(&nodes, &[(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (0, 2)])
    }

    fn span(ranks: &[u32], me: u32) -> Option<Span> {
        Span::of(&three_hosts(), &RankList::from_ranks(ranks.iter().copied()), me)
    }

    #[test]
    fn all_members_see_the_same_hosts_and_heads() {
        let ranks = [3, 0, 5, 1, 2, 4];
        let members = RankList::from_ranks(ranks);
        for (me, home, local) in [(0, 0, vec![0, 3]), (1, 1, vec![1, 4, 5]), (2, 2, vec![2])] {
            let span = span(&ranks, me).unwrap();
            assert_eq!((span.hosts(), span.home(), span.local()), (3, home, &local[..]));
            assert_eq!(span.heads(&members), RankList::from_ranks([3, 0, 5]));
            assert_eq!(span.piece_len(), Board::piece_len_of(3).unwrap());
        }
        let span = span(&ranks, 4).unwrap();
        assert_eq!((span.find(5), span.find(3), span.find(9)), (Some((1, Some(2))), Some((0, None)), None));
        assert_eq!(*span.shape(), Shape::Node([0, 1, 2].map(Shape::Member).to_vec()));
    }

    #[test]
    fn where_blocks_take_turns_hosts_alternate() {
        // Ranks 0, 2 and 4 are on one host, 1 and 3 on another, and 5 alone.
        let span = span(&[0, 2, 1, 3, 4, 5], 0).unwrap();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|turn| span.turn(turn)), [0, 2, 5, 1, 3, 4]);
    }

    #[test]
    fn a_group_that_shares_no_memory_or_a_single_host_spans_nothing() {
        assert!(span(&[0, 1, 5], 0).is_none(), "one on each host");
        assert!(span(&[0, 2, 4], 0).is_none(), "one host");
        assert!(span(&[0, 2, 5], 2).is_some(), "also the one that is alone takes part");
    }
}
