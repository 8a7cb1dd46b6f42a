use super::*;

fn sites(children: u64, receive_bytes: u64) -> Vec<Site> {
    let site = |name: &str, children, receive_bytes| Site {
        name: name.into(),
        children: vec![children],
        reserved: Vec::new(),
        widest: 0,
        receive_bytes,
        workers: 1,
        others_bytes: 0,
    };
    vec![site("wide", 2, 1 << 30), site("tight", children, receive_bytes)]
}

fn settled(ask: QuotaAsk, mtu: u32, sites: &[Site]) -> Result<Limits, Refusal> {
    settle(&ask, &Ground { table: &LimitTable::default(), mtu, ipv6: false, faults: false, sites })
}

#[test]
fn a_job_that_asks_nothing_gets_the_defaults() {
    let limits = settled(QuotaAsk::default(), 1500, &sites(4, 425_984)).unwrap();
    let expected = Limits {
        groups: 16_384,
        window: 16,
        // A GiB has room for this many at the four children.
        osts: 109_217,
        payload: 1368,
        streams: 4,
        segment: 49_152,
        staging: 12,
        flight: 12,
        control_memory: 16 << 20,
        stream_threshold: 16_384,
        lease_operations: 0,
        heartbeat_ms: 1_000,
        dead_after_ms: 60_000,
        recovery: trib_messages::policy::Recovery::Retry,
        mode: Mode::Checked,
        faults: false,
    };
    assert_eq!(limits, expected);
    assert_eq!(settled(QuotaAsk::default(), 65_536, &sites(1, 1 << 30)).unwrap().payload, 8192);
}

#[test]
fn a_lease_may_be_for_any_number_of_operations() {
    for operations in [0, 1, 1000] {
        let ask = QuotaAsk { lease_operations: Some(operations), ..QuotaAsk::default() };
        assert_eq!(settled(ask, 1500, &sites(4, 425_984)).unwrap().lease_operations, operations);
    }
}

#[test]
fn fragments_of_all_children_fit_the_tightest_buffer() {
    for (children, bytes, mtu) in [(64, 425_984, 1500), (8, 425_984, 65_536), (33, 212_992, 9000), (3, 1 << 22, 576)] {
        let limits = settled(QuotaAsk::default(), mtu, &sites(children, bytes)).unwrap();
        let need = |window: u32| children * u64::from(window) * truesize(u64::from(limits.payload));
        assert!(need(limits.window) <= bytes, "{children} {bytes} {mtu}: {limits:?}");
        assert!(limits.window == 16 || need(limits.window + 1) > bytes, "no smaller than it must be: {limits:?}");
        assert!(
            limits.payload.is_multiple_of(8) && u64::from(limits.payload) + 28 + HEADER_LEN as u64 <= u64::from(mtu)
        );
    }
    assert_eq!(settled(QuotaAsk::default(), 1500, &sites(64, 4096)).unwrap().window, 1);
}

#[test]
fn a_job_gets_what_others_leave_of_a_receive_buffer_unless_it_asks() {
    let step = 4 * truesize(1368);
    let window = |others_bytes, workers, asked| {
        let mut sites = sites(4, 425_984);
        let tight = sites.remove(1);
        sites.push(Site { others_bytes, workers, ..tight });
        settled(QuotaAsk { window: asked, ..QuotaAsk::default() }, 1500, &sites).map(|limits| limits.window)
    };
    assert_eq!(window(0, 1, None).unwrap(), 16);
    assert_eq!(window(425_984 - 5 * step, 1, None).unwrap(), 5);
    assert_eq!(window(425_984, 1, None).unwrap(), 1, "frames that the kernel drops come again");
    assert_eq!(window(425_984, 2, None).unwrap(), 16, "there is another socket");
    assert_eq!(window(2 * 425_984 - 5 * step, 2, None).unwrap(), 5);
    assert_eq!(window(u64::MAX, 1, Some(46)).unwrap(), 46);
    assert_eq!(window(u64::MAX, 1, Some(47)).unwrap_err().available, 46);
    // What a job takes is what the next one does not get. Its fragments are not made smaller: that
    // would buy slots, of which there are enough.
    let crowded = |others_bytes| {
        let site = |site| Site { others_bytes, ..site };
        settled(QuotaAsk::default(), 65_536, &sites(4, 425_984).into_iter().map(site).collect::<Vec<_>>()).unwrap()
    };
    assert_eq!((crowded(0).payload, crowded(0).window), (8192, 6));
    assert_eq!((crowded(400_000).payload, crowded(400_000).window), (8192, 1));
    assert_eq!(crowded(400_000).osts, crowded(0).osts);
    let sites = sites(4, 425_984);
    let limits = settled(QuotaAsk::default(), 1500, &sites).unwrap();
    assert_eq!(sites[1].datagram_bytes(&limits), 16 * step);
}

