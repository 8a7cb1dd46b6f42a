//! One test for each arrow of a creation's table, and what the node does there.

use trib_wire::{
    Body, ChildIndex, ChildKind, Fault, GroupKey, GroupName, Kind, Marks, NodeId, Placement, Rank, RankList, Reason,
    Standing,
};

use crate::liveness::NODE_PATIENCE;
use crate::node::config::{NodeChild, NodeConfig};
use crate::node::harness::{BOTH, Log, config, key};
use crate::node::{Frame, Link, NodeCore, Note, Target};
use crate::{Limits, Nanos, Path};

struct World {
    core: NodeCore<Vec<u8>>,
    out: Log,
}

impl World {
    fn root() -> World {
        World { core: NodeCore::new(config(None)), out: Log::default() }
    }

    fn below_a_parent() -> World {
        World { core: NodeCore::new(config(Some((NodeId(0), ChildIndex(0))))), out: Log::default() }
    }

    fn frame(&mut self, link: Link, kind: Kind, body: &Body) {
        let header = match link {
            Link::Parent => self.core.identity.up(kind).expect("there is a parent"),
            Link::Child(child) => self.core.identity.down(kind, child),
        };
        let frame = Frame { path: Path::Stream, header: &header, body, data: None };
        self.core.on_frame(Nanos(0), link, frame, &mut self.out);
    }

    fn join(&mut self, child: u16, fault: Option<Fault>) {
        self.join_of(key(), child, (fault, Standing::NEW));
    }

    fn join_of(&mut self, key: GroupKey, child: u16, (fault, standing): (Option<Fault>, Standing)) {
        let (nodes, name) = (RankList::EMPTY, GroupName::default());
        let body = Body::Join { key, fault, standing, nodes, name };
        self.frame(Link::Child(ChildIndex(child)), Kind::Join, &body);
    }

    /// Both children join a group, and there is room for one.
    fn both_join(&mut self, tag: u64, standing: Standing) {
        (0..2).for_each(|child| self.join_of(tagged(tag), child, (None, standing)));
    }

    /// What was sent since the last call: where to, and of which kind.
    fn sent(&mut self) -> Vec<(Target, Kind)> {
        self.out.take_sent().into_iter().map(|sent| (sent.target, sent.kind)).collect()
    }

    /// The same without questions.
    fn told(&mut self) -> Vec<(Target, Kind)> {
        self.sent().into_iter().filter(|(_, kind)| *kind != Kind::Ask).collect()
    }
}

fn tagged(tag: u64) -> GroupKey {
    GroupKey { tag, ..key() }
}

/// What is said of a group that was there in the epoch before.
fn there(freed: bool) -> Standing {
    Standing { resumed: true, exists: true, freed, ..Standing::NEW }
}

fn fault() -> Fault {
    Fault { reason: Reason::GroupQuota, node: NodeId(0), rank_a: Rank(0), rank_b: Rank(0), signatures: None }
}

#[test]
fn when_all_have_joined_the_parent_is_asked() {
    let mut world = World::below_a_parent();
    world.join(1, None);
    assert_eq!(world.sent(), [], "one has joined");
    world.join(0, None);
    assert_eq!(world.sent(), [(Target::Parent, Kind::Join)]);
    assert_eq!(world.core.groups(), 1);
}

#[test]
fn the_parents_yes_makes_the_group() {
    let mut world = World::below_a_parent();
    world.join(0, None);
    world.join(1, None);
    world.sent();
    world.frame(Link::Parent, Kind::Ready, &Body::Ready(key(), Marks::default()));
    assert_eq!(world.sent(), [(Target::Children(BOTH), Kind::Ready)]);
    assert_eq!(world.out.notes, [Note::GroupMade]);
}

#[test]
fn a_yes_before_all_have_joined_is_a_violation() {
    let mut world = World::below_a_parent();
    world.join(0, None);
    world.frame(Link::Parent, Kind::Ready, &Body::Ready(key(), Marks::default()));
    assert_eq!((world.sent(), world.out.notes), (vec![], vec![Note::Violation]));
}

