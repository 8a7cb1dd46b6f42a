//! One test for each arrow of a creation's table, and what the node does there.

use trib_wire::{
    Body, ChildIndex, ChildKind, Fault, GroupName, Kind, Marks, NodeId, Placement, Rank, RankList, Reason, Standing,
};

use crate::liveness::NODE_PATIENCE;
use crate::node::config::{NodeChild, NodeConfig};
use crate::node::harness::{BOTH, Log, config, key};
use crate::node::{Frame, Link, NodeCore, Note, Target};
use crate::{Nanos, Path};

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
            Link::Parent => self.core.place.up(kind).expect("there is a parent"),
            Link::Child(child) => self.core.place.down(kind, child),
        };
        let frame = Frame { path: Path::Stream, header: &header, body, data: None };
        self.core.on_frame(Nanos(0), link, frame, &mut self.out);
    }

    fn join(&mut self, child: u16, fault: Option<Fault>) {
        let body = Body::Join {
            key: key(),
            fault,
            standing: Standing::NEW,
            nodes: RankList::EMPTY,
            name: GroupName::default(),
        };
        self.frame(Link::Child(ChildIndex(child)), Kind::Join, &body);
    }

    /// What was sent since the last call: where to, and of which kind.
    fn sent(&mut self) -> Vec<(Target, Kind)> {
        self.out.take_sent().into_iter().map(|sent| (sent.target, sent.kind)).collect()
    }
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
