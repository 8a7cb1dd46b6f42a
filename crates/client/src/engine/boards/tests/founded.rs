//! Members that come to their boards by themselves: a seed draws who goes on, when the tree brings
//! what it carries, and which member may not attach. One that waits goes on only when its bell has
//! rung, the tree has brought it something, or it is time.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use trib_proto::leaf::GroupId;
use trib_wire::GroupName;

use super::super::founding::{Arrivals, Founding, Tree, Verdict};
use super::super::room::Seat;
use super::super::span::Span;
use super::super::{Plan, Reach};
use super::numbers::Draws;
use super::wide::{Network, spans};
use super::*;
use crate::engine::operation::Operation;
use crate::group_state::GroupState;

/// Why a member may not attach to the board of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// It may share no memory, and says so.
    Unwanted,
    /// Nobody reaches its bell: it is in another network namespace.
    OutOfReach,
    /// What comes cannot be mapped.
    Unmapped,
    /// The board is lost on its way.
    Lost,
    /// There is no group of the heads.
    NoHeads,
}

impl Refusal {
    pub(super) const ALL: [Refusal; 5] =
        [Refusal::Unwanted, Refusal::OutOfReach, Refusal::Unmapped, Refusal::Lost, Refusal::NoHeads];
}

/// What some members have begun, and the tree has not brought yet.
#[derive(Default)]
struct Above {
    network: Network,
    /// The group of the heads, at those that have begun to make it, with its key there.
    heads: Vec<(Key, Arc<GroupState>)>,
    /// How many such groups each member has begun with each tag.
    begun: BTreeMap<(usize, u64), u32>,
    refuses_heads: bool,
}

/// The tag of a group, and the number of its creation among those with that tag. All its members
/// have to come to the same.
type Key = (u64, u32);

impl Above {
    /// The members of another group take the same way.
    fn begin(&mut self, members: usize) {
        self.network.posted = (0..members).map(|_| VecDeque::new()).collect();
        self.heads.clear();
    }
}

/// A member's way to the tree.
struct Way<'a> {
    above: &'a RefCell<Above>,
    member: usize,
}

impl Tree for Way<'_> {
    fn post(&mut self, _: Nanos, signature: Signature, operation: Operation) -> Result<(), Error> {
        let Operation { memory, completion, .. } = operation;
        self.above.borrow_mut().network.posted[self.member].push_back(((signature, 0), memory, completion));
        Ok(())
    }

    fn begin_heads(&mut self, _: Nanos, _: RankList, tag: u64, state: Arc<GroupState>) -> Result<GroupId, Error> {
        let mut above = self.above.borrow_mut();
        if above.refuses_heads {
            return Err(Error::broken("no room for one more group"));
        }
        let begun = above.begun.entry((self.member, tag)).or_default();
        let key = (tag, *begun);
        *begun += 1;
        above.heads.push((key, state));
        Ok(GroupId(1))
    }
}

/// A member on its way to a board.
struct Candidate {
    /// None when it is decided.
    founding: Option<Box<Founding>>,
    running: Option<Running>,
    bell: Bell,
    arrivals: Arrivals,
    heads: Option<GroupId>,
    refusal: Option<Refusal>,
    /// The tree has brought something.
    has_news: bool,
    /// When it goes on by itself.
    due: Nanos,
}

impl Candidate {
    fn new(plan: Plan, ranks: &RankList, (me, seat): (usize, Seat), refusal: Option<Refusal>) -> Candidate {
        let state = GroupState::new(me as u32, ranks, 0, GroupName::default(), 1);
        let founding = Founding::new(GroupId(0), ranks.clone(), 0, &state, plan, seat);
        Candidate {
            founding: Some(Box::new(founding)),
            running: None,
            bell: Bell::new().unwrap(),
            arrivals: Arrivals::default(),
            heads: None,
            refusal,
            has_news: false,
            due: Nanos(0),
        }
    }

    fn is_due(&self, now: Nanos) -> bool {
        self.founding.is_some() && (self.has_news || now >= self.due || has_rung(&self.bell))
    }

    fn go_on(&mut self, now: Nanos, way: &mut Way<'_>) {
        let Candidate { bell, arrivals, refusal, heads, .. } = self;
        bell.clear(|token, memory| match refusal {
            Some(Refusal::Lost) => {}
            // That of a group with more members.
            Some(Refusal::Unmapped) => arrivals.add(token, Board::create(9).unwrap().1),
            _ => arrivals.add(token, memory),
        });
        self.has_news = false;
        let is_first = self.due == Nanos(0);
        let shared = Some(&*bell).filter(|_| *refusal != Some(Refusal::Unwanted));
        let Some(founding) = self.founding.take() else { return };
        match founding.advance(now, way, heads, shared, arrivals).unwrap() {
            Verdict::Open(founding) => {
                self.due = founding.deadline(now);
                self.founding = Some(founding);
            }
            Verdict::Board(running) => self.running = Some(*running),
            Verdict::Tree => {}
        }
        if is_first && *refusal == Some(Refusal::OutOfReach) {
            // The name is told, and nobody is there any more.
            self.bell = Bell::new().unwrap();
        }
    }
}