#[test]
fn the_parents_no_is_passed_on() {
    let mut world = World::below_a_parent();
    world.join(0, None);
    world.join(1, None);
    world.sent();
    world.frame(Link::Parent, Kind::Refused, &Body::Refused(key(), fault()));
    assert_eq!(world.sent(), [(Target::Children(BOTH), Kind::Refused)]);
    assert_eq!(world.core.groups(), 0);
}

#[test]
fn a_parent_lost_while_joins_gather_refuses_those_that_have_joined() {
    let mut world = World::below_a_parent();
    world.join(1, None);
    world.core.on_link_down(Nanos(0), Link::Parent, &mut world.out);
    assert_eq!(world.sent(), [(Target::Children(0b10), Kind::Refused)]);
    world.join(0, None);
    assert_eq!(world.sent(), [(Target::Children(0b01), Kind::Refused)], "the other hears it when it joins");
}

#[test]
fn a_parent_lost_before_its_verdict_refuses_all() {
    let mut world = World::below_a_parent();
    world.join(0, None);
    world.join(1, None);
    world.sent();
    world.core.on_link_down(Nanos(0), Link::Parent, &mut world.out);
    assert_eq!(world.sent(), [(Target::Children(BOTH), Kind::Refused)]);
    assert_eq!(world.core.groups(), 0);
}

#[test]
fn the_root_makes_the_group_when_all_have_joined() {
    let mut world = World::root();
    world.join(0, None);
    world.join(1, None);
    assert_eq!(world.sent(), [(Target::Children(BOTH), Kind::Ready)]);
    assert_eq!(world.out.notes, [Note::GroupMade]);
}

#[test]
fn the_root_refuses_a_group_against_which_a_member_has_a_reason() {
    let mut world = World::root();
    world.join(0, Some(fault()));
    assert_eq!(world.sent(), [], "the other is waited for");
    world.join(1, None);
    assert_eq!(world.sent(), [(Target::Children(BOTH), Kind::Refused)]);
    assert_eq!(world.core.groups(), 0);
}

/// The root of a job that goes on when a node dies, with ranks 1 and 2 below another node.
fn above_a_node() -> World {
    let below = NodeChild { kind: ChildKind::Node(NodeId(2)), ranks: RankList::from_ranks([1, 2]) };
    let mut config = NodeConfig { recovers: true, world_size: 3, ..config(None) };
    config.children[1] = below;
    World { core: NodeCore::new(config), out: Log::default() }
}

#[test]
fn a_node_that_ends_after_its_last_rank_is_not_missed() {
    let mut world = above_a_node();
    let node = Link::Child(ChildIndex(1));
    world.frame(node, Kind::Lost, &Body::Lost(RankList::from_ranks([2])));
    world.frame(node, Kind::Lost, &Body::Lost(RankList::from_ranks([1])));
    world.core.on_link_down(Nanos(0), node, &mut world.out);
    assert_eq!(world.out.suspected, []);
}

#[test]
fn a_node_that_is_gone_before_its_last_rank_is_missed() {
    let mut world = above_a_node();
    let node = Link::Child(ChildIndex(1));
    world.frame(node, Kind::Lost, &Body::Lost(RankList::from_ranks([2])));
    world.core.on_link_down(Nanos(0), node, &mut world.out);
    assert_eq!(world.out.suspected, [NodeId(2)]);
}

/// What is said of a group with which all ranks below have done.
const ALL_LEFT: Standing = Standing { resumed: true, some_left: true, all_left: true, freed: true, ..Standing::NEW };

#[test]
fn a_node_that_was_taken_for_dead_hears_how_a_question_has_ended_that_it_has_put_to_its_ranks() {
    let mut world = above_a_node();
    let node = Link::Child(ChildIndex(1));
    world.frame(node, Kind::Lost, &Body::Lost(RankList::from_ranks([1, 2])));
    world.join_of(key(), 1, (None, ALL_LEFT));
    assert_eq!(world.sent(), [(Target::Children(0b10), Kind::Refused)]);
}

