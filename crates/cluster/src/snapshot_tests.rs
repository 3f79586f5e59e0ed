//! Snapshots restore what the index held, and damaged ones do no harm.

use super::*;
use crate::scenario::{ALL, Stage};
use crate::{Kinds, Spec};

const CLUSTER: &str = "ns alpha
    ns empty
    svc alpha/web@1 ips=10.96.0.11,fd00:96::11 ports=http:80/TCP,:53/UDP outside=203.0.113.5,lb.example.com
    svc alpha/hl@1 ips=None
    svc alpha/ext@1 external=www.example.com
    slice alpha/web-a@1 of=web v4=10.1.0.5#w0%eu-1,10.1.0.6,!10.1.0.7 ports=http:8080/TCP
    slice alpha/web-b@1 of=web v6=fd00::5,fd00::6 ports=http:8080/TCP
    slice alpha/hl-a@1 of=hl names=host.example.com
    slice alpha/orphan@1 of=lost v4=10.1.0.9
    pod alpha/p@1 ip=10.1.0.5
    pod empty/q@1 ip=fd00::7
    import alpha/common@1 ips=10.112.0.1 ports=http:80/TCP
    import alpha/spread@1 headless
    imported alpha/spread-east@1 of=spread cluster=east v4=10.3.0.1#s-0 ports=:80/TCP
    listed ns
    listed svc
    listed slice
    listed pod
    listed import
    listed imported";

const QUESTIONS: &[&str] = &[
    "ns alpha",
    "ns empty",
    "ns beta",
    "svc alpha/web",
    "svc alpha/hl",
    "svc alpha/ext",
    "svc alpha/lost",
    "called alpha/web w0",
    "ip 10.96.0.11",
    "ip fd00:96::11",
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

fn bytes_of(index: &Index) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(index, &mut bytes);
    bytes
}

#[test]
fn restores_what_the_index_held() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let (mut after, bytes) = (Stage::new(&spec()), bytes_of(&before.index));
    assert_eq!(after.restore(&bytes), Ok(()));
    for question in QUESTIONS {
        assert_eq!(after.ask(question), before.ask(question), "{question}");
    }
    let outside = |stage: &Stage| stage.index.service(b"alpha", b"web", |service| service.external.clone());
    assert_eq!(outside(&after), outside(&before));
    let common = |stage: &Stage| {
        // A snapshot has no versions, so that it does not show an old one.
        let read = |service: &Service| {
            let service = Service { resource_version: None, ..service.clone() };
            format!("{service:?}").replace(char::is_numeric, "")
        };
        stage.index.clusterset().map(|common| common.service(b"alpha", b"spread", read))
    };
    assert_eq!(common(&after), common(&before));
    let mut again = bytes_of(&after.index);
    let mut first = bytes;
    again.sort_unstable();
    first.sort_unstable();
    assert_eq!(again, first);
}

#[test]
fn is_marked_as_restored_until_every_watch_is_listed() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let mut after = Stage::new(&spec());
    after.restore(&bytes_of(&before.index)).unwrap();
    assert!(after.index.is_remembered() && !after.index.is_synced() && after.index.knows(Kinds::of(&ALL)));
    after.play(
        "listing ns
         ns alpha@7
         listed ns
         ? ns empty = false
         listing svc
         ? version alpha/web = -
         svc alpha/web@7 ips=10.96.0.99 ports=http:80/TCP
         listed svc
         ? version alpha/web = 7
         ? svc alpha/hl = none
         ? ip 10.96.0.11 = none
         ? ip 10.96.0.99 = alpha/web
         listing slice
         slice alpha/web-z@7 of=web v4=10.1.0.8 ports=http:8080/TCP
         listed slice
         ? svc alpha/web = ClusterIp 10.96.0.99 http:80/TCP [10-1-0-8=10.1.0.8 http:8080/TCP]
         listing pod
         listed pod
         ? pod alpha 10.1.0.5 = false
         listing import
         listed import",
    );
    assert!(after.index.is_remembered());
    after.play("listing imported\nlisted imported");
    assert!(!after.index.is_remembered() && after.index.is_synced());
}

#[test]
fn survives_truncated_and_damaged_snapshots() {
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let bytes = bytes_of(&before.index);
    for end in 0..bytes.len() {
        let mut count = 0;
        let whole = read(&bytes[..end], |_, _| count += 1).is_ok();
        assert!(count < 40 || whole);
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= u8::try_from(at % 255).unwrap() + 1;
        let mut each = |_, object: Object<'_>| assert!(object.meta().name.len() <= bytes.len());
        let _ = read(&damaged, &mut each);
    }
}

#[test]
fn restores_watches_that_follow_namespaces() {
    let followed: Vec<Kind> = ALL.into_iter().filter(|kind| *kind != Kind::Namespace).collect();
    let following = Spec { followed, endpoint_zones: true, ..Spec::new(&[Kind::Namespace], &[]) };
    let mut before = Stage::new(&spec());
    before.play(CLUSTER);
    let mut after = Stage::new(&following);
    after.restore(&bytes_of(&before.index)).unwrap();
    for question in QUESTIONS {
        assert_eq!(after.ask(question), before.ask(question), "{question}");
    }
    after.play(
        "? known alpha svc = true
         ? synced = false
         listing ns
         ns empty
         listed ns => listed { swept: 1 }
         ? ns alpha = false
         close svc alpha
         ? ip 10.96.0.11 = none
         open svc empty
         open slice empty
         open import empty
         open imported empty
         listed svc empty
         listed slice empty
         listed pod empty
         listed import empty
         listed imported empty
         ? synced = true",
    );
}
