use proptest::prelude::*;

use super::super::amounts::Caps;
use super::super::policy::{OTHERS, Tenant};
use super::*;

fn claim(tenant: &str, node: &str, streams: u64, memory: u64) -> Claim {
    let amounts = Amounts::of(&[(Kind::Jobs, 1), (Kind::Streams, streams), (Kind::Memory, memory)]);
    let root = Amounts::of(&[(Kind::Jobs, 1), (Kind::Streams, streams)]);
    let wants = vec![
        (Scope::Fabric, Amounts::of(&[(Kind::Jobs, 1)])),
        (Scope::Node(node.into()), amounts),
        (Scope::Root(node.into()), root),
    ];
    Claim { tenant: tenant.into(), wants }
}

fn caps(pairs: &[(Kind, u64)]) -> Caps {
    let mut caps = Caps::default();
    pairs.iter().for_each(|(kind, most)| caps.set(*kind, Some(*most)));
    caps
}

fn policy(reserves: [Option<&str>; 2]) -> Policy {
    let [astro, bio] = reserves.map(|reserve| reserve.map(|text| text.parse().unwrap()));
    let astro = Tenant {
        fabric: caps(&[(Kind::Jobs, 3)]),
        node: caps(&[(Kind::Streams, 6)]),
        reserve: astro,
        ..Tenant::default()
    };
    let bio = Tenant { reserve: bio, ..Tenant::default() };
    Policy {
        node: caps(&[(Kind::Streams, 8), (Kind::Memory, 100)]),
        root: caps(&[(Kind::Jobs, 4)]),
        tenants: [("astro".to_owned(), astro), ("bio".to_owned(), bio)].into(),
        ..Policy::default()
    }
}

#[test]
fn the_first_shortage_says_where_of_what_and_whose() {
    let mut book = Book::new(Arc::new(policy([None, Some("1/4")])));
    book.take(&claim("astro", "leaf0", 4, 10));
    let short = |claim: &Claim| book.check(claim).unwrap_err();
    let limit = short(&claim("astro", "leaf0", 3, 10));
    let (scope, kind) = (Scope::Node("leaf0".into()), Kind::Streams);
    assert_eq!(limit, Shortage { scope, kind, asked: 3, available: 2, most: 6, cap: Cap::Limit });
    // Two of eight are kept for bio, which may have them.
    let capacity = short(&claim(OTHERS, "leaf0", 3, 10));
    assert_eq!((capacity.kind, capacity.available, capacity.cap), (Kind::Streams, 2, Cap::Capacity));
    assert_eq!(book.check(&claim("bio", "leaf0", 4, 10)), Ok(()));
    assert_eq!(short(&claim("bio", "leaf0", 4, 91)).kind, Kind::Memory);
    assert_eq!(book.check(&claim("astro", "leaf1", 6, 75)), Ok(()), "another node is another matter");
    assert_eq!(book.check_alone(&claim("bio", "leaf0", 9, 1)).unwrap_err().available, 8);
}

#[test]
fn what_waits_for_its_own_tenant_takes_no_room_from_others() {
    let mut book = Book::new(Arc::new(policy([None, None])));
    let waits = claim("astro", "leaf0", 6, 50);
    book.take(&claim("astro", "leaf0", 2, 10));
    book.keep(&waits, Cap::Limit);
    assert_eq!(book.check(&claim("bio", "leaf0", 6, 90)), Ok(()));
    assert_eq!(book.check(&claim("astro", "leaf0", 1, 1)).unwrap_err().cap, Cap::Limit, "it goes first");
    book.let_go(&waits, Cap::Limit);
    assert_eq!(book.check(&claim("astro", "leaf0", 1, 1)), Ok(()));
    book.keep(&waits, Cap::Capacity);
    assert_eq!(book.check(&claim("bio", "leaf0", 1, 1)).unwrap_err().cap, Cap::Capacity);
}

#[test]
fn jobs_that_do_not_fit_count_nevertheless_and_what_is_kept_stays() {
    let mut book = Book::new(Arc::new(policy([None, Some("1/2")])));
    let adopted = claim("astro", "leaf0", 20, 500);
    book.take(&adopted);
    assert!(book.check(&claim(OTHERS, "leaf0", 1, 1)).is_err());
    assert_eq!(book.check(&claim("bio", "leaf0", 4, 50)), Ok(()));
    book.give_back(&adopted);
    assert_eq!(book.check(&claim(OTHERS, "leaf0", 4, 50)), Ok(()));
}