#[test]
fn a_rank_that_has_answered_hears_no_more_of_it_unless_it_stays_for_that() {
    for strict in [false, true] {
        let mut world = moved();
        world.core.identity.config.strict = strict;
        world.core.on_gone(Nanos(0), ChildIndex(1), &mut world.out);
        world.join_of(key(), 1, (None, ALL_LEFT));
        let refused = vec![(Target::Children(0b10), Kind::Refused)];
        assert_eq!(world.sent(), if strict { refused } else { vec![] });
    }
}

/// A node of two ranks that has come here in an epoch after the first.
fn moved() -> World {
    let config = NodeConfig { recovers: true, moves: 1, ..config(None) };
    World { core: NodeCore::new(config), out: Log::default() }
}

#[test]
fn who_is_known_to_be_gone_is_waited_for_only_if_it_has_called() {
    let told = |calls: bool| {
        let mut world = moved();
        world.core.on_link_up(Nanos(0), Link::Child(ChildIndex(0)), &mut world.out);
        if calls {
            world.core.on_link_up(Nanos(0), Link::Child(ChildIndex(1)), &mut world.out);
        }
        world.join(0, None);
        world.sent();
        world.core.on_gone(Nanos(0), ChildIndex(1), &mut world.out);
        (world.sent(), world.core.groups())
    };
    assert_eq!(told(false), (vec![(Target::Children(0b01), Kind::Refused)], 0));
    assert_eq!(told(true), (vec![], 1), "its connection says more");
}

#[test]
fn a_node_is_deserted_when_the_last_rank_below_is_gone() {
    let mut world = moved();
    let links = [0, 1].map(|child| Link::Child(ChildIndex(child)));
    world.core.on_link_up(Nanos(0), links[0], &mut world.out);
    assert!(!world.core.is_deserted(), "one is to call");
    world.core.on_link_down(Nanos(0), links[0], &mut world.out);
    assert!(!world.core.is_deserted(), "the other one is to call");
    world.core.on_gone(Nanos(0), ChildIndex(1), &mut world.out);
    assert!(world.core.is_deserted());
}

#[test]
fn a_silent_node_hears_over_its_link_that_the_others_have_gone() {
    let mut world = above_a_node();
    let nodes_link = Link::Child(ChildIndex(1));
    world.core.on_link_up(Nanos(0), nodes_link, &mut world.out);
    while world.core.next_deadline() <= NODE_PATIENCE {
        world.core.on_timer(world.core.next_deadline(), &mut world.out);
    }
    assert_eq!(world.out.suspected, [NodeId(2)]);
    assert_eq!(world.core.take_dead_links(), [], "the link is still needed");
    world.sent();
    world.core.move_to(&Placement::FIRST.without(NodeId(2)), &mut world.out);
    assert_eq!(world.sent(), [(Target::Children(0b10), Kind::Move)]);
}

#[test]
fn a_creation_waits_for_the_room_of_a_group_that_all_have_freed_before_the_epoch() {
    let mut world = World::root();
    world.both_join(1, there(true));
    world.told();
    world.both_join(2, Standing::NEW);
    assert_eq!(world.told(), [], "there is room for one, which will be free");
    world.frame(Link::Child(ChildIndex(0)), Kind::Leave, &Body::None);
    assert_eq!(world.told(), []);
    world.frame(Link::Child(ChildIndex(1)), Kind::Leave, &Body::None);
    assert_eq!(world.told(), [(Target::Children(BOTH), Kind::Ready)]);
}

#[test]
fn a_creation_does_not_wait_for_a_group_that_a_program_may_still_use() {
    let mut world = World::root();
    world.join_of(tagged(1), 0, (None, there(true)));
    world.join_of(tagged(1), 1, (None, there(false)));
    world.told();
    world.both_join(2, Standing::NEW);
    assert_eq!(world.told(), [(Target::Children(BOTH), Kind::Refused)]);
}

#[test]
fn only_the_root_waits_for_room_and_it_is_promised_once() {
    let mut world = World::below_a_parent();
    world.both_join(1, there(true));
    world.both_join(2, Standing::NEW);
    world.both_join(3, Standing::NEW);
    assert_eq!(world.told().len(), 3, "the parent hears of all");
    let faults = [1, 2, 3].map(|tag| world.core.pending[&tagged(tag)].fault.map(|fault| fault.reason));
    assert_eq!(faults, [None, None, Some(Reason::GroupQuota)]);

    let mut world = World::below_a_parent();
    world.both_join(1, there(true));
    world.frame(Link::Parent, Kind::Ready, &Body::Ready(tagged(1), Marks::default()));
    world.told();
    world.both_join(2, Standing::NEW);
    assert_eq!(world.told(), [(Target::Parent, Kind::Join)], "the parent knows that the other goes");
}

