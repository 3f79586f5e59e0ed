//! Tests of the accessors of the index that only other crates call.

use std::cell::Cell;
use std::num::NonZeroU32;

use crate::scenario::{ALL, Stage};
use crate::{Kind, Service, Spec};

#[test]
fn tells_the_age_of_stale_data() {
    let stage = Stage::new(&Spec::new(&ALL, &[]));
    assert_eq!(stage.index.stale_seconds(), None);
    for seconds in [1, 7] {
        stage.index.set_stale_seconds(NonZeroU32::new(seconds));
        assert_eq!(stage.index.stale_seconds(), Some(seconds));
    }
    stage.index.set_stale_seconds(None);
    assert_eq!(stage.index.stale_seconds(), None);
}

#[test]
fn counts_each_change_of_either_index() {
    let mut stage = Stage::new(&Spec::new(&ALL, &[]));
    let mut before = stage.index.changes();
    for (event, is_change) in [
        ("svc alpha/web@1 ips=10.96.0.1", true),
        ("svc alpha/web@1 ips=10.96.0.1", false),
        ("import alpha/web@1 ips=10.112.0.1", true),
        ("-import alpha/web", true),
        ("-import alpha/web", false),
    ] {
        stage.apply(event);
        assert_eq!(stage.index.changes() != before, is_change, "{event}");
        before = stage.index.changes();
    }
}

#[test]
fn names_the_kinds_that_are_not_listed() {
    let mut stage = Stage::new(&Spec::new(&[Kind::Namespace, Kind::Service], &[]));
    let unlisted = |stage: &Stage| stage.index.unlisted().collect::<Vec<_>>();
    assert_eq!(unlisted(&stage), [Kind::Namespace, Kind::Service]);
    stage.play("listing ns\nlisted ns");
    assert_eq!(unlisted(&stage), [Kind::Service]);
    stage.play("listing svc\nlisted svc");
    assert_eq!(unlisted(&stage), []);
}

#[test]
fn a_service_has_endpoints_if_one_is_ready() {
    let mut stage = Stage::new(&Spec::new(&ALL, &[]));
    stage.play("svc alpha/web@1 ips=None");
    for (slice, has_endpoints) in [
        ("slice alpha/a@1 of=web v4=!10.1.0.1", false),
        ("slice alpha/b@1 of=web v4=10.1.0.2", true),
        ("-slice alpha/b", false),
    ] {
        stage.apply(slice);
        let found = stage.index.service(b"alpha", b"web", Service::has_endpoints);
        assert_eq!(found, Some(has_endpoints), "{slice}");
    }
}

/// An address that was released and given away has two owners in its table until a list ends.
#[test]
fn an_address_belongs_to_the_service_that_has_it() {
    let mut stage = Stage::new(&Spec::new(&ALL, &[]));
    stage.play(
        "svc alpha/one@1 ips=10.96.0.1 outside=203.0.113.5
         svc alpha/two@1 ips=10.96.0.2 outside=203.0.113.6
         svc alpha/two@2 ips=10.96.0.1 outside=203.0.113.5
         svc alpha/one@2 ips=10.96.0.3 outside=203.0.113.7
         ? ip 10.96.0.1 = alpha/two
         ? ip 10.96.0.2 = none
         ? ip 10.96.0.3 = alpha/one
         ? outside 203.0.113.5 = alpha/two
         ? outside 203.0.113.6 =
         ? outside 203.0.113.7 = alpha/one",
    );
}

#[test]
fn keeps_the_zones_of_endpoints_if_they_are_wanted() {
    let long = "z".repeat(256);
    for (is_wanted, endpoints, expected) in [
        (true, "10.1.0.1%Eu-1,10.1.0.2,10.1.0.3%eu-1".to_owned(), ["eu-1", "", "eu-1"]),
        (true, format!("10.1.0.1%{long},10.1.0.2%eu-2,10.1.0.3"), ["", "eu-2", ""]),
        (true, "10.1.0.1,10.1.0.2,10.1.0.3".to_owned(), ["", "", ""]),
        (false, "10.1.0.1%eu-1,10.1.0.2,10.1.0.3".to_owned(), ["", "", ""]),
    ] {
        let mut stage = Stage::new(&Spec { endpoint_zones: is_wanted, ..Spec::new(&ALL, &[]) });
        stage.play(&format!("svc alpha/web@1 ips=None\nslice alpha/web-a@1 of=web v4={endpoints}"));
        let zones = |service: &Service| -> Vec<String> {
            service.endpoints().map(|endpoint| endpoint.zone().to_owned()).collect()
        };
        assert_eq!(stage.index.service(b"alpha", b"web", zones).unwrap(), expected, "{endpoints}");
    }
}

#[test]
fn an_import_advances_the_serial_only_if_the_zone_changes() {
    for (update, stamps) in [
        ("import alpha/web@2 ips=10.112.0.1 ports=http:80/TCP", false),
        ("import alpha/web@2 ips=10.112.0.2 ports=http:80/TCP", true),
        ("import alpha/web@2 headless ports=http:80/TCP", true),
        ("import alpha/web@2 ips=10.112.0.1 ports=http:81/TCP", true),
    ] {
        let mut stage = Stage::new(&Spec::new(&ALL, &[]));
        stage.play("at 1\nimport alpha/web@1 ips=10.112.0.1 ports=http:80/TCP\nat 2");
        stage.apply(update);
        let serial = stage.index.clusterset().map(|common| common.serial());
        assert_eq!(serial, Some(if stamps { 2 } else { 1 }), "{update}");
    }
}

#[test]
fn a_pod_is_found_by_its_whole_name() {
    let mut stage = Stage::new(&Spec { pod_names: true, ..Spec::new(&ALL, &[]) });
    stage.play("pod alpha/web-5d8f-x2@1 ip=10.1.0.5");
    for (name, is_it) in
        [("web-5d8f-x2", true), ("web-5d8f-x3", false), ("web-5d8f", false), ("x2", false), ("", false)]
    {
        let found = Cell::new(None);
        stage.index.pods_at("10.1.0.5".parse().unwrap(), |pod| found.set(Some(pod.is_named(name))));
        assert_eq!(found.get(), Some(is_it), "{name}");
    }
}
