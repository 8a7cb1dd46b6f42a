//! Every checker can fail: a short history that is right passes, and the same history with one
//! thing wrong does not.

use trib_proto::node::Link;
use trib_proto::{Limits, Nanos, Path};
use trib_sim::checkers::{Account, Checkers, Holdings};
use trib_sim::fabric::Tree;
use trib_sim::options::Options;
use trib_sim::symbol::{Value, contribution, fold};
use trib_sim::workload::Workload;
use trib_wire::{
    Body, ChildIndex, Collective, DataType, Epoch, Fault, GroupIndex, GroupKey, Header, JobId, Kind, Marks, NodeId,
    Placement, Rank, RankList, Reason, ReduceOp, Signature, WireFormat,
};

/// Two ranks at one node, an allreduce of 16 elements as operation 0 and a barrier as operation 1.
fn checkers() -> Checkers {
    checkers_of(true)
}

fn checkers_of(recovers: bool) -> Checkers {
    checkers_under(recovers, false)
}

fn checkers_under(recovers: bool, strict: bool) -> Checkers {
    let barrier = Signature {
        collective: Collective::Barrier,
        dtype: DataType::U8,
        op: ReduceOp::BitOr,
        format: WireFormat::Plain,
        root: 0,
        count: 0,
    };
    let options = Options { recovers, strict, ..Options::calm(2) };
    Checkers::new(&Tree::regular(&[2]), &Workload::plain(2, &[signature(), barrier]), &options)
}

fn signature() -> Signature {
    Signature {
        collective: Collective::Allreduce,
        dtype: DataType::I32,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count: 16,
    }
}

fn result(from: u64, len: u32) -> Value {
    Value::uniform(fold(&signature(), [contribution(0, 0), contribution(1, 0)]), from, len)
}

/// The header of the only fragment of operation 0.
fn whole() -> Header {
    Header { elements: 16, ..Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(0), ChildIndex(0)) }
}

fn posted() -> Checkers {
    posted_of(true)
}

fn posted_of(recovers: bool) -> Checkers {
    let mut checkers = checkers_of(recovers);
    for rank in [0, 1] {
        checkers.posted(0, rank);
        checkers.reads(0, rank, 0..16, &whole());
    }
    checkers
}

#[track_caller]
fn assert_found(checkers: &Checkers, name: &str) {
    let failure = checkers.failure().expect("something is wrong");
    assert_eq!(failure.checker, name, "{failure}");
}

#[test]
fn a_right_history_passes() {
    let mut checkers = posted();
    for rank in [0, 1] {
        checkers.delivered(0, rank, 0, &result(0, 16));
        checkers.completed(0, rank, Ok(0..16), false);
    }
    checkers.stable(0, 0, Path::Datagram, 1);
    assert_eq!(checkers.failure(), None);
}

#[test]
fn ranks_that_do_not_agree_are_found_where_they_are_to_agree() {
    let dead =
        Fault { reason: Reason::MemberDead, node: NodeId(0), rank_a: Rank(1), rank_b: Rank(1), signatures: None };
    let history = |strict: bool, act: &dyn Fn(&mut Checkers)| {
        let mut checkers = checkers_under(true, strict);
        [0, 1].into_iter().for_each(|rank| checkers.posted(0, rank));
        checkers.delivered(0, 0, 0, &result(0, 16));
        act(&mut checkers);
        checkers.failure().map(|failure| failure.checker)
    };
    let lonely = |c: &mut Checkers| c.completed(0, 0, Ok(0..16), false);
    let early_fault = |c: &mut Checkers| {
        c.delivered(0, 1, 0, &result(0, 16));
        c.completed(0, 1, Err(dead), false);
        c.completed(0, 0, Ok(0..16), false);
    };
    let late_fault = |c: &mut Checkers| {
        c.delivered(0, 1, 0, &result(0, 16));
        c.completed(0, 0, Ok(0..16), false);
        c.completed(0, 1, Err(dead), false);
    };
    let together = |c: &mut Checkers| {
        c.delivered(0, 1, 0, &result(0, 16));
        [0, 1].into_iter().for_each(|rank| c.completed(0, rank, Ok(0..16), false));
    };
    assert_eq!((history(true, &lonely), history(false, &lonely)), (Some("agreement"), None));
    assert_eq!(history(true, &late_fault), Some("agreement"));
    // A fault without a cause is found as well, and first.
    assert_eq!(history(true, &early_fault), Some("faults"));
    assert_eq!(history(true, &together), None);
}