#[test]
fn a_creation_for_which_a_node_below_has_no_room_yet_waits_until_it_is_known_which_groups_stay() {
    let waits = Standing { waits: true, ..Standing::NEW };
    for freed in [true, false] {
        let mut world = World::root();
        world.join_of(tagged(1), 0, (None, there(freed)));
        world.both_join(2, waits);
        assert_eq!(world.told(), [], "a group of the epoch before is on its way");
        world.join_of(tagged(1), 1, (None, there(freed)));
        let refused = (Target::Children(BOTH), Kind::Refused);
        let made = (Target::Children(BOTH), Kind::Ready);
        assert_eq!(world.told(), if freed { vec![made] } else { vec![made, refused] });
    }
    let mut world = World::root();
    world.both_join(2, waits);
    assert_eq!(world.told(), [(Target::Children(BOTH), Kind::Ready)], "by now there is one");
}

#[test]
fn a_node_leaves_what_those_below_have_freed_in_this_epoch_before_it_asks_for_another_group() {
    let mut world = World::below_a_parent();
    world.join_of(tagged(1), 0, (None, there(true)));
    world.join_of(tagged(1), 1, (None, there(false)));
    world.frame(Link::Parent, Kind::Ready, &Body::Ready(tagged(1), Marks::default()));
    world.frame(Link::Child(ChildIndex(1)), Kind::Leave, &Body::None);
    world.told();
    world.both_join(2, Standing::NEW);
    assert_eq!(world.told(), [], "the parent does not know yet that the room will be free");
    world.frame(Link::Child(ChildIndex(0)), Kind::Leave, &Body::None);
    assert_eq!(world.told(), [(Target::Parent, Kind::Leave), (Target::Parent, Kind::Join)]);
    let fault = world.core.pending[&tagged(2)].fault;
    assert_eq!(fault, None);
}

#[test]
fn a_group_that_all_below_have_done_with_takes_no_room() {
    let done = Standing { resumed: true, some_left: true, all_left: true, freed: true, ..Standing::NEW };
    // It takes none from a creation that comes behind it, and needs none beside a group that has
    // taken what there is.
    for order in [[(1, done), (2, Standing::NEW)], [(2, there(false)), (1, done)]] {
        let mut world = World::below_a_parent();
        world.frame(Link::Parent, Kind::Ask, &Body::Ask(tagged(1)));
        order.iter().for_each(|(tag, standing)| world.both_join(*tag, *standing));
        assert_eq!(world.told(), [(Target::Parent, Kind::Join), (Target::Parent, Kind::Join)]);
        let faults = [1, 2].map(|tag| world.core.pending[&tagged(tag)].fault);
        assert_eq!(faults, [None, None]);
        world.frame(Link::Parent, Kind::Ready, &Body::Ready(tagged(1), Marks::default()));
        assert_eq!(world.told(), [(Target::Parent, Kind::Leave)], "it is gone when it is made");
    }
}

/// A node of a job that may have many groups, and memory for few.
fn narrow(config: NodeConfig) -> World {
    let limits = Limits { groups: 1000, osts: 1000, control_memory: 1 << 16, ..config.limits };
    World { core: NodeCore::new(NodeConfig { limits, ..config }), out: Log::default() }
}

/// The root of such a job.
fn with_little_memory() -> World {
    narrow(config(None))
}

/// A node below another one in such a job, in an epoch after the first.
fn moved_with_little_memory() -> World {
    narrow(NodeConfig { recovers: true, moves: 1, ..config(Some((NodeId(0), ChildIndex(0)))) })
}

/// How many groups have memory there.
fn most_groups() -> u64 {
    let mut world = with_little_memory();
    let made = (0..1000).take_while(|tag| {
        world.both_join(*tag, Standing::NEW);
        world.sent() == [(Target::Children(BOTH), Kind::Ready)]
    });
    made.count() as u64
}