#[test]
fn a_default_payload_gives_way_to_the_window_but_one_asked_for_does_not() {
    let tight = sites(33, 212_992);
    let limits = settled(QuotaAsk::default(), 9000, &tight).unwrap();
    assert_eq!((limits.payload, limits.window), (1024, 2));
    let limits = settled(QuotaAsk { payload: Some(8192), ..QuotaAsk::default() }, 9000, &tight).unwrap();
    assert_eq!((limits.payload, limits.window), (8192, 1));
}

#[test]
fn longer_ip_headers_leave_less_payload() {
    let ground = Ground { table: &LimitTable::default(), mtu: 1500, ipv6: true, faults: false, sites: &[] };
    assert_eq!(settle(&QuotaAsk::default(), &ground).unwrap().payload, 1344);
}

#[test]
fn a_job_gets_the_mode_that_the_fabric_demands_or_more_and_never_less() {
    let of = |fabric: [u64; 2], asked: Option<Mode>| {
        let mut table = LimitTable::default();
        table[QuotaField::DataPath] = Bound { default: fabric[0], maximum: fabric[1] };
        let ask = QuotaAsk { data_path: asked, ..QuotaAsk::default() };
        settle(&ask, &Ground { table: &table, mtu: 1500, ipv6: false, faults: false, sites: &[] })
    };
    for (fabric, asked, mode) in [
        ([0, 2], None, Mode::Checked),
        ([0, 2], Some(Mode::Encrypted), Mode::Encrypted),
        ([1, 2], None, Mode::Signed),
        ([1, 2], Some(Mode::Encrypted), Mode::Encrypted),
        ([2, 2], Some(Mode::Encrypted), Mode::Encrypted),
    ] {
        assert_eq!(of(fabric, asked).unwrap().mode, mode);
    }
    let refusal = of([1, 2], Some(Mode::Checked)).unwrap_err();
    assert_eq!(refusal.resource, Resource::DataPath);
    assert_eq!(
        refusal.text,
        "the job asks for data_path = checked, here no job gets less than signed: ask for that or more, or leave it out"
    );
    let refusal = of([0, 1], Some(Mode::Encrypted)).unwrap_err();
    assert!(refusal.text.contains("data_path = encrypted, this fabric gives at most signed"), "{refusal}");
    // A seal takes room in a datagram.
    assert_eq!((of([0, 2], None).unwrap().payload, of([1, 1], None).unwrap().payload), (1368, 1344));
}

#[test]
fn too_much_is_refused_with_both_amounts() {
    let ask = |change: fn(&mut QuotaAsk)| {
        let mut ask = QuotaAsk::default();
        change(&mut ask);
        settled(ask, 1500, &sites(4, 425_984)).unwrap_err()
    };
    let table = [
        (ask(|a| a.groups = Some(65_537)), Resource::Groups, 65_537, 65_536),
        (ask(|a| a.osts = Some(u32::MAX)), Resource::Osts, u64::from(u32::MAX), 1 << 20),
        (ask(|a| a.payload = Some(1376)), Resource::Payload, 1376, 1368),
        (ask(|a| a.payload = Some(20)), Resource::Payload, 20, 1368),
        (ask(|a| a.segment = Some(8)), Resource::Segment, 8, 1 << 20),
        (ask(|a| a.streams = Some(0)), Resource::Streams, 0, 64),
        (ask(|a| a.window = Some(65)), Resource::Window, 65, 64),
        (ask(|a| a.window = Some(64)), Resource::Window, 64, 46),
        (ask(|a| a.osts = Some(8)), Resource::Osts, 16, 8),
        (ask(|a| a.heartbeat_ms = Some(30_000)), Resource::DeadAfter, 90_000, 60_000),
        // The nodes pay for these questions, also where all ranks are idle.
        (ask(|a| a.heartbeat_ms = Some(1)), Resource::Heartbeat, 1, 60_000),
    ];
    for (refusal, resource, asked, available) in table {
        assert_eq!((refusal.resource, refusal.asked, refusal.available), (resource, asked, available), "{refusal}");
    }
    assert_eq!(ask(|a| a.window = Some(64)).holder.as_deref(), Some("tight"));
}

#[test]
fn what_is_asked_within_bounds_is_given() {
    let ask = QuotaAsk {
        groups: Some(7),
        window: Some(2),
        stream_threshold: Some(0),
        segment: Some(16),
        lease_operations: Some(3),
        ..QuotaAsk::default()
    };
    let limits = settled(ask, 1500, &sites(4, 425_984)).unwrap();
    assert_eq!((limits.groups, limits.window, limits.stream_threshold, limits.segment), (7, 2, 0, 16));
    assert_eq!(limits.lease_operations, 3);
}