/// The members of a group with their boards, in their order; none if one may not attach: then all
/// go over the tree.
pub(super) fn found(
    plans: Vec<Plan>,
    ranks: &RankList,
    refused: Option<(Refusal, usize)>,
    draws: &mut Draws,
) -> Option<Vec<(Running, Bell)>> {
    found_over(&RefCell::new(Above::default()), plans, ranks, refused, draws)
}

fn found_over(
    above: &RefCell<Above>,
    plans: Vec<Plan>,
    ranks: &RankList,
    refused: Option<(Refusal, usize)>,
    draws: &mut Draws,
) -> Option<Vec<(Running, Bell)>> {
    let hosts = match &plans[0].reach {
        Reach::Host(_) => 1,
        Reach::Hosts(span) => span.hosts() as usize,
    };
    above.borrow_mut().begin(plans.len());
    above.borrow_mut().refuses_heads = refused.is_some_and(|(refusal, _)| refusal == Refusal::NoHeads);
    let of = |me| refused.filter(|(_, member)| *member == me).map(|(refusal, _)| refusal);
    // All on one processor, or each on one of its own.
    let processors: u64 = if draws.one_in(2) { 1 } else { 64 };
    let seat = Seat::read((processors << 32).to_le_bytes());
    let mut members: Vec<Candidate> =
        plans.into_iter().enumerate().map(|(me, plan)| Candidate::new(plan, ranks, (me, seat), of(me))).collect();
    let mut now = Nanos(0);
    for step in 0.. {
        assert!(step < 10_000, "it does not end");
        if members.iter().all(|member| member.founding.is_none()) {
            break;
        }
        let due: Vec<usize> = (0..members.len()).filter(|at| members[*at].is_due(now)).collect();
        let comes = (due.is_empty() || draws.one_in(4)) && bring(&mut above.borrow_mut(), hosts);
        if comes {
            members.iter_mut().for_each(|member| member.has_news = true);
        } else if due.is_empty() {
            let open = members.iter().filter(|member| member.founding.is_some());
            now = open.map(|member| member.due).min().unwrap();
            assert_ne!(now, Nanos::NEVER, "members wait for a board for ever");
        } else {
            let member = due[draws.below(due.len())];
            members[member].go_on(now, &mut Way { above, member });
            now = now + Nanos::from_millis(draws.below(3) as u64);
        }
    }
    let with_board = members.iter().filter(|member| member.running.is_some()).count();
    assert!([0, members.len()].contains(&with_board), "{with_board} of {} have a board", members.len());
    assert_eq!(with_board == 0, refused.is_some(), "{refused:?}");
    members.into_iter().map(|member| Some((member.running?, member.bell))).collect()
}

/// Brings the next operation that all members have posted, or makes the group of the heads when all
/// of them have begun it.
fn bring(above: &mut Above, hosts: usize) -> bool {
    if above.heads.len() == hosts && above.heads.windows(2).all(|pair| pair[0].0 == pair[1].0) {
        above.heads.drain(..).for_each(|(_, state)| state.ready.finish(Ok(())));
        return true;
    }
    above.network.carry()
}

/// Whether this member may be refused like this: who makes a board needs none to be sent, and one
/// host has no heads.
pub(super) fn fits(refusal: Refusal, span: Option<&Span>, member: usize) -> bool {
    let is_head = span.map_or(member == 0, |span| span.local()[0] == member as u32);
    match refusal {
        Refusal::Unwanted => true,
        Refusal::NoHeads => span.is_some(),
        Refusal::OutOfReach | Refusal::Unmapped | Refusal::Lost => !is_head,
    }
}

#[test]
fn heads_meet_in_a_group_though_one_of_them_has_left_the_one_before_early() {
    let (spans, ranks) = (spans(&[2, 2], &[0, 1, 2, 3]), RankList::world(4));
    let plan = |span: &Span| Plan { reach: Reach::Hosts(Box::new(span.clone())) };
    let above = RefCell::new(Above::default());
    above.borrow_mut().begin(spans.len());
    let seat = Seat::read((64u64 << 32).to_le_bytes());
    let candidate = |(me, span)| Candidate::new(plan(span), &ranks, (me, seat), None);
    let mut members: Vec<Candidate> = spans.iter().enumerate().map(candidate).collect();
    let go_on = |members: &mut Vec<Candidate>, member: usize| {
        members[member].go_on(Nanos(1), &mut Way { above: &above, member });
    };
    (0..4).for_each(|member| go_on(&mut members, member));
    assert!(bring(&mut above.borrow_mut(), 2), "all have told");
    // The head of the second host leaves before it has heard that.
    go_on(&mut members, 0);
    assert_eq!(above.borrow().heads.len(), 1, "the other head waits for it");
    drop(members);
    let plans = spans.iter().map(plan).collect();
    assert!(found_over(&above, plans, &ranks, None, &mut Draws(1)).is_some());
}
