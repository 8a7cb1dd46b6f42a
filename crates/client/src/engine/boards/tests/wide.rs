//! Members on several hosts, and a network between their heads that takes its time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use trib_wire::ids::CHILDREN_MAX;
use trib_wire::{NodeId, Rank};

use super::super::running::Broken;
use super::super::shape::HostTrees;
use super::super::shape::tests::trees;
use super::super::span::Span;
use super::*;

/// What the heads have posted, host by host, and the network has not carried yet.
#[derive(Default)]
pub(super) struct Network {
    pub(super) posted: Vec<VecDeque<Piece>>,
    /// The head of each host.
    heads: Vec<Rank>,
    failed: Option<Fault>,
    /// The head of some host is gone, or heads have called different operations.
    is_cut: bool,
}

/// What a head has posted, with the mark of the call.
pub(super) type Piece = ((Signature, u16), Memory, Arc<Completion>);

pub(super) struct Line {
    network: Rc<RefCell<Network>>,
    pub(super) host: usize,
}

impl Trunk for Line {
    fn post(
        &mut self,
        (_, mark): (u64, u16),
        signature: Signature,
        _: u64,
        memory: Memory,
    ) -> Result<Arc<Completion>, Fault> {
        let completion = Arc::new(Completion::on_lane(0, signature));
        self.network.borrow_mut().posted[self.host].push_back(((signature, mark), memory, completion.clone()));
        Ok(completion)
    }

    fn fault(&self) -> Fault {
        self.network.borrow().failed.unwrap()
    }
}

impl Network {
    /// The head of a host is gone, and the group of the heads with it.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Carries the next operation that all heads have posted, in the order of the hosts.
    pub(super) fn carry(&mut self) -> bool {
        if self.is_cut || self.posted.is_empty() || self.posted.iter().any(VecDeque::is_empty) {
            return false;
        }
        let mut all: Vec<_> = self.posted.iter_mut().filter_map(VecDeque::pop_front).collect();
        let (signature, mark) = all[0].0;
        if let Some(host) = all.iter().position(|(other, ..)| *other != (signature, mark)) {
            let (rank_a, rank_b) = (self.heads[0], self.heads[host]);
            let signatures = Some((signature, all[host].0.0));
            self.is_cut = true;
            self.failed = Some(Fault { reason: Reason::Mismatch, node: NodeId(0), rank_a, rank_b, signatures });
            all.iter().for_each(|(.., completion)| completion.finish(Err(Error::broken("they differ"))));
            return true;
        }
        let hosts = all.len() as u32;
        let given = |(host, (_, memory, _)): (usize, &Piece)| {
            let elements = trib_proto::window::given(&signature, hosts, host as u32);
            // SAFETY: the board is mapped, and its first member has said that this is there.
            let bytes = || unsafe { memory.input_of(&elements) }.to_vec();
            if elements.is_empty() { Vec::new() } else { bytes() }
        };
        let blocks: Vec<Vec<u8>> = all.iter().enumerate().map(given).collect();
        let result = match signature.collective {
            Collective::Barrier => Vec::new(),
            Collective::Bcast => blocks[signature.root as usize].clone(),
            _ if signature.op == ReduceOp::Min => {
                let least = |all: Vec<u8>, block: &Vec<u8>| all.iter().zip(block).map(|(a, b)| *a.min(b)).collect();
                blocks.iter().cloned().fold(vec![u8::MAX; blocks[0].len()], |all, block| least(all, &block))
            }
            Collective::Allgather => blocks.concat(),
            _ if signature.dtype == DataType::U8 => {
                let laid_over = |all: Vec<u8>, block: &Vec<u8>| all.iter().zip(block).map(|(a, b)| a | b).collect();
                blocks.iter().fold(vec![0; blocks[0].len()], laid_over)
            }
            _ => fold_plainly(&Shape::Node((0..all.len()).map(Shape::Member).collect()), &blocks),
        };
        for (host, (_, memory, completion)) in all.iter_mut().enumerate() {
            let elements = trib_proto::window::gotten(&signature, hosts, host as u32);
            if !elements.is_empty() {
                let into = memory.gotten_at(&elements).unwrap();
                // SAFETY: there are as many bytes as the result has, and they are this host's.
                unsafe { core::ptr::copy_nonoverlapping(result.as_ptr(), into, result.len()) };
            }
            completion.finish(Ok(()));
        }
        true
    }
}