/// One step: a claim of a tenant at a node, or the end of a claim that was taken.
#[derive(Clone, Debug)]
enum Step {
    Take { tenant: usize, node: usize, streams: u64, memory: u64 },
    End(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0usize..3, 0usize..2, 1u64..5, 1u64..60)
            .prop_map(|(tenant, node, streams, memory)| Step::Take { tenant, node, streams, memory }),
        2 => any::<usize>().prop_map(Step::End),
    ]
}

const TENANTS: [&str; 3] = ["astro", "bio", OTHERS];
const NODES: [&str; 2] = ["leaf0", "leaf1"];

proptest! {
    /// The book is compared with a plain list of claims: nothing is exceeded or lost, what fits is
    /// let in, and what is kept can be had.
    #[test]
    fn no_order_of_claims_and_ends_exceeds_or_loses_anything(
        steps in proptest::collection::vec(step(), 1..60),
        reserves in (0u64..=2, 0u64..=2),
    ) {
        let text = |quarters: u64| (quarters > 0).then(|| format!("{quarters}/4"));
        let (astro, bio) = (text(reserves.0), text(reserves.1));
        let mut book = Book::new(Arc::new(policy([astro.as_deref(), bio.as_deref()])));
        let kept = |tenant: usize, capacity: u64| [reserves.0, reserves.1, 0][tenant] * capacity / 4;
        // The reference: every live claim as it was made.
        let mut live: Vec<(usize, usize, u64, u64, Claim)> = Vec::new();
        for step in steps {
            match step {
                Step::End(which) if !live.is_empty() => {
                    let (.., claim) = live.remove(which % live.len());
                    book.give_back(&claim);
                }
                Step::End(_) => {}
                Step::Take { tenant, node, streams, memory } => {
                    let claim = claim(TENANTS[tenant], NODES[node], streams, memory);
                    let mut after = live.clone();
                    after.push((tenant, node, streams, memory, claim.clone()));
                    let streams_of = |t: usize| after.iter().filter(|c| c.0 == t && c.1 == node).map(|c| c.2).sum::<u64>();
                    let memory_of = |t: usize| after.iter().filter(|c| c.0 == t && c.1 == node).map(|c| c.3).sum::<u64>();
                    // The reservations of jobs are quarters of four.
                    let jobs_of = |t: usize| after.iter().filter(|c| c.0 == t && c.1 == node).count() as u64;
                    let all = |of: &dyn Fn(usize) -> u64, capacity: u64| {
                        (0..3).map(|t| of(t).max(kept(t, capacity))).sum::<u64>() <= capacity
                    };
                    let fits = all(&streams_of, 8) && all(&memory_of, 100) && all(&jobs_of, 4)
                        && (tenant != 0 || streams_of(0) <= 6)
                        && after.iter().filter(|c| c.0 == 0).count() <= if tenant == 0 { 3 } else { usize::MAX };
                    prop_assert_eq!(book.check(&claim).is_ok(), fits, "{:?}", book.check(&claim));
                    if fits {
                        book.take(&claim);
                        live = after;
                    }
                }
            }
            for (at, node) in NODES.iter().enumerate() {
                for (t, tenant) in TENANTS.iter().enumerate() {
                    let has = book.has(tenant, &Scope::Node((*node).into()));
                    let expected = live.iter().filter(|c| c.0 == t && c.1 == at).map(|c| c.3).sum::<u64>();
                    prop_assert_eq!(has.get(Kind::Memory), expected);
                }
                // The tenant bio has no other limit, so it can have all that is kept for it and
                // that it has not got yet.
                let mine: Vec<_> = live.iter().filter(|c| c.0 == 1 && c.1 == at).collect();
                let left = |capacity: u64, used: u64| kept(1, capacity).saturating_sub(used);
                let streams = left(8, mine.iter().map(|c| c.2).sum());
                let memory = left(100, mine.iter().map(|c| c.3).sum());
                if left(4, mine.len() as u64) > 0 && streams > 0 && memory > 0 {
                    prop_assert_eq!(book.check(&claim("bio", node, streams, memory)), Ok(()));
                }
            }
        }
        live.drain(..).for_each(|(.., claim)| book.give_back(&claim));
        prop_assert!(book.used.is_empty() && book.pledged.is_empty(), "{:?}", book);
    }
}