impl World {
    /// The control memory that groups and creations take, and the most that they may.
    fn control_memory(&self) -> (u64, u64) {
        let limits = &self.core.identity.config.limits;
        let taken = self.core.table.alive().bytes() + self.core.creations + self.core.reserved.bytes();
        (taken, limits.lists() + limits.creations())
    }
}

#[test]
fn groups_that_have_no_memory_are_refused_and_have_it_again_when_others_are_gone() {
    let mut world = with_little_memory();
    let made = (0..1000).take_while(|tag| {
        world.both_join(*tag, Standing::NEW);
        world.sent() == [(Target::Children(BOTH), Kind::Ready)]
    });
    let made = made.count() as u64;
    assert!((4..64).contains(&made), "{made}");
    world.frame(Link::Child(ChildIndex(0)), Kind::Leave, &Body::None);
    world.frame(Link::Child(ChildIndex(1)), Kind::Leave, &Body::None);
    world.sent();
    world.both_join(made, Standing::NEW);
    assert_eq!(world.sent(), [(Target::Children(BOTH), Kind::Ready)]);
    world.both_join(made + 1, Standing::NEW);
    assert_eq!(world.sent(), [(Target::Children(BOTH), Kind::Refused)]);
    let all = (world.core.table.alive().bytes(), world.core.creations, world.core.reserved.bytes());
    assert_eq!((all.1, all.2), (0, 0));
    assert!(all.0 <= world.core.identity.config.limits.lists());
}

#[test]
fn a_child_that_begins_more_creations_than_there_is_memory_for_is_cut_off() {
    let mut world = with_little_memory();
    let begun = (0..1000).take_while(|tag| {
        world.join_of(tagged(*tag), 0, (None, Standing::NEW));
        world.core.dead.is_empty()
    });
    let begun = begun.count();
    assert!((4..64).contains(&begun), "{begun}");
    assert_eq!(world.core.take_dead_links(), [Link::Child(ChildIndex(0))]);
    assert!(world.core.creations <= world.core.identity.config.limits.creations());
}

#[test]
fn all_groups_that_had_memory_come_again_at_once_in_a_later_epoch() {
    let made = most_groups();
    let mut world = narrow(NodeConfig { recovers: true, moves: 1, ..config(None) });
    (0..made).for_each(|tag| world.join_of(tagged(tag), 0, (None, there(false))));
    assert_eq!(world.core.take_dead_links(), [], "the other child is on its way");
    world.told();
    (0..made).for_each(|tag| world.join_of(tagged(tag), 1, (None, there(false))));
    assert_eq!(world.told(), vec![(Target::Children(BOTH), Kind::Ready); made as usize]);
    assert_eq!(world.core.creations, 0);
}

#[test]
fn a_child_that_brings_more_groups_into_an_epoch_than_there_is_memory_for_is_cut_off() {
    // Groups of its own are complete at once, and those of both wait for the other child.
    let of_one = |tag| GroupKey { members: RankList::from_ranks([0]), ..tagged(tag) };
    for key in [tagged as fn(u64) -> GroupKey, of_one] {
        let mut world = narrow(NodeConfig { recovers: true, moves: 1, ..config(None) });
        (0..1000).for_each(|tag| world.join_of(key(tag), 0, (None, there(false))));
        assert_eq!(world.core.take_dead_links(), [Link::Child(ChildIndex(0))]);
        let (taken, most) = world.control_memory();
        assert!(taken <= most, "{taken} of {most} bytes");
    }
}

#[test]
fn creations_that_wait_for_the_verdict_take_the_memory_of_groups() {
    let made = most_groups();
    let mut world = narrow(config(Some((NodeId(0), ChildIndex(0)))));
    world.core.identity.config.moves = 1;
    (0..made).for_each(|tag| world.both_join(tag, Standing::NEW));
    let joins = world.told().into_iter().filter(|told| *told == (Target::Parent, Kind::Join)).count();
    assert_eq!(joins as u64, made);
    assert_eq!((world.core.take_dead_links(), world.core.creations), (vec![], 0));
    world.both_join(made, Standing::NEW);
    let reason = world.core.pending[&tagged(made)].fault.map(|fault| fault.reason);
    assert_eq!(reason, Some(Reason::GroupMemory));
    // What is refused does not take the memory of groups.
    (0..=made).for_each(|tag| world.frame(Link::Parent, Kind::Refused, &Body::Refused(tagged(tag), fault())));
    assert_eq!((world.core.groups(), world.control_memory().0), (0, 0));
}

