use trib_topology::LimitTable;

use super::super::settle;
use super::*;

const GIB: u64 = 1 << 30;

/// One aggregation node with logical nodes of these numbers of children, and a receive buffer that
/// limits nothing.
fn site(children: &[u64]) -> Site {
    Site {
        name: "leaf0".into(),
        children: children.to_vec(),
        reserved: Vec::new(),
        widest: 0,
        receive_bytes: GIB,
        workers: 1,
        others_bytes: 0,
    }
}

fn settled(ask: QuotaAsk, site: &Site) -> Result<Limits, Refusal> {
    let table = LimitTable::default();
    settle(&ask, &Ground { table: &table, mtu: 65_536, ipv6: false, faults: false, sites: std::slice::from_ref(site) })
}

#[test]
fn a_job_that_asks_nothing_fits_whatever_its_children() {
    for children in [1, 2, 16, 32, 64] {
        let site = site(&[children]);
        let limits = settled(QuotaAsk::default(), &site).unwrap();
        let bytes_at = |osts| bytes(&Limits { osts, ..limits.clone() }, &site);
        assert!(bytes_at(limits.osts) <= GIB, "{children}: {limits:?}");
        assert!(bytes_at(limits.osts + 1) > GIB, "{children}: no fewer than there is room for: {limits:?}");
        assert!(limits.osts >= 64 * limits.window, "{children}: {limits:?}");
        assert_eq!((limits.window, limits.payload), (16, 8192));
        assert_eq!((limits.streams, limits.staging, limits.flight), (4, 12, 12), "slots alone give way");
    }
}

#[test]
fn a_small_job_on_an_ordinary_network_gets_the_defaults() {
    let (table, site) = (LimitTable::default(), site(&[1]));
    let ground = Ground { table: &table, mtu: 1000, ipv6: false, faults: false, sites: &[site] };
    let limits = settle(&QuotaAsk::default(), &ground).unwrap();
    assert_eq!((u64::from(limits.osts), limits.staging), (table[QuotaField::Osts].default, 12));
}

#[test]
fn staging_and_flight_give_way_where_slots_are_not_enough() {
    // One process has a cascade of logical nodes for 512 ranks.
    let site = site(&[64, 64, 64, 64, 64, 64, 64, 64, 8]);
    let limits = settled(QuotaAsk::default(), &site).unwrap();
    assert!(bytes(&limits, &site) <= GIB, "{limits:?}");
    assert!(limits.staging < 12 && limits.flight < 12 && limits.staging >= 2 && limits.flight >= 2, "{limits:?}");
    assert!(limits.osts >= limits.window);
}

#[test]
fn what_is_asked_for_stays_and_the_rest_gives_way() {
    let site = site(&[32]);
    let limits = settled(QuotaAsk { groups: Some(214), ..QuotaAsk::default() }, &site).unwrap();
    assert!(limits.osts == 214 * 16 && limits.staging < 12 && bytes(&limits, &site) <= GIB, "{limits:?}");
    let limits = settled(QuotaAsk { staging: Some(64), flight: Some(256), ..QuotaAsk::default() }, &site).unwrap();
    assert_eq!((limits.staging, limits.flight), (64, 256));
    assert!(bytes(&limits, &site) <= GIB, "{limits:?}");
    let asked = QuotaAsk { osts: Some(50_000), ..QuotaAsk::default() };
    let limits = settled(asked, &site).unwrap();
    assert_eq!(limits.osts, 50_000);
    assert!((GIB..16 * GIB).contains(&bytes(&limits, &site)), "the maximum is for those that ask");
    assert_eq!((limits.staging, limits.flight), (12, 12), "to lower these would not help");
}

#[test]
fn a_wish_beyond_the_maximum_is_refused_with_numbers_and_the_node() {
    let ask = QuotaAsk { osts: Some(262_144), payload: Some(8192), ..QuotaAsk::default() };
    let refusal = settled(ask, &site(&[16])).unwrap_err();
    assert_eq!((refusal.resource, refusal.available), (Resource::Memory, 16 * GIB));
    assert!(refusal.asked > 262_144 * 18 * 8192, "{refusal}");
    assert_eq!(refusal.holder.as_deref(), Some("leaf0"));
    for word in ["osts = 262144, payload = 8192", "16 children", "17179869184", "leaf0", "node_memory"] {
        assert!(refusal.text.contains(word), "{word}: {refusal}");
    }
}