#[test]
fn wrong_values_and_positions_are_found() {
    let swapped = fold(&signature(), [contribution(1, 0), contribution(0, 0)]);
    let missing = contribution(0, 0);
    for wrong in [Value::uniform(swapped, 0, 16), Value::uniform(missing, 0, 16), result(4, 16)] {
        let mut checkers = posted();
        checkers.delivered(0, 0, 0, &wrong);
        assert_found(&checkers, "same_bits");
    }
}

#[test]
fn what_happens_twice_or_too_late_or_outside_is_found() {
    let twice = |c: &mut Checkers| {
        c.delivered(0, 0, 0, &result(0, 8));
        c.delivered(0, 0, 4, &result(4, 8));
    };
    let outside = |c: &mut Checkers| c.delivered(0, 0, 8, &result(8, 16));
    let incomplete = |c: &mut Checkers| {
        c.delivered(0, 0, 0, &result(0, 12));
        c.completed(0, 0, Ok(0..0), false);
    };
    let queued = |c: &mut Checkers| {
        c.delivered(0, 0, 0, &result(0, 16));
        c.completed(0, 0, Ok(0..0), true);
    };
    let read_late = |c: &mut Checkers| {
        c.delivered(0, 0, 0, &result(0, 16));
        c.completed(0, 0, Ok(0..0), false);
        c.reads(0, 0, 0..16, &whole());
    };
    let read_over = |c: &mut Checkers| {
        c.delivered(0, 0, 0, &result(0, 8));
        c.reads(0, 0, 0..16, &whole());
    };
    let early_barrier = |c: &mut Checkers| {
        c.posted(1, 0);
        c.completed(1, 0, Ok(0..0), false);
    };
    let histories: [&dyn Fn(&mut Checkers); 7] =
        [&twice, &outside, &incomplete, &queued, &read_late, &read_over, &early_barrier];
    for history in histories {
        let mut checkers = posted_of(false);
        history(&mut checkers);
        assert_found(&checkers, "exactly_once");
    }
}

#[test]
fn a_contribution_that_is_dropped_too_early_is_found() {
    let mut checkers = posted();
    checkers.delivered(0, 0, 0, &result(0, 16));
    checkers.completed(0, 0, Ok(8..16), false);
    assert_found(&checkers, "recovery");

    let mut checkers = posted();
    checkers.delivered(0, 0, 0, &result(0, 16));
    checkers.stable(0, 0, Path::Datagram, 1);
    assert_found(&checkers, "recovery");

    let mut checkers = posted();
    checkers.delivered(0, 0, 0, &result(0, 16));
    checkers.completed(0, 0, Ok(0..16), false);
    checkers.forgotten(0, 0);
    assert_found(&checkers, "recovery");
}