/// A group of several hosts.
pub(super) struct Wide {
    /// In the order of the group, with the host of each and the way from there.
    pub(super) members: Vec<(Running, Bell, Line)>,
    pub(super) network: Rc<RefCell<Network>>,
    /// The fold of all.
    pub(super) shape: Shape,
}

/// A tree with a node for each host, and ranks on hosts in turn; a host may have one rank only.
fn tree(sizes: &[usize], order: &[usize]) -> HostTrees {
    let nodes: Vec<_> = (1..).zip(sizes).map(|(node, _)| (node, Some((0, node)))).collect();
    let mut seats: Vec<(u16, u16)> = Vec::new();
    for (host, size) in (1u16..).zip(sizes) {
        seats.extend((0..*size as u16).map(|seat| (host, seat)));
    }
    let leaves: Vec<(u16, u16)> = order.iter().map(|at| seats[*at]).collect();
    trees(&nodes, &leaves)
}

/// How the group lies on its hosts, as each of its members sees it.
pub(super) fn spans(sizes: &[usize], order: &[usize]) -> Vec<Span> {
    let (trees, ranks) = (tree(sizes, order), RankList::world(order.len() as u32));
    (0..order.len() as u32).map(|me| Span::of(&trees, &ranks, me).unwrap()).collect()
}

/// The members on this host.
fn of_host(spans: &[Span], host: u32) -> Vec<u32> {
    (0u32..).zip(spans).filter(|(_, span)| span.home() == host).map(|(member, _)| member).collect()
}

impl Wide {
    /// `order` says which of the seats, counted host by host, each rank has.
    pub(super) fn new(sizes: &[usize], order: &[usize]) -> Wide {
        let spans = spans(sizes, order);
        let members = (0..spans[0].hosts()).flat_map(|host| {
            let local = of_host(&spans, host);
            let (board, memory) = Board::create(local.len()).unwrap();
            let others = (1..local.len()).map(|me| Board::open(&memory, local.len(), me).unwrap());
            let bells: Vec<Bell> = local.iter().map(|_| Bell::new().unwrap()).collect();
            let names: Vec<_> = bells.iter().map(|bell| BellAddress::of(bell.name()).unwrap()).collect();
            let own = RankList::from_ranks(local.iter().copied());
            let boards: Vec<Board> = std::iter::once(board).chain(others).collect();
            let running = |(member, board): (u32, Board)| {
                let span = spans[member as usize].clone();
                let running = Running::new(board, span.shape().clone(), own.clone(), names.clone(), true);
                (member, running.with_span(span))
            };
            local.into_iter().zip(boards).map(running).zip(bells).collect::<Vec<_>>()
        });
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|((member, _), _)| *member);
        Wide::of(&spans, members.into_iter().map(|((_, running), bell)| (running, bell)).collect())
    }

    /// A group whose members have their boards, in the order of the group.
    pub(super) fn of(spans: &[Span], members: Vec<(Running, Bell)>) -> Wide {
        let network = Rc::new(RefCell::new(Network::default()));
        network.borrow_mut().heads = spans[0].heads(&RankList::world(spans.len() as u32)).iter().collect();
        network.borrow_mut().posted = (0..spans[0].hosts()).map(|_| VecDeque::new()).collect();
        let part = |host| {
            let local = of_host(spans, host);
            renamed(spans[local[0] as usize].shape(), &local)
        };
        let shape = Shape::Node((0..spans[0].hosts()).map(part).collect());
        let with_line = |((running, bell), span): ((Running, Bell), &Span)| {
            (running, bell, Line { network: network.clone(), host: span.home() as usize })
        };
        Wide { members: members.into_iter().zip(spans).map(with_line).collect(), network: network.clone(), shape }
    }

    /// A group of one host, as one that has no others.
    pub(super) fn alone(members: Vec<(Running, Bell)>, shape: Shape) -> Wide {
        let network = Rc::new(RefCell::new(Network::default()));
        let with_line = |(running, bell)| (running, bell, Line { network: network.clone(), host: 0 });
        Wide { members: members.into_iter().map(with_line).collect(), network: network.clone(), shape }
    }

    fn post(&mut self, member: u32, draw: Draw, turn: u64) -> Posted {
        let size = self.members.len() as u32;
        let (posted, memory, signature) = prepare((member, size), draw, turn, &self.shape);
        let (running, bell, line) = &mut self.members[member as usize];
        running.post(signature, memory, posted.completion.clone());
        let _ = running.advance(bell, line);
        posted
    }

    fn go_on(&mut self, member: u32) -> Result<(), Broken> {
        let (running, bell, line) = &mut self.members[member as usize];
        running.advance(bell, line).map(|_| ())
    }
}

