//! A log restores what the index held, as does its compacted form, and damage ends it early.

use super::*;
use crate::object::{self, AddressType};
use crate::random_tests::{ADDRESSES, Model, NAMESPACES, SERVICES, numbers, one_event, relist};
use crate::scenario::{ALL, Stage};
use crate::{Kinds, Resumable, Spec};

const CLUSTER: &str = "listing ns
    ns alpha@1
    ns empty@1
    listed ns
    listing svc
    svc alpha/web@1 ips=10.96.0.11,fd00:96::11 ports=http:80/TCP,:53/UDP outside=203.0.113.5,lb.example.com
    svc alpha/hl@1 ips=None
    svc alpha/ext@1 external=www.example.com
    listed svc
    listing slice
    slice alpha/web-a@1 of=web v4=10.1.0.5#w0%eu-1,10.1.0.6,!10.1.0.7~p-7 ports=http:8080/TCP
    slice alpha/web-b@1 of=web v6=fd00::5,fd00::6 ports=http:8080/TCP
    slice alpha/hl-a@1 of=hl names=host.example.com
    slice alpha/orphan@1 of=lost v4=10.1.0.9
    listed slice
    listing pod
    pod alpha/p@1 ip=10.1.0.5
    pod empty/q@1 ip=fd00::7
    listed pod
    listing import
    import alpha/common@1 ips=10.112.0.1 ports=http:80/TCP
    import alpha/spread@1 headless
    listed import
    listing imported
    imported alpha/spread-east@1 of=spread cluster=east v4=10.3.0.1#s-0 ports=:80/TCP
    listed imported";

const QUESTIONS: &[&str] = &[
    "ns alpha",
    "ns empty",
    "ns beta",
    "svc alpha/web",
    "svc alpha/hl",
    "svc alpha/ext",
    "svc alpha/lost",
    "version alpha/web",
    "common version alpha/spread",
    "unready alpha/web",
    "called alpha/web w0",
    "ip 10.96.0.11",
    "ip fd00:96::11",
    "outside 203.0.113.5",
    "at 10.1.0.5",
    "at 10.1.0.9",
    "pod alpha 10.1.0.5",
    "pod empty fd00::7",
    "pod alpha fd00::7",
    "counts",
];

fn spec() -> Spec {
    Spec { endpoint_zones: true, ..Spec::new(&ALL, &[]) }
}

/// Namespaces, and Services in those that exist.
fn following_services() -> Spec {
    Spec { followed: vec![Kind::Service], ..Spec::new(&[Kind::Namespace], &[]) }
}

fn restored(spec: &Spec, log: &[u8]) -> Option<(Stage, Vec<Resumable>)> {
    let mut stage = Stage::new(spec);
    let resumable = stage.restore(log)?;
    Some((stage, resumable))
}

/// Returns the compacted form of a log.
fn compacted(log: &[u8]) -> Vec<u8> {
    let (mut compaction, mut shorter) = (Compaction::default(), Vec::new());
    let end = for_each_record(log, |offset, length, record| {
        compaction.add(&record, offset as u64, u32::try_from(length).unwrap());
    });
    assert_eq!(end, log.len());
    let copied = compaction.finish(|piece| match piece {
        Piece::New(record) => record.append_to(&mut shorter),
        Piece::Copy { offset, length } => {
            let offset = usize::try_from(offset).unwrap();
            shorter.extend_from_slice(&log[offset..offset + length as usize]);
            Ok(())
        }
    });
    assert_eq!(copied, Ok(()));
    shorter
}

fn records(log: &[u8]) -> usize {
    let mut count = 0;
    for_each_record(log, |_, _, _| count += 1);
    count
}

#[test]
fn restores_what_the_index_held() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    for log in [before.log.clone(), compacted(&before.log)] {
        let (after, resumable) = restored(&spec(), &log).unwrap();
        for question in QUESTIONS {
            assert_eq!(after.ask(question), before.ask(question), "{question}");
        }
        let outside = |stage: &Stage| stage.index.service(b"alpha", b"web", |service| service.external.clone());
        assert_eq!(outside(&after), outside(&before));
        let common = |stage: &Stage| {
            let read = |service: &crate::Service| format!("{service:?}").replace(char::is_numeric, "");
            stage.index.clusterset().map(|common| common.service(b"alpha", b"spread", read))
        };
        assert_eq!(common(&after), common(&before));
        assert!(resumable.iter().all(|watch| watch.position.as_deref() == Some("0")), "{resumable:?}");
        assert_eq!(resumable.len(), ALL.len());
    }
}