#[test]
fn what_a_rank_keeps_may_be_read_until_it_is_forgotten_and_is_bounded() {
    let ended = || {
        let mut checkers = posted();
        for rank in [0, 1] {
            checkers.delivered(0, rank, 0, &result(0, 16));
            checkers.completed(0, rank, Ok(0..16), false);
        }
        checkers
    };
    let mut checkers = ended();
    checkers.reads(0, 0, 0..16, &whole());
    checkers.forgotten(0, 0);
    assert_eq!(checkers.failure(), None);
    checkers.reads(0, 0, 0..16, &whole());
    assert_found(&checkers, "exactly_once");

    let mut checkers = ended();
    checkers.reads(0, 0, 0..16, &Header { seq: 0, first: 4, elements: 12, ..whole() });
    assert_found(&checkers, "exactly_once");

    let mut checkers = ended();
    checkers.check_nothing_kept(0);
    assert_found(&checkers, "recovery");

    let long = Signature { count: 10_000, ..signature() };
    let options = Options { recovers: true, ..Options::calm(2) };
    let mut checkers = Checkers::new(&Tree::regular(&[2]), &Workload::plain(2, &[long]), &options);
    checkers.completed(0, 0, Ok(0..10_000), false);
    assert_found(&checkers, "exactly_once");
    let mut checkers = Checkers::new(&Tree::regular(&[2]), &Workload::plain(2, &[long]), &options);
    let value = Value::uniform(fold(&long, [contribution(0, 0), contribution(1, 0)]), 0, 10_000);
    checkers.delivered(0, 0, 0, &value);
    checkers.completed(0, 0, Ok(0..10_000), false);
    assert_found(&checkers, "recovery");
}

#[test]
fn a_node_with_two_homes_at_once_is_found() {
    let moved = Placement::FIRST.without(NodeId(1));
    let mut checkers = checkers();
    checkers.node_begins(0, &Placement::FIRST);
    checkers.node_begins(0, &moved);
    checkers.node_ends(0, &moved);
    checkers.node_begins(0, &moved);
    assert_eq!(checkers.failure(), None);
    checkers.node_begins(0, &moved);
    assert_found(&checkers, "epochs");
}

#[test]
fn a_fault_without_a_cause_or_without_its_name_is_found() {
    let fault =
        Fault { reason: Reason::MemberDead, node: NodeId(0), rank_a: Rank(0), rank_b: Rank(0), signatures: None };
    let mut checkers = posted();
    checkers.completed(0, 0, Err(fault), false);
    assert_found(&checkers, "faults");

    let mut checkers = posted();
    checkers.rank_killed(1);
    checkers.group_failed(0, 0, &fault);
    assert_found(&checkers, "faults");

    let mut checkers = posted();
    checkers.rank_killed(1);
    checkers.group_failed(0, 0, &Fault { rank_a: Rank(1), ..fault });
    assert_eq!(checkers.failure(), None);
}

#[test]
fn buffers_beyond_the_grant_are_found() {
    let limits: Limits = Options::calm(2).limits;
    let slots = limits.window as usize * 3;
    let check = |held: Holdings, account: Account| {
        let mut checkers = checkers();
        checkers.check_memory(0, &limits, held, account);
        checkers
    };
    let held = Holdings { datagrams: slots, segments: 0, kept: 0 };
    let account = Account { buffers: (slots, 0), datagram_groups: 1, streams: 0 };
    assert_eq!(check(held, account).failure(), None);
    let more = Holdings { datagrams: slots + 1, ..held };
    assert_found(&check(more, Account { buffers: (slots + 1, 0), ..account }), "memory");
    assert_found(&check(more, account), "memory");
    assert_found(&check(Holdings { kept: 1, ..held }, account), "memory");
    let segment = Holdings { datagrams: 0, segments: 1, kept: 0 };
    assert_found(&check(segment, Account { buffers: (0, 1), datagram_groups: 0, streams: 0 }), "memory");
}

#[test]
fn what_is_left_at_the_end_is_found() {
    let mut found = checkers();
    found.check_node_empty(0, 1, Holdings::default());
    assert_found(&found, "no_leak");
    let mut found = checkers();
    found.check_node_empty(0, 0, Holdings { segments: 1, ..Holdings::default() });
    assert_found(&found, "no_leak");
    let mut found = checkers();
    found.check_leaf_empty(0, 1, 0);
    assert_found(&found, "no_leak");
    let mut found = checkers();
    found.check_leaf_empty(0, 0, 1);
    assert_found(&found, "no_leak");
}