/// The same shape over these members.
fn renamed(shape: &Shape, members: &[u32]) -> Shape {
    match shape {
        Shape::Member(at) => Shape::Member(members[*at] as usize),
        Shape::Node(parts) => Shape::Node(parts.iter().map(|part| renamed(part, members)).collect()),
    }
}

/// What goes over boards, in a group of up to nine members: blocks are short, or take turns.
fn served() -> impl Strategy<Value = Draw> {
    draws().prop_map(|draw| match draw.collective {
        Collective::Allgather | Collective::ReduceScatter if draw.count < 2048 => {
            Draw { count: draw.count % 57, ..draw }
        }
        _ => draw,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Members post and go on in any order, and so does the network; every result has the bits of
    /// the tree.
    #[test]
    fn results_have_the_bits_of_the_tree_in_whatever_order_hosts_go_on(
        sizes in prop::collection::vec(1usize..4, 2..4),
        order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle(),
        mut program in prop::collection::vec(served(), 1..8),
        steps in prop::collection::vec((0u32..14, any::<bool>()), 1..200),
    ) {
        let size: usize = sizes.iter().sum();
        prop_assume!(sizes.iter().any(|size| *size > 1));
        let order: Vec<usize> = order.into_iter().filter(|seat| *seat < size).collect();
        let mut wide = Wide::new(&sizes, &order);
        program.iter_mut().for_each(|draw| draw.root %= size as u32);
        let mut posted: Vec<Vec<Posted>> = (0..size).map(|_| Vec::new()).collect();
        let later = (0u32..).map(|turn| (turn, turn % 11 == 0));
        let mut count = 0;
        for (who, posts) in steps.into_iter().chain(later) {
            let who = who as usize % (size + 1);
            if who == size {
                wide.network.borrow_mut().carry();
                continue;
            }
            match program.get(posted[who].len()).filter(|_| posts) {
                Some(draw) => {
                    let turn = posted[who].len() as u64;
                    posted[who].push(wide.post(who as u32, *draw, turn));
                }
                None => prop_assert_eq!(wide.go_on(who as u32), Ok(())),
            }
            let is_over = |posted: &Vec<Posted>| {
                posted.len() == program.len() && posted.iter().all(|posted| posted.completion.is_done())
            };
            if posted.iter().all(is_over) {
                break;
            }
            count += 1;
            prop_assert!(count < 50_000, "members wait for each other for ever");
        }
        check(&posted, &program)?;
        prop_assert!(wide.members.iter().all(|(running, ..)| !running.is_busy()));
        prop_assert!(wide.network.borrow().posted.iter().all(VecDeque::is_empty));
    }
}

/// Two members on each of two hosts, in the order of the hosts.
fn two_hosts() -> Wide {
    Wide::new(&[2, 2], &[0, 1, 2, 3])
}

const SUM: Draw = Draw { collective: Collective::Allreduce, count: 9, root: 0, in_place: false };

#[test]
fn a_member_that_called_something_else_is_found_by_who_sees_both() {
    // Between members of a host, one of which looks for an answer that it will not get.
    for odd in [Draw { count: 8, ..SUM }, Draw { collective: Collective::Bcast, ..SUM }] {
        let mut wide = two_hosts();
        let _kept: Vec<Posted> =
            (0..4).map(|member| wide.post(member, if member == 1 { odd } else { SUM }, 0)).collect();
        let fault = wide.go_on(0).unwrap_err().fault;
        assert_eq!((fault.reason, fault.rank_a.0, fault.rank_b.0), (Reason::Mismatch, 0, 1), "{odd:?}");
        assert!(!wide.network.borrow_mut().carry(), "nothing of it leaves the host");
    }
    // Between hosts: the tree finds it, and the heads hear of it.
    let mut wide = two_hosts();
    let of = |member: u32| if member < 2 { SUM } else { Draw { count: 8, ..SUM } };
    let _kept: Vec<Posted> = (0..4).map(|member| wide.post(member, of(member), 0)).collect();
    [0, 2].into_iter().for_each(|head| wide.go_on(head).unwrap());
    assert!(wide.network.borrow_mut().carry());
    for head in [0, 2] {
        assert_eq!(wide.go_on(head).unwrap_err().fault.reason, Reason::Mismatch);
    }
}

#[test]
fn who_leaves_is_missed_by_the_first_and_the_first_by_the_others() {
    let mut wide = two_hosts();
    let _kept = wide.post(0, SUM, 0);
    let (running, bell, _) = &mut wide.members[1];
    running.leave(bell);
    let fault = wide.go_on(0).unwrap_err().fault;
    assert_eq!((fault.reason, fault.rank_a.0), (Reason::MemberLeft, 1));
    let mut wide = two_hosts();
    let _kept = wide.post(1, SUM, 0);
    let (running, bell, _) = &mut wide.members[0];
    running.leave(bell);
    let fault = wide.go_on(1).unwrap_err().fault;
    assert_eq!((fault.reason, fault.rank_a.0), (Reason::MemberLeft, 0));
}

#[test]
fn who_waits_for_an_answer_sleeps_until_it_is_there() {
    let mut wide = two_hosts();
    let rung = |wide: &Wide, member: usize| is_rung(&wide.members[member].1);
    let mut kept = vec![wide.post(1, SUM, 0)];
    assert!(!wide.members[1].0.fall_asleep(), "nothing is there");
    kept.push(wide.post(0, SUM, 0));
    assert!(!rung(&wide, 1), "a member that does not fold is not woken for what others give");
    assert!(wide.members[0].0.flight().is_some() && !wide.members[0].0.fall_asleep());
    kept.push(wide.post(2, SUM, 0));
    kept.push(wide.post(3, SUM, 0));
    wide.go_on(2).unwrap();
    assert!(wide.network.borrow_mut().carry());
    assert!(wide.members[0].0.fall_asleep(), "the tree has brought it: no sleep");
    wide.go_on(0).unwrap();
    assert!(rung(&wide, 1));
    wide.go_on(1).unwrap();
    assert!(kept[..2].iter().all(|posted| posted.completion.is_done()));
}

#[test]
fn who_is_late_is_told_on_its_own_host() {
    let mut wide = two_hosts();
    let kept = [wide.post(0, SUM, 0), wide.post(2, SUM, 0)];
    let late = |wide: &Wide, member: usize| {
        wide.members[member].0.standstill(Nanos(0)).map(|standstill| standstill.late.to_string())
    };
    assert_eq!((late(&wide, 0), late(&wide, 2)), (Some("1".into()), Some("3".into())));
    let _third = wide.post(1, SUM, 0);
    wide.go_on(0).unwrap();
    assert_eq!((late(&wide, 0), late(&wide, 1)), (None, None), "the others are on another host");
    assert!(kept.iter().all(|posted| !posted.completion.is_done()));
}

#[test]
fn all_hosts_cut_alike() {
    let sizes = [1, CHILDREN_MAX];
    let order: Vec<usize> = (0..1 + CHILDREN_MAX).collect();
    let (trees, ranks) = (tree(&sizes, &order), RankList::world(order.len() as u32));
    let lens = [0, 1].map(|me| Span::of(&trees, &ranks, me).unwrap().piece_len());
    assert_eq!(lens, [Board::piece_len_of(CHILDREN_MAX).unwrap(); 2]);
}