#[test]
fn is_marked_as_restored_until_every_watch_is_listed_or_resumed() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let (mut after, _) = restored(&spec(), &before.log).unwrap();
    assert!(after.index.is_remembered() && !after.index.is_synced() && after.index.knows(Kinds::of(&ALL)));
    after.play(
        "listing ns
         ns alpha@7
         listed ns
         ? ns empty = false
         listing svc
         ? version alpha/web = 1
         svc alpha/web@7 ips=10.96.0.99 ports=http:80/TCP
         listed svc
         ? version alpha/web = 7
         ? svc alpha/hl = none
         ? ip 10.96.0.11 = none
         ? ip 10.96.0.99 = alpha/web",
    );
    assert!(after.index.is_remembered() && !after.index.is_synced());
    after.resume_all();
    assert!(!after.index.is_remembered() && after.index.is_synced());
    // An object in the known version changes nothing, and one in another version does.
    after.play(
        "slice alpha/orphan@1 of=lost v4=10.1.0.9 => nothing
         slice alpha/orphan@2 of=lost v4=10.1.0.10 => updated
         ? at 10.1.0.9 =
         ? at 10.1.0.10 = alpha/lost:10-1-0-10",
    );
}

#[test]
fn a_log_that_ends_before_the_first_list_of_a_watch_is_refused() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let mut ends = Vec::new();
    for_each_record(&before.log, |offset, _, _| ends.push(offset));
    for end in ends {
        assert!(restored(&spec(), &before.log[..end]).is_none(), "at {end}");
        assert!(restored(&spec(), &compacted(&before.log[..end])).is_none(), "at {end}");
    }
}

#[test]
fn the_position_is_that_of_the_last_event_and_lost_within_a_list() {
    let only = Spec::new(&[Kind::Service], &[]);
    let resumable = |lines: &str| {
        let mut stage = Stage::new(&only);
        stage.play("listing svc\nsvc a/one@3 ips=None\nlisted svc");
        stage.play(lines);
        let (_, resumable) = restored(&only, &stage.log).unwrap();
        assert_eq!(restored(&only, &compacted(&stage.log)).unwrap().1, resumable, "{lines}");
        resumable.into_iter().next().unwrap()
    };
    let (position, floor) = (|lines: &str| resumable(lines).position, |lines: &str| resumable(lines).floor);
    assert_eq!(position("").as_deref(), Some("0"));
    assert_eq!(position("svc a/two@5 ips=None").as_deref(), Some("5"));
    assert_eq!(position("svc a/two@5 ips=None\n-svc a/two@7").as_deref(), Some("7"));
    assert_eq!(position("~svc a/two@9").as_deref(), Some("9"));
    // A known version changes nothing.
    assert_eq!(position("svc a/two@5 ips=None\nsvc a/one@3 ips=None").as_deref(), Some("5"));
    assert_eq!(position("svc a/two@5 ips=None\nlisting svc\nsvc a/one@3 ips=None"), None);
    // The record of an object that the list has, too, has a position of its own.
    assert_eq!(position("svc a/two@5 ips=None\nlisting svc\nsvc a/two@5 ips=None"), None);
    assert_eq!(position("listing svc\nlisted svc").as_deref(), Some("0"));
    assert_eq!(floor("svc a/two@5 ips=None\nlisting svc\nsvc a/one@3 ips=None").as_deref(), Some("5"));
    assert_eq!(floor("svc a/two@5 ips=None\nlisting svc\nlisted svc\nlisting svc").as_deref(), Some("0"));
}

/// A pod that terminates keeps its last state until it is deleted, and one first seen so has none.
#[test]
fn the_state_of_a_pod_that_terminates_survives() {
    let only = Spec::new(&[Kind::Pod], &[]);
    for (later, is_known) in [
        ("", true),
        ("listing pod\npod alpha/p@2 ip=10.1.0.5 terminating", true),
        ("listing pod\npod alpha/p@2 ip=10.1.0.5 terminating\nlisted pod", true),
        ("listing pod\nlisted pod", false),
        ("-pod alpha/p@3", false),
    ] {
        let mut stage = Stage::new(&only);
        stage.play("listing pod\npod alpha/p@1 ip=10.1.0.5\nlisted pod");
        stage.play("pod alpha/p@2 ip=10.1.0.9 terminating\npod alpha/q@2 ip=10.1.0.6 terminating");
        stage.play(later);
        for log in [stage.log.clone(), compacted(&stage.log)] {
            let (after, _) = restored(&only, &log).unwrap();
            assert_eq!(after.ask("pod alpha 10.1.0.5"), is_known.to_string(), "{later}");
            assert_eq!(after.ask("counts"), stage.ask("counts"), "{later}");
        }
    }
}