#[test]
fn a_storm_of_datagrams_while_waiting_is_found() {
    // Each second of three has so many datagrams of each of these groups.
    let send = |kind: Kind, groups: u32, per_second: u64| {
        let mut checkers = posted();
        for n in 0..3 * per_second {
            checkers.tick(Nanos(n * 1_000_000_000 / per_second), Nanos(0));
            for group in 0..groups {
                checkers.datagram_sent(0, &Header { kind, group: GroupIndex(group), ..whole() });
            }
        }
        checkers
    };
    assert_eq!(send(Kind::Probe, 1, 40).failure(), None);
    assert_found(&send(Kind::Probe, 1, 60), "traffic");
    assert_eq!(send(Kind::Probe, 3, 14).failure(), None);
    assert_found(&send(Kind::Probe, 3, 20), "traffic");
    // The window is 4.
    for groups in [1, 5] {
        assert_eq!(send(Kind::Contribution, groups, 20).failure(), None, "each group has its own window");
        assert_found(&send(Kind::Contribution, groups, 30), "traffic");
    }
}

#[test]
fn who_overtakes_another_in_the_line_for_the_lock_is_found() {
    let name = |group: u32, kind: Kind| {
        let head = Header::new(kind, JobId(1), Epoch(1), NodeId(0), ChildIndex(0));
        Header { group: GroupIndex(group), ..head }
    };
    let asked = |capacity: u32| {
        let mut options = Options::calm(2);
        options.limits.streams = capacity;
        let mut checkers = Checkers::new(&Tree::regular(&[2]), &Workload::plain(2, &[signature()]), &options);
        for group in [0, 1, 2] {
            let key = GroupKey { tag: u64::from(group), creation: 0, members: RankList::world(2) };
            checkers.root_says(0, &name(group, Kind::Ready), &Body::Ready(key, Marks::default()));
        }
        for (group, child) in [(0, 0), (1, 0), (1, 1), (0, 1), (2, 0)] {
            checkers.root_hears(0, child, &name(group, Kind::Intent));
        }
        checkers
    };
    let says = |checkers: &mut Checkers, frames: &[(u32, Kind)]| {
        for (group, kind) in frames {
            checkers.root_says(0, &name(*group, *kind), &Body::None);
        }
    };
    let mut checkers = asked(1);
    says(&mut checkers, &[(1, Kind::Grant), (1, Kind::LeaseEnd), (0, Kind::Grant)]);
    assert_eq!(checkers.failure(), None);
    for (capacity, wrong) in [(1, &[0][..]), (1, &[1, 0]), (3, &[1, 2])] {
        let mut checkers = asked(capacity);
        let grants: Vec<(u32, Kind)> = wrong.iter().map(|group| (*group, Kind::Grant)).collect();
        says(&mut checkers, &grants);
        assert_found(&checkers, "fairness");
    }
    let mut checkers = asked(2);
    says(&mut checkers, &[(0, Kind::Grant), (1, Kind::Grant)]);
    assert_eq!(checkers.failure(), None, "there is room for both");
}

#[test]
fn what_a_node_sends_without_a_cause_is_found() {
    let (up, down) = (None, Some(0));
    let child = Link::Child(ChildIndex(0));
    let contribution = whole();
    let probe = Header { kind: Kind::Probe, ..contribution };
    let result = Header { kind: Kind::Result, ..contribution };
    let core = |heard: &[(Link, Path, Header)], said: &[(Option<u16>, Path, Header)]| {
        let mut checkers = checkers();
        checkers.core_begins();
        for (link, path, header) in heard {
            checkers.core_hears((0, 0), *link, *path, header);
        }
        for (to, path, header) in said {
            checkers.core_says((0, 0), *to, *path, header);
        }
        checkers
    };
    for path in [Path::Datagram, Path::Stream] {
        let (answer, aggregate) = ((down, path, result), (up, path, contribution));
        let heard = [(child, path, contribution)];
        assert_eq!(core(&heard, &[answer, aggregate]).failure(), None);
        assert_found(&core(&heard, &[answer, answer]), "causes");
        assert_found(&core(&heard, &[aggregate, aggregate]), "causes");
        // A result from above is for both children.
        let heard = [(Link::Parent, path, result)];
        assert_eq!(core(&heard, &[answer, answer]).failure(), None);
        assert_found(&core(&heard, &[answer, answer, answer]), "causes");
    }
    let asked = [(child, Path::Datagram, probe), (child, Path::Datagram, probe)];
    let asks = (up, Path::Datagram, probe);
    assert_eq!(core(&asked, &[asks]).failure(), None);
    assert_found(&core(&asked, &[asks, asks]), "causes");
    let beat = (down, Path::Stream, Header { kind: Kind::Heartbeat, ..contribution });
    assert_eq!(core(&[], &[beat; 6]).failure(), None);
    assert_found(&core(&[], &[beat; 7]), "causes");
}