#[test]
fn a_parent_that_asks_for_more_groups_than_there_is_memory_for_is_cut_off() {
    let made = most_groups();
    let mut world = moved_with_little_memory();
    let ask = |world: &mut World, tag| world.frame(Link::Parent, Kind::Ask, &Body::Ask(tagged(tag)));
    (0..made).for_each(|tag| ask(&mut world, tag));
    assert_eq!(world.core.take_dead_links(), [], "it may ask for what there was");
    (made..1000).for_each(|tag| ask(&mut world, tag));
    assert_eq!(world.core.take_dead_links(), [Link::Parent]);
    let (taken, most) = world.control_memory();
    assert!(taken <= most, "{taken} of {most} bytes");
}

/// A root of little memory, with a node below it that says which nodes fold.
fn above_a_node_with_little_memory() -> (World, impl Fn(&mut World, u64, &RankList)) {
    let mut world = above_a_node();
    world.core.identity.config.limits = with_little_memory().core.identity.config.limits;
    let join = |world: &mut World, tag, nodes: &RankList| {
        let (nodes, name) = (nodes.clone(), GroupName::default());
        let body = Body::Join { key: tagged(tag), fault: None, standing: Standing::NEW, nodes, name };
        world.frame(Link::Child(ChildIndex(1)), Kind::Join, &body);
    };
    (world, join)
}

#[test]
fn lists_of_nodes_are_kept_as_runs_and_take_control_memory() {
    let most = with_little_memory().core.identity.config.limits.creations();
    // Numbers of nodes in one run, and such that two of them make one.
    let (one, many) = (RankList::world(65_534), RankList::from_ranks((0..300).map(|i| i * (i + 1) / 2)));
    assert_eq!(many.runs().len(), 150);
    let begun = [one, many].map(|nodes| {
        let (mut world, join) = above_a_node_with_little_memory();
        let begun = (0..1000).take_while(|tag| {
            join(&mut world, *tag, &nodes);
            world.core.dead.is_empty()
        });
        let begun = begun.count();
        assert_eq!(world.core.take_dead_links(), [Link::Child(ChildIndex(1))]);
        let kept = (begun * size_of_val(nodes.runs())) as u64;
        assert!(kept < world.core.creations && world.core.creations <= most, "{} bytes", world.core.creations);
        begun
    });
    assert!(begun[1] > 0 && begun[1] < begun[0], "{begun:?}");
}

#[test]
fn a_group_takes_the_memory_of_its_list_of_nodes_as_long_as_it_lives() {
    let (mut world, join) = above_a_node_with_little_memory();
    world.join(0, None);
    let own = world.control_memory().0;
    join(&mut world, key().tag, &RankList::from_ranks([2, 4, 9]));
    assert_eq!(world.sent().last(), Some(&(Target::Children(BOTH), Kind::Ready)));
    let group = world.control_memory().0;
    assert!(own < group && world.core.creations == 0, "{own} and {group} bytes");
    (0..2).for_each(|child| world.frame(Link::Child(ChildIndex(child)), Kind::Leave, &Body::None));
    assert_eq!(world.control_memory().0, 0);
}

#[test]
fn creations_that_wait_for_the_verdict_take_no_more_than_the_parent_gathers() {
    let most = with_little_memory().core.identity.config.limits.creations();
    let mut world = narrow(config(Some((NodeId(0), ChildIndex(0)))));
    let begun = (0..1000).take_while(|tag| {
        world.both_join(*tag, Standing::NEW);
        world.core.dead.is_empty()
    });
    assert!(begun.count() > 0);
    assert!(world.core.creations + world.core.reserved.bytes() <= most);
    assert!(matches!(world.core.take_dead_links()[..], [Link::Child(_), ..]), "a child, and never the parent");
}