/// Records of a watch before its first list do not count.
#[test]
fn a_watch_begins_with_a_list() {
    let following = following_services();
    for events in [
        "svc alpha/web@2 ips=None",
        "~svc alpha/web@2",
        "-svc alpha/web@2",
        "svc alpha/web@2 ips=None\nlisted svc alpha",
        "listing svc alpha\nlisted svc alpha\nclose svc alpha\nopen svc alpha\nsvc alpha/web@3 ips=None",
    ] {
        let mut stage = Stage::new(&following);
        stage.play("listing ns\nns alpha@1\nlisted ns\nopen svc alpha");
        stage.play(events);
        for log in [stage.log.clone(), compacted(&stage.log)] {
            let (after, resumable) = restored(&following, &log).unwrap();
            assert_eq!(resumable.len(), 1, "{events}: {resumable:?}");
            assert_eq!((after.ask("svc alpha/web"), after.ask("known alpha svc")), ("none".into(), "false".into()));
        }
    }
}

/// Objects of an incomplete list stay until a later list is complete.
#[test]
fn a_watch_keeps_the_objects_of_first_lists_that_failed() {
    let following = following_services();
    let mut stage = Stage::new(&following);
    stage.play(
        "listing ns
         ns alpha@1
         listed ns
         open svc alpha
         listing svc alpha
         svc alpha/one@1 ips=None
         listing svc alpha
         svc alpha/two@1 ips=None",
    );
    for log in [stage.log.clone(), compacted(&stage.log)] {
        let (mut after, _) = restored(&following, &log).unwrap();
        after.play(
            "? svc alpha/one = Headless :-/
             ? svc alpha/two = Headless :-/
             listing svc alpha
             listed svc alpha
             ? svc alpha/one = none",
        );
    }
}

/// A namespace that was new when the process ended, or is new since then, may have objects that nobody has listed.
#[test]
fn a_snapshot_denies_nothing_in_a_namespace_that_it_does_not_have_a_list_of() {
    let following = following_services();
    let mut stage = Stage::new(&following);
    stage.play(
        "listing ns
         ns alpha@1
         ns beta@1
         listed ns
         open svc alpha
         listing svc alpha
         listed svc alpha
         open svc beta
         listing svc beta",
    );
    for log in [stage.log.clone(), compacted(&stage.log)] {
        let (mut after, _) = restored(&following, &log).unwrap();
        after.play(
            "? known alpha svc = true
             ? known beta svc = false
             ns gamma@2
             ? known gamma svc = false
             listing svc beta
             listed svc beta
             ? known beta svc = true
             ? known alpha svc = true
             open svc
             listing svc
             listed svc
             ? known gamma svc = true
             ? known alpha svc = true",
        );
    }
}

/// Plays random events and lists, and returns the stage and the model of what it must hold.
fn random_stage(seed: u64) -> (Stage, Model) {
    let mut number = numbers(seed);
    let (mut stage, mut model) = (Stage::new(&Spec::new(&ALL, &[])), Model::default());
    for kind in ["ns", "svc", "slice", "pod", "import", "imported"] {
        stage.play(&format!("listing {kind}\nlisted {kind}"));
    }
    for step in 0..300 {
        if number(20) == 0 {
            relist(&mut stage, &mut model, &mut number);
        } else {
            one_event(&mut stage, &mut model, &mut number, step);
        }
    }
    (stage, model)
}

/// Asserts that two stages give the same answers.
fn assert_same(one: &Stage, other: &Stage, context: &str) {
    let same = |question: &str| assert_eq!(one.ask(question), other.ask(question), "{context}: {question}");
    for namespace in NAMESPACES {
        same(&format!("ns {namespace}"));
        ADDRESSES.iter().for_each(|ip| same(&format!("pod {namespace} {ip}")));
        SERVICES.iter().for_each(|service| same(&format!("svc {namespace}/{service}")));
        SERVICES.iter().for_each(|service| same(&format!("version {namespace}/{service}")));
        SERVICES.iter().for_each(|service| same(&format!("unready {namespace}/{service}")));
    }
    ADDRESSES.iter().for_each(|ip| same(&format!("at {ip}")));
    same("counts");
}

