//! What nodes tell, and what follows for the job.

use trib_messages::jobs::{Activity, Names};
use trib_messages::recovery::Replayed;
use trib_messages::reply::LaneStatus;
use trib_wire::ids::JobId;

use super::*;

/// A job with a root and two leaves, and as many again in a second lane if there is one.
fn job(lanes: u16) -> JobStatus {
    let lane = |lane| LaneStatus {
        tree: 0,
        root: "root".into(),
        first: NodeId(3 * lane),
        nodes: 3,
        weight: 1,
        from: None,
        to: None,
    };
    JobStatus {
        id: JobId(1),
        name: "train".into(),
        user: "u".into(),
        ranks: 4,
        nodes: ["root", "leaf0", "leaf1"].map(str::to_owned).to_vec(),
        homes: [0, 1, 2].repeat(lanes.into()),
        backups: Vec::new(),
        deputies: Vec::new(),
        in_ranks: Vec::new(),
        since: 0,
        hosts: Names::default(),
        root: "root".into(),
        around: Vec::new(),
        fallback: None,
        fault: None,
        limits: None,
        adopted: true,
        lost_ms: None,
        charge: None,
        lanes: (0..lanes).map(lane).collect(),
        prediction: None,
    }
}

fn part(ranks: u32, moves: &[(u16, u16)], spent: &[u16]) -> JobActivity {
    JobActivity {
        job: JobId(1),
        activity: Activity { groups: 1, ranks, idle_ms: 0 },
        nodes_in_ranks: 0,
        moves: moves.iter().map(|(node, count)| (NodeId(*node), *count)).collect(),
        spent: spent.iter().map(|node| NodeId(*node)).collect(),
        replayed: Replayed::default(),
    }
}

#[test]
fn a_job_is_gone_when_all_its_nodes_say_that_their_ranks_have_come_and_gone() {
    let of = |parts: &[JobActivity]| Presence::of(&job(1), parts);
    assert_eq!(of(&[part(0, &[], &[0]), part(0, &[], &[1]), part(0, &[], &[2])]), Presence::Gone);
    assert_eq!(of(&[part(0, &[], &[0, 1]), part(0, &[], &[2])]), Presence::Gone, "one process hosts two");
    assert_eq!(of(&[part(0, &[], &[0]), part(0, &[], &[1]), part(1, &[], &[])]), Presence::There);
    assert_eq!(of(&[part(0, &[], &[0]), part(0, &[], &[1]), part(0, &[], &[])]), Presence::Awaited, "one has not come");
    assert_eq!(of(&[part(0, &[], &[0]), part(0, &[], &[1])]), Presence::Awaited, "a leaf is not heard");
    assert_eq!(of(&[]), Presence::Nowhere);
    let unknown = JobStatus { homes: Vec::new(), ..job(1) };
    assert_eq!(Presence::of(&unknown, &[part(0, &[], &[0])]), Presence::Awaited, "its nodes are not known");
}

#[test]
fn what_a_process_says_of_an_epoch_that_is_over_does_not_count() {
    let of = |parts: &[JobActivity]| Presence::of(&job(1), parts);
    let moved = &[(1, 1)][..];
    assert_eq!(of(&[part(0, moved, &[0, 1]), part(0, moved, &[2])]), Presence::Gone);
    // leaf0 has woken, and does not know that its node is at another process now.
    assert_eq!(of(&[part(0, moved, &[0]), part(0, &[], &[1]), part(0, moved, &[2])]), Presence::Awaited);
    // A process that hosts nodes of one lane knows nothing of the moves of the other.
    let lanes = [part(0, moved, &[0, 1]), part(0, moved, &[2]), part(0, &[], &[3, 4, 5])];
    assert_eq!(Presence::of(&job(2), &lanes), Presence::Gone);
    assert_eq!(Presence::of(&job(2), &lanes[..2]), Presence::Awaited);
}

#[test]
fn the_less_is_known_the_longer_it_has_to_be_so() {
    use Presence::{Awaited, Gone, Nowhere, There};
    let [there, awaited, nowhere, gone] = [There, Awaited, Nowhere, Gone].map(Presence::patience);
    assert!(there.is_none() && gone < nowhere && nowhere < awaited);
}