#[test]
fn what_is_kept_though_all_have_it_is_found() {
    let stable = || {
        let mut checkers = posted();
        for rank in [0, 1] {
            checkers.delivered(0, rank, 0, &result(0, 16));
            checkers.completed(0, rank, Ok(0..16), false);
        }
        checkers.stable(0, 0, Path::Datagram, 1);
        checkers
    };
    let mut checkers = stable();
    checkers.forgotten(0, 0);
    checkers.tick(Nanos(1), Nanos(0));
    assert_eq!(checkers.failure(), None);
    let mut checkers = stable();
    checkers.tick(Nanos(1), Nanos(0));
    assert_found(&checkers, "recovery");
}

#[test]
fn who_is_given_up_and_who_is_waited_for_too_long_is_found() {
    let dead =
        Fault { reason: Reason::MemberDead, node: NodeId(0), rank_a: Rank(1), rank_b: Rank(1), signatures: None };
    let history = |act: &dyn Fn(&mut Checkers)| {
        let mut checkers = posted();
        act(&mut checkers);
        checkers.failure().map(|failure| failure.checker)
    };
    let fails_at = |checkers: &mut Checkers, seconds: u64| {
        checkers.tick(Nanos::from_millis(1_000 * seconds), Nanos(0));
        checkers.completed(0, 0, Err(dead), false);
    };
    let seen = |seconds: u64| {
        history(&|c: &mut Checkers| {
            c.rank_killed(1);
            c.rank_seen_gone(1, &Placement::FIRST);
            fails_at(c, seconds);
        })
    };
    assert_eq!((seen(1), seen(30)), (None, Some("gone")));
    let unseen = |c: &mut Checkers| {
        c.rank_killed(1);
        fails_at(c, 30);
    };
    let in_another_epoch = |c: &mut Checkers| {
        c.rank_killed(1);
        c.rank_seen_gone(1, &Placement::FIRST);
        c.tick(Nanos(1), Nanos(0));
        c.node_begins(0, &Placement::FIRST.without(NodeId(0)));
        fails_at(c, 30);
    };
    let left_behind = |c: &mut Checkers| {
        c.rank_killed(1);
        c.node_begins(0, &Placement::FIRST.without(NodeId(0)));
        c.rank_seen_gone(1, &Placement::FIRST);
        fails_at(c, 30);
    };
    let quiet = [history(&unseen), history(&in_another_epoch), history(&left_behind)];
    assert_eq!(quiet, [None, None, None], "nobody could know");
    let held_back = |c: &mut Checkers| {
        c.rank_killed(1);
        c.rank_seen_gone(1, &Placement::FIRST);
        c.tick(Nanos::from_millis(29_000), Nanos(0));
        c.refused(0);
        fails_at(c, 30);
    };
    assert_eq!(history(&held_back), None, "it was not asked for before");
    let one_left = |c: &mut Checkers| {
        c.rank_left(1);
        c.node_deserted(0);
    };
    let both_left = |c: &mut Checkers| {
        [0, 1].into_iter().for_each(|rank| c.rank_left(rank));
        c.node_deserted(0);
    };
    assert_eq!((history(&one_left), history(&both_left)), (Some("gone"), None));
    assert_eq!(history(&|c: &mut Checkers| c.rank_seen_gone(1, &Placement::FIRST)), Some("gone"));
}