#[test]
fn random_logs_and_their_compacted_forms_restore_the_same() {
    for seed in 1..=30 {
        let (stage, model) = random_stage(seed);
        let (whole, resumable) = restored(&Spec::new(&ALL, &[]), &stage.log).unwrap();
        model.check(&whole, seed);
        assert_same(&stage, &whole, &format!("seed {seed}"));
        let shorter = compacted(&stage.log);
        assert!(records(&shorter) <= model.len() + 2 * ALL.len() + 1, "seed {seed}: only what counts is left");
        let (short, also) = restored(&Spec::new(&ALL, &[]), &shorter).unwrap();
        model.check(&short, seed);
        assert_eq!(also, resumable, "seed {seed}");
        assert_eq!(records(&compacted(&shorter)), records(&shorter), "seed {seed}");
    }
}

/// A log that is compacted while a list is in progress, and continued, restores the same.
#[test]
fn a_compacted_beginning_with_its_continuation_restores_the_same() {
    for seed in 1..=3 {
        let (stage, model) = random_stage(seed);
        let mut offsets = Vec::new();
        for_each_record(&stage.log, |offset, _, _| offsets.push(offset));
        for cut in offsets.into_iter().step_by(31) {
            let (begin, rest) = stage.log.split_at(cut);
            let again = [&compacted(begin)[..], rest].concat();
            let (after, resumable) = restored(&Spec::new(&ALL, &[]), &again).unwrap();
            model.check(&after, seed);
            assert_eq!(resumable, restored(&Spec::new(&ALL, &[]), &stage.log).unwrap().1, "seed {seed}, cut at {cut}");
            if let Some((short, _)) = restored(&Spec::new(&ALL, &[]), &compacted(begin)) {
                let (long, _) = restored(&Spec::new(&ALL, &[]), begin).unwrap();
                assert_same(&long, &short, &format!("seed {seed}, cut at {cut}"));
            }
        }
    }
}

#[test]
fn a_log_that_is_cut_anywhere_is_a_prefix() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let mut ends = vec![0];
    for_each_record(&before.log, |offset, length, _| ends.push(offset + length));
    for cut in 0..=before.log.len() {
        let expected = ends.iter().rposition(|end| *end <= cut).unwrap();
        assert_eq!(records(&before.log[..cut]), expected, "cut at {cut}");
        assert_eq!(for_each_record(&before.log[..cut], |_, _, _| {}), ends[expected], "cut at {cut}");
    }
}

#[test]
fn a_changed_byte_ends_the_log_before_its_record() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let mut ends = vec![0];
    for_each_record(&before.log, |offset, length, _| ends.push(offset + length));
    for at in 0..before.log.len() {
        let mut damaged = before.log.clone();
        damaged[at] ^= u8::try_from(at % 255).unwrap() + 1;
        let expected = ends.iter().rposition(|end| *end <= at).unwrap();
        assert_eq!(records(&damaged), expected, "byte {at}");
    }
    assert_eq!(records(&[0; 64]), 0, "zeros are no records");
}

#[test]
fn restores_watches_that_follow_namespaces() {
    let followed: Vec<Kind> = ALL.into_iter().filter(|kind| *kind != Kind::Namespace).collect();
    let following = Spec { followed, endpoint_zones: true, ..Spec::new(&[Kind::Namespace], &[]) };
    let mut before = Stage::new(&following);
    for namespace in ["alpha", "empty", "gone"] {
        for kind in ["svc", "slice", "pod", "import", "imported"] {
            let watch = format!("{kind} {namespace}");
            before.play(&format!("open {watch}\nlisting {watch}\nlisted {watch}"));
        }
    }
    before.play(CLUSTER);
    before.play("svc gone/old@2 ips=10.96.0.88\nclose svc gone\nclose slice gone");
    for log in [before.log.clone(), compacted(&before.log)] {
        let (mut after, resumable) = restored(&following, &log).unwrap();
        for question in QUESTIONS {
            assert_eq!(after.ask(question), before.ask(question), "{question}");
        }
        assert_eq!(after.ask("ip 10.96.0.88"), "none");
        let of_alpha = resumable.iter().filter(|known| known.watch.namespace.as_deref() == Some("alpha"));
        assert!(of_alpha.clone().count() > 1, "{resumable:?}");
        after.play("? known alpha svc = true\n? synced = false");
        // A watch of all namespaces takes the place of the others, and its list ends what they knew.
        after.play("open svc\nlisting svc\n? ip 10.96.0.11 = alpha/web\nlisted svc\n? ip 10.96.0.11 = none");
        let (wide, _) = restored(&following, &[&log[..], &after.log].concat()).unwrap();
        assert_eq!(wide.ask("ip 10.96.0.11"), "none");
        let (wide, resumable) = restored(&following, &compacted(&[&log[..], &after.log].concat())).unwrap();
        assert_eq!(wide.ask("ip 10.96.0.11"), "none");
        let services = resumable.iter().filter(|known| known.watch.kind == Kind::Service);
        assert_eq!(services.map(|known| known.watch.namespace.as_deref()).collect::<Vec<_>>(), [None]);
    }
}

/// The bytes of a log with every kind of record and object. If they change, so does the format: the title of the file
/// needs a new number, since an older log would be read wrongly.
#[test]
fn the_format_is_the_one_of_the_title() {
    let watch = Watch { kind: Kind::EndpointSlice, namespace: Some("n".into()) };
    let mut log = Vec::new();
    for object in objects() {
        Record::of(&watch, Entry::Applied { object, is_live: true }).append_to(&mut log).unwrap();
    }
    for entry in [
        Entry::Listing,
        Entry::Listed { position: "7" },
        Entry::Seen { namespace: "n", name: "s" },
        Entry::Deleted { namespace: "n", name: "s", version: "8" },
        Entry::Position("9"),
        Entry::Closed,
    ] {
        let record: Record<'_> = Record::of(&watch, entry);
        record.append_to(&mut log).unwrap();
    }
    for kind in Kind::ALL {
        let record: Record<'_> = Record::Event { kind, namespace: None, entry: Entry::Position("1") };
        record.append_to(&mut log).unwrap();
    }
    let end: Record<'_> = Record::BaseEnd;
    end.append_to(&mut log).unwrap();
    assert_eq!((log.len(), crc32fast::hash(&log)), FORMAT_2);
    assert_eq!(records(&log), objects().len() + 7 + Kind::COUNT);
}

/// Length and checksum of the log in [`the_format_is_the_one_of_the_title`].
const FORMAT_2: (usize, u32) = (732, 4_092_565_941);

fn objects() -> Vec<Object<'static>> {
    let meta = object::Meta { namespace: "n", name: "s", version: "5" };
    let ports = vec![object::Port { name: "http", protocol: "TCP", number: Some(80) }];
    let endpoint = object::Endpoint {
        address: "10.1.0.5",
        ready: Some(true),
        hostname: "w0",
        target: "p",
        is_pod: true,
        zone: "eu-1",
    };
    let mesh = object::mesh::ServiceEntry {
        meta,
        created: "2026-01-01T00:00:00Z",
        hosts: vec!["a.example.com"],
        addresses: vec!["10.0.0.1"],
        allocated: vec![object::mesh::Allocated { address: "240.0.0.1", host: "a.example.com" }],
        resolution: "DNS",
        endpoints: vec!["10.0.0.2"],
        selector: Some(vec![("app", "a")]),
        export_to: vec!["*"],
    };
    vec![
        Object::Namespace(meta),
        Object::Service(object::Service {
            meta,
            service_type: "ClusterIP",
            cluster_ips: vec!["10.96.0.1"],
            external_name: "x",
            ports: ports.clone(),
            external: vec!["203.0.113.5"],
        }),
        Object::EndpointSlice(object::EndpointSlice {
            meta,
            service: "web",
            source_cluster: "east",
            address_type: AddressType::Fqdn,
            endpoints: vec![endpoint],
            ports: ports.clone(),
        }),
        Object::Pod(object::Pod {
            meta,
            addresses: vec!["10.1.0.5"],
            terminating: true,
            host_network: false,
            labels: vec![("app", "a")],
        }),
        Object::ServiceImport(object::ServiceImport { meta, import_type: "Headless", ips: vec!["10.2.0.1"], ports }),
        Object::ServiceEntry(mesh),
        Object::WorkloadEntry(object::mesh::WorkloadEntry {
            meta,
            address: "10.0.0.3",
            labels: vec![("app", "a")],
            unhealthy: true,
        }),
        Object::WorkloadPod(object::mesh::WorkloadPod {
            meta,
            addresses: vec!["10.1.0.6"],
            labels: vec![("app", "a")],
            ready: true,
            on_host_network: false,
            captured: true,
        }),
        Object::Node(object::Node { meta, zone: "eu-1a", region: "eu-1" }),
    ]
}

#[test]
fn restores_an_object_whose_version_another_one_had_before_a_backup_was_restored() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    before.play(
        "restored svc
         listing svc
         svc alpha/web@1 ips=10.96.0.12
         listed svc",
    );
    for log in [before.log.clone(), compacted(&before.log)] {
        let (mut after, _) = restored(&spec(), &log).unwrap();
        after.play("? ip 10.96.0.12 = alpha/web\n? ip 10.96.0.11 = none\n? svc alpha/hl = none");
    }
}
