//! Scenarios of watch events, and the resulting state of the index.

use crate::scenario::{ALL, Stage, play};
use crate::{Kind, Spec};

#[test]
fn indexes_services_of_all_types() {
    play(
        "ns alpha => added
         svc alpha/web@1 ips=10.96.0.11 ports=http:80/TCP,dns:53/UDP => added
         svc alpha/dual@1 ips=10.96.0.13,fd00:96::13 ports=:80/TCP
         svc alpha/hl@1 ips=None ports=http:80/TCP
         svc alpha/ext@1 external=www.example.com
         svc alpha/pending@1 ips=
         ? svc alpha/web = ClusterIp 10.96.0.11 http:80/TCP,dns:53/UDP
         ? svc alpha/dual = ClusterIp 10.96.0.13,fd00:96::13 :80/TCP
         ? svc alpha/hl = Headless http:80/TCP
         ? svc alpha/ext = ExternalName www.example.com :-/
         ? svc alpha/pending = ClusterIp  :-/
         ? svc beta/web = none
         ? svc alpha/WEB = none
         ? ns alpha = true
         ? ns beta = false
         ? ip 10.96.0.13 = alpha/dual
         ? ip fd00:96::13 = alpha/dual
         ? ip 10.96.0.99 = none
         ? counts = 1 5 0 0 0
         -svc alpha/web => removed
         -svc alpha/web => nothing
         -ns alpha => removed
         ? svc alpha/web = none
         ? ip 10.96.0.11 = none
         ? ns alpha = false
         ? counts = 0 4 0 0 0",
    );
}

#[test]
fn update_replaces_the_cluster_ip() {
    play(
        "svc alpha/web@1 ips=10.96.0.11,fd00::1
         svc alpha/web@2 ips=10.96.0.12,fd00::1 => updated
         ? ip 10.96.0.11 = none
         ? ip 10.96.0.12 = alpha/web
         ? ip fd00::1 = alpha/web
         svc alpha/web@3 ips=None
         ? ip 10.96.0.12 = none
         ? ip fd00::1 = none",
    );
}

#[test]
fn takes_the_location_from_the_first_node_by_name_that_has_both_labels() {
    Stage::new(&Spec::new(&[Kind::Node], &[])).play(
        "? location =
         node b@1 zone=eu-1b region=eu-1 => added
         node a@1 zone=eu-1a
         ? location = eu-1b eu-1
         node a@2 zone=eu-1a region=eu-1 => updated
         ? location = eu-1a eu-1
         node a@3 region=eu-1
         ? location = eu-1b eu-1
         -node b
         ? location =",
    );
}

#[test]
fn finds_services_by_external_ip() {
    play(
        "svc alpha/lb@1 ips=10.96.0.1 outside=203.0.113.5,203.0.113.6,lb.example.com
         svc beta/lb@1 ips=None outside=203.0.113.5,2001:db8::5
         ? outside 203.0.113.5 = alpha/lb beta/lb
         ? outside 203.0.113.6 = alpha/lb
         ? outside 2001:db8::5 = beta/lb
         ? outside 10.96.0.1 =
         svc alpha/lb@2 ips=10.96.0.1 outside=203.0.113.6
         ? outside 203.0.113.5 = beta/lb
         ? outside 203.0.113.6 = alpha/lb
         -svc alpha/lb
         ? outside 203.0.113.6 =",
    );
}

#[test]
fn finds_the_remaining_service_if_two_had_the_same_cluster_ip() {
    play(
        "svc alpha/a@1 ips=10.96.0.11
         svc alpha/b@1 ips=10.96.0.11
         -svc alpha/a
         ? ip 10.96.0.11 = alpha/b",
    );
}

#[test]
fn labels_endpoints_by_hostname_or_address() {
    play(
        "svc alpha/web@1 ips=10.96.0.11
         slice alpha/web-a@1 of=web v4=10.1.0.5#w0,10.1.0.6~web-7d9,!10.1.0.7,?10.1.0.8#w0 ports=http:8080/TCP
         slice alpha/web-b@1 of=web v6=fd00:1::22,2001:db8::
         ? svc alpha/web = ClusterIp 10.96.0.11 :-/ \
            [fd00-1--22=fd00:1::22 2001-db8--0=2001:db8:: :-/] \
            [w0=10.1.0.5 10-1-0-6=10.1.0.6 w0=10.1.0.8 http:8080/TCP]
         ? called alpha/web w0 = 10.1.0.5 10.1.0.8
         ? called alpha/web 10-1-0-5 =
         ? called alpha/web 10-1-0-6 = 10.1.0.6
         ? called alpha/web 10-1-0-7 =
         ? called alpha/web web-7d9 =
         ? called alpha/web 2001-db8--0 = 2001:db8::
         ? called alpha/web 2001-db8-- =
         ? called alpha/web fd00-1-0--22 =
         ? at 10.1.0.5 = alpha/web:w0
         ? at 10.1.0.7 =
         ? at fd00:1::22 = alpha/web:fd00-1--22",
    );
}

#[test]
fn labels_endpoints_by_pod_name_if_configured() {
    let mut spec = Spec::new(&ALL, &[]);
    spec.endpoint_pod_names = true;
    let long = "p".repeat(64);
    Stage::new(&spec).play(&format!(
        "svc alpha/web@1 ips=None
         slice alpha/web-a@1 of=web v4=10.1.0.5#w0~web-1,10.1.0.6~web-2,10.1.0.7~{long}
         ? called alpha/web w0 = 10.1.0.5
         ? called alpha/web web-2 = 10.1.0.6
         ? called alpha/web 10-1-0-6 =
         ? called alpha/web 10-1-0-7 = 10.1.0.7
         ? at 10.1.0.6 = alpha/web:web-2"
    ));
}

#[test]
fn labels_fqdn_endpoints_by_their_name() {
    play(
        "svc alpha/far@1 ips=None
         slice alpha/far-a@1 of=far names=www.example.com,a.example#a0
         ? svc alpha/far = Headless :-/ [www-example-com=www.example.com a0=a.example :-/]
         ? called alpha/far www-example-com = www.example.com
         ? called alpha/far a0 = a.example",
    );
}

#[test]
fn a_version_of_another_history_is_another_object() {
    play(
        "svc alpha/web@7 ips=10.96.0.11
         listing svc
         svc alpha/web@7 ips=10.96.0.12 => nothing
         listed svc
         ? svc alpha/web = ClusterIp 10.96.0.11 :-/
         restored svc
         listing svc
         svc alpha/web@7 ips=10.96.0.12 => updated
         listed svc
         ? svc alpha/web = ClusterIp 10.96.0.12 :-/
         svc alpha/web@7 ips=10.96.0.13 => nothing",
    );
}

#[test]
fn keeps_slices_without_their_service() {
    play(
        "slice alpha/web-a@1 of=web v4=10.1.0.5 => added
         ? svc alpha/web = none
         ? at 10.1.0.5 = alpha/web:10-1-0-5
         ? counts = 0 0 1 0 0
         svc alpha/web@1 ips=10.96.0.11 => added
         ? svc alpha/web = ClusterIp 10.96.0.11 :-/ [10-1-0-5=10.1.0.5 :-/]
         -svc alpha/web => removed
         ? svc alpha/web = none
         ? ip 10.96.0.11 = none
         ? at 10.1.0.5 = alpha/web:10-1-0-5
         svc alpha/web@2 ips=None
         ? svc alpha/web = Headless :-/ [10-1-0-5=10.1.0.5 :-/]
         -svc alpha/web
         -slice alpha/web-a => removed
         ? at 10.1.0.5 =
         ? counts = 0 0 0 0 0",
    );
}

#[test]
fn moves_a_slice_to_another_service() {
    play(
        "at 1
         svc alpha/a@1 ips=None
         svc alpha/b@1 ips=None
         slice alpha/s@1 of=a v4=10.1.0.5
         at 2
         slice alpha/s@2 of=b v4=10.1.0.5 => updated
         ? serial = 2
         ? svc alpha/a = Headless :-/
         ? svc alpha/b = Headless :-/ [10-1-0-5=10.1.0.5 :-/]
         ? at 10.1.0.5 = alpha/b:10-1-0-5
         at 3
         slice alpha/s@3 v4=10.1.0.5 => removed
         ? serial = 3
         ? svc alpha/b = Headless :-/
         ? at 10.1.0.5 =
         slice alpha/s@4 of=a v4=10.1.0.5 => added
         ? at 10.1.0.5 = alpha/a:10-1-0-5",
    );
}

#[test]
fn finds_every_endpoint_that_shares_an_address() {
    play(
        "slice alpha/a-1@1 of=a v4=10.1.0.5,10.1.0.5
         slice alpha/a-2@1 of=a v4=10.1.0.5#w0
         slice alpha/b-1@1 of=b v4=10.1.0.5
         ? at 10.1.0.5 = alpha/a:10-1-0-5 alpha/a:10-1-0-5 alpha/a:w0 alpha/b:10-1-0-5
         slice alpha/a-1@2 of=a v4=10.1.0.6
         ? at 10.1.0.5 = alpha/a:w0 alpha/b:10-1-0-5
         -slice alpha/a-2
         ? at 10.1.0.5 = alpha/b:10-1-0-5
         -slice alpha/b-1
         ? at 10.1.0.5 =
         ? at 10.1.0.6 = alpha/a:10-1-0-6",
    );
}

#[test]
fn keeps_an_endpoint_that_moves_between_slices() {
    play(
        "svc alpha/a@1 ips=None
         slice alpha/a-1@1 of=a v4=10.1.0.5
         slice alpha/a-2@1 of=a v4=10.1.0.5
         slice alpha/a-1@2 of=a v4=
         ? called alpha/a 10-1-0-5 = 10.1.0.5
         ? at 10.1.0.5 = alpha/a:10-1-0-5",
    );
}

#[test]
fn finds_pods_by_primary_address() {
    play(
        "pod alpha/a@1 ip=10.1.0.5 => added
         pod alpha/b@1 ip=10.1.0.5
         pod beta/c@1 ip=fd00::5
         pod beta/d@1
         ? pod alpha 10.1.0.5 = true
         ? pod beta 10.1.0.5 = false
         ? pod beta fd00::5 = true
         -pod alpha/a
         ? pod alpha 10.1.0.5 = true
         pod alpha/b@2 ip=10.1.0.6 => updated
         ? pod alpha 10.1.0.5 = false
         ? pod alpha 10.1.0.6 = true
         pod beta/d@2 ip=10.1.0.5
         ? pod beta 10.1.0.5 = true
         ? pods 10.1.0.5 =
         ns alpha
         ns beta
         pod alpha/b@3 ip=10.1.0.5
         ? pods 10.1.0.5 = alpha beta
         ? pods 10.1.0.6 =
         ? counts = 2 0 0 3 0",
    );
}

#[test]
fn names_pods_by_address_if_configured() {
    let mut spec = Spec::new(&ALL, &[]);
    spec.pod_names = true;
    let story = "pod shop/web-7d9f-x2k8p@1 ip=10.1.0.5
         pod shop/db-0@1 ip=fd00::5
         pod kube-system/proxy-abcde@1 ip=10.0.0.9 network=host
         pod kube-system/a-name-with-a-long-end-of-it0123456789@1 ip=10.0.0.9
         ? named 10.1.0.5 = shop/web-7d9f-x2k8p
         ? named fd00::5 = shop/db-0
         ? named 10.0.0.9 = kube-system/a-name-with-a-long-end-of-it0123456789 kube-system/proxy-abcde!
         pod shop/web-7d9f-x2k8p@2 ip=10.1.0.6
         ? named 10.1.0.5 =
         ? named 10.1.0.6 = shop/web-7d9f-x2k8p
         pod shop/web-7d9f-zzzzz@1 ip=10.1.0.6
         -pod shop/web-7d9f-x2k8p
         ? named 10.1.0.6 = shop/web-7d9f-zzzzz
         listing pod
         pod shop/db-0@1 ip=fd00::5
         listed pod
         ? named 10.1.0.6 =
         ? named 10.0.0.9 =
         ? named fd00::5 = shop/db-0";
    Stage::new(&spec).play(story);
}

#[test]
fn finds_pods_by_each_of_their_addresses() {
    let mut spec = Spec::new(&ALL, &[]);
    spec.pod_names = true;
    let story = "ns shop
         pod shop/web@1 ip=10.1.0.5,fd00::5
         ? pod shop 10.1.0.5 = true
         ? pod shop fd00::5 = true
         ? named fd00::5 = shop/web
         pod shop/web@2 ip=fd00::5,10.1.0.6
         ? pod shop 10.1.0.5 = false
         ? pod shop 10.1.0.6 = true
         ? named 10.1.0.5 =
         ? named 10.1.0.6 = shop/web
         ? named fd00::5 = shop/web
         pod shop/web@3 ip=10.1.0.6
         ? pod shop fd00::5 = false
         ? named fd00::5 =
         ? named 10.1.0.6 = shop/web
         pod shop/web@4 ip=10.1.0.6,10.1.0.7,10.1.0.8
         ? pod shop 10.1.0.7 = true
         ? pod shop 10.1.0.8 = false
         ? counts = 1 0 0 1 1
         -pod shop/web
         ? pod shop 10.1.0.6 = false
         ? pod shop 10.1.0.7 = false
         ? named 10.1.0.7 =";
    Stage::new(&spec).play(story);
}

#[test]
fn keeps_the_labels_of_pods_that_are_configured() {
    let mut spec = Spec::new(&ALL, &[]);
    spec.pod_names = true;
    spec.pod_labels = vec!["app".into(), "tier".into()];
    let long = "v".repeat(64);
    let story = format!(
        "pod shop/web-7d9f-x2k8p@1 ip=10.1.0.5 labels=tier:front,other:x,app:web
         pod shop/web-7d9f-zzzzz@1 ip=10.1.0.6 labels=app:web
         pod shop/long@1 ip=10.1.0.7 labels=app:{long}
         ? label 10.1.0.5 0 = web
         ? label 10.1.0.5 1 = front
         ? label 10.1.0.6 0 = web
         ? label 10.1.0.6 1 =
         ? label 10.1.0.7 0 =
         ? named 10.1.0.6 = shop/web-7d9f-zzzzz
         pod shop/web-7d9f-zzzzz@2 ip=10.1.0.6 labels=app:new
         ? label 10.1.0.6 0 = new
         ? label 10.1.0.5 0 = web
         ? named 10.1.0.6 = shop/web-7d9f-zzzzz
         -pod shop/web-7d9f-x2k8p
         ? label 10.1.0.5 0 ="
    );
    Stage::new(&spec).play(&story);
}

#[test]
fn keeps_a_terminating_pod_until_it_is_deleted() {
    play(
        "listing pod
         pod alpha/first-seen-going@1 ip=10.1.0.5 terminating => nothing
         pod alpha/a@1 ip=10.1.0.6
         listed pod
         ? pod alpha 10.1.0.5 = false
         pod alpha/a@2 ip=10.1.0.9 terminating => updated
         ? pod alpha 10.1.0.6 = true
         listing pod
         pod alpha/a@3 ip=10.1.0.6 terminating
         listed pod => listed { swept: 0 }
         ? pod alpha 10.1.0.6 = true
         -pod alpha/a => removed
         ? pod alpha 10.1.0.6 = false",
    );
}

#[test]
fn keeps_the_version_of_the_last_event_also_without_a_change_of_answers() {
    play(
        "at 1
         svc alpha/web@7 ips=10.96.0.11
         ? version alpha/web = 7
         at 2
         svc alpha/web@8 ips=10.96.0.11 => updated
         ? version alpha/web = 8
         ? serial = 1
         listing svc
         svc alpha/web@8 ips=10.96.0.11 => nothing
         listed svc
         slice alpha/web-a@9 of=web v4=10.1.0.5
         ? version alpha/web = 8
         -svc alpha/web
         svc alpha/web ips=10.96.0.11 => added
         ? version alpha/web = -
         svc alpha/web@opaque ips=10.96.0.11
         ? version alpha/web = -",
    );
    Stage::new(&Spec::new(&ALL, &[])).play(
        "import alpha/web@7 ips=10.112.0.1
         ? common version alpha/web = 7
         import alpha/web@8 ips=10.112.0.1
         ? common version alpha/web = 8",
    );
}

#[test]
fn skips_an_object_with_a_known_resource_version() {
    play(
        "svc alpha/web@1 ips=10.96.0.11
         svc alpha/web@1 ips=10.96.0.99 => nothing
         ? ip 10.96.0.11 = alpha/web
         svc alpha/web@2 ips=10.96.0.99 => updated
         ? ip 10.96.0.99 = alpha/web
         svc beta/unversioned ips=10.96.1.1 => added
         svc beta/unversioned ips=10.96.1.2 => updated
         ? ip 10.96.1.2 = beta/unversioned",
    );
}

#[test]
fn relist_removes_objects_it_does_not_contain() {
    play(
        "listing svc
         svc alpha/stays@1 ips=10.96.0.1
         svc alpha/changes@1 ips=10.96.0.2
         svc alpha/goes@1 ips=10.96.0.3
         listed svc => listed { swept: 0 }
         slice alpha/goes-a@1 of=goes v4=10.1.0.5
         listing svc => nothing
         svc alpha/stays@1 ips=10.96.0.1 => nothing
         svc alpha/changes@2 ips=10.96.0.4 => updated
         ? ip 10.96.0.3 = alpha/goes
         listed svc => listed { swept: 1 }
         ? ip 10.96.0.1 = alpha/stays
         ? ip 10.96.0.2 = none
         ? ip 10.96.0.3 = none
         ? ip 10.96.0.4 = alpha/changes
         ? svc alpha/goes = none
         ? at 10.1.0.5 = alpha/goes:10-1-0-5
         ? counts = 0 2 1 0 0",
    );
}

#[test]
fn keeps_the_last_state_of_an_undecodable_object() {
    play(
        "listing svc
         svc alpha/web@1 ips=10.96.0.1 ports=http:80/TCP
         svc alpha/gone@1 ips=10.96.0.2
         listed svc
         ~svc alpha/web => nothing
         ~svc alpha/never-read => nothing
         listing svc
         ~svc alpha/web => nothing
         listed svc => listed { swept: 1 }
         ? svc alpha/web = ClusterIp 10.96.0.1 http:80/TCP
         ? svc alpha/gone = none
         ? svc alpha/never-read = none",
    );
}

#[test]
fn aborted_relist_does_not_confuse_the_next_one() {
    play(
        "listing svc
         svc alpha/a@1 ips=10.96.0.1
         svc alpha/b@1 ips=10.96.0.2
         listed svc
         listing svc
         svc alpha/a@1 ips=10.96.0.1
         listing svc
         svc alpha/b@1 ips=10.96.0.2
         -svc alpha/b
         svc alpha/b@3 ips=10.96.0.3
         listed svc => listed { swept: 1 }
         ? ip 10.96.0.1 = none
         ? ip 10.96.0.3 = alpha/b",
    );
}

#[test]
fn stays_synced_once_every_watch_was_listed() {
    play(
        "listed ns
         listed svc
         listed slice
         listed svc
         ? synced = false
         listed pod
         listed import
         ? synced = false
         listed imported
         ? synced = true
         listing pod
         ? synced = true",
    );
    Stage::new(&Spec::new(&[], &[])).play("? synced = true");
}

#[test]
fn watches_selected_namespaces_separately() {
    let spec = Spec::new(&[Kind::Namespace, Kind::Service], &["alpha", "beta"]);
    assert_eq!(spec.watches.len(), 3);
    Stage::new(&spec).play(
        "listed ns
         svc alpha/web@1 ips=10.96.0.1
         listed svc alpha
         ? synced = false
         svc beta/web@1 ips=10.96.0.2
         listed svc beta
         ? synced = true
         listing svc alpha
         listed svc alpha => listed { swept: 1 }
         ? ip 10.96.0.1 = none
         ? ip 10.96.0.2 = beta/web
         ? counts = 0 1 0 0 0",
    );
}

#[test]
fn added_and_removed_objects_advance_the_serial() {
    play(
        "? serial = 0
         at 1
         ns alpha@1
         ? serial = 1
         at 2
         svc alpha/web@1 ips=10.96.0.1
         ? serial = 2
         at 3
         slice alpha/web-a@1 of=web v4=
         ? serial = 3
         at 4
         pod alpha/p@1
         ? serial = 4
         at 5
         -svc alpha/web
         ? serial = 5
         at 6
         -svc alpha/web
         -pod alpha/unknown
         ? serial = 5
         at 7
         listing slice
         listed slice
         ? serial = 7
         at 8
         listing slice
         listed slice
         ? serial = 7
         -pod alpha/p
         ? serial = 8",
    );
}

/// Each case is an update and whether it advances the serial. First versions arrive at time 1, updates at time 2.
#[test]
fn updates_advance_the_serial_only_if_the_zone_changes() {
    let first = "at 1
        svc alpha/web@1 ips=10.96.0.1 ports=http:80/TCP
        svc alpha/ext@1 external=www.example.com
        slice alpha/web-a@1 of=web v4=10.1.0.1#a~p,10.1.0.2 ports=http:80/TCP
        pod alpha/p@1 ip=10.1.0.1
        at 2";
    for (update, stamps) in [
        ("svc alpha/web@1 ips=10.96.0.1 ports=other:80/TCP", false),
        ("svc alpha/web@2 ips=10.96.0.1 ports=http:80/TCP", false),
        ("svc alpha/web@2 ips=10.96.0.2 ports=http:80/TCP", true),
        ("svc alpha/web@2 ips=None ports=http:80/TCP", true),
        ("svc alpha/web@2 ips=10.96.0.1 ports=other:80/TCP", true),
        ("svc alpha/web@2 ips=10.96.0.1 ports=http:81/TCP", true),
        ("svc alpha/web@2 ips=10.96.0.1 ports=http:80/UDP", true),
        ("svc alpha/web@2 ips=10.96.0.1", true),
        ("svc alpha/ext@2 external=www.example.com", false),
        ("svc alpha/web@2 ips=10.96.0.1 ports=http:80/TCP outside=203.0.113.5", true),
        ("svc alpha/ext@2 external=www.example.net", true),
        ("slice alpha/web-a@2 of=web v4=10.1.0.1#a~q,10.1.0.2 ports=http:80/TCP", false),
        ("slice alpha/web-a@2 of=web v4=10.1.0.1#a,10.1.0.2,!10.1.0.3 ports=http:80/TCP", false),
        ("slice alpha/web-a@2 of=web v4=10.1.0.1#b,10.1.0.2 ports=http:80/TCP", true),
        ("slice alpha/web-a@2 of=web v4=10.1.0.2,10.1.0.1#a ports=http:80/TCP", true),
        ("slice alpha/web-a@2 of=web v4=10.1.0.1#a,!10.1.0.2 ports=http:80/TCP", true),
        ("slice alpha/web-a@2 of=web v4=10.1.0.1#a,10.1.0.3 ports=http:80/TCP", true),
        ("slice alpha/web-a@2 of=web v4=10.1.0.1#a,10.1.0.2 ports=http:81/TCP", true),
        ("pod alpha/p@2 ip=10.1.0.1", false),
        ("pod alpha/p@2 ip=10.1.0.2", true),
        ("pod alpha/p@2 ip=10.1.0.2 terminating", false),
    ] {
        let mut stage = Stage::new(&Spec::new(&ALL, &[]));
        stage.play(first);
        stage.apply(update);
        assert_eq!(stage.index.serial(), if stamps { 2 } else { 1 }, "{update}");
    }
}

#[test]
fn skips_and_counts_invalid_parts() {
    let long = "n".repeat(64);
    for (event, question, answer, refused) in [
        (format!("ns {long}"), format!("ns {long}"), "false".to_owned(), 1),
        (format!("svc alpha/{long} ips=None"), format!("svc alpha/{long}"), "none".to_owned(), 1),
        (format!("svc a/x external={}", "n".repeat(256)), "svc a/x".to_owned(), "none".to_owned(), 1),
        ("svc a/x ips=10.0.0.1,x,10.0.0.256".to_owned(), "svc a/x".to_owned(), "ClusterIp 10.0.0.1 :-/".to_owned(), 2),
        (format!("slice a/x of={long} v4=10.0.0.1"), "at 10.0.0.1".to_owned(), String::new(), 1),
        ("slice a/x of=x v4=10.0.0.1,x,fd00::1".to_owned(), "at 10.0.0.1".to_owned(), "a/x:10-0-0-1".to_owned(), 2),
        ("slice a/x of=x v6=::ffff:10.0.0.1".to_owned(), "at ::ffff:10.0.0.1".to_owned(), String::new(), 1),
        (format!("slice a/x of=x v4=10.0.0.1#{long}"), "at 10.0.0.1".to_owned(), "a/x:10-0-0-1".to_owned(), 0),
        (format!("slice a/x of=x names={long}"), "counts".to_owned(), "0 0 1 0 1".to_owned(), 1),
        ("pod a/x ip=10.0.0.256".to_owned(), "counts".to_owned(), "0 0 0 1 1".to_owned(), 1),
    ] {
        let mut stage = Stage::new(&Spec::new(&ALL, &[]));
        stage.apply(&event);
        assert_eq!((stage.ask(&question), stage.index.counts().refused), (answer, refused), "{event}");
    }
}

#[test]
fn truncates_objects_to_their_limits() {
    let ips: Vec<String> = (0..1100).map(|n| format!("10.0.{}.{}", n / 256, n % 256)).collect();
    let ports: Vec<String> = (0..1002).map(|n| format!("p{n}:{n}/TCP")).collect();
    let mut stage = Stage::new(&Spec::new(&ALL, &[]));
    stage.apply(&format!("slice a/x of=x v4={} ports={}", ips.join(","), ports.join(",")));
    stage.apply(&format!("svc a/x ips={}", ips[..9].join(",")));
    let sizes = |service: &crate::Service| {
        (service.endpoints().count(), service.slices[0].ports.len(), service.cluster_ips().len())
    };
    assert_eq!(stage.index.service(b"a", b"x", sizes), Some((1000, 1000, 8)));
    assert_eq!(stage.index.counts().refused, 103);
}

#[test]
fn ignores_an_object_from_the_wrong_watch() {
    let (mut reducer, index) = crate::Reducer::new(&Spec::new(&ALL, &[]));
    let event = crate::object::Event::Applied(crate::object::Object::Namespace(Default::default()));
    for watch in [1, 4, usize::MAX] {
        assert_eq!(reducer.apply(watch, &event, 1), crate::Change::Nothing);
    }
    assert_eq!(index.counts(), crate::Counts::default());
}

/// Endpoint 10.1.0.5 moves back and forth between two slices and is in at least one at all times. No reader misses
/// it.
#[test]
fn readers_never_miss_an_endpoint_that_moves() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut stage = Stage::new(&Spec::new(&ALL, &[]));
    stage.play(
        "svc alpha/a ips=None
         slice alpha/a-0 of=a v4=10.1.0.5",
    );
    let index = std::sync::Arc::clone(&stage.index);
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let address = "10.1.0.5".parse().unwrap();
            while !done.load(Ordering::Acquire) {
                let (mut forward, mut reverse) = (0, 0);
                index.service(b"alpha", b"a", |service| forward = service.endpoints_called(b"10-1-0-5").count());
                index.services_of_endpoint(address, |_, _| reverse += 1);
                assert!((1..=2).contains(&forward) && (1..=2).contains(&reverse), "{forward} {reverse}");
            }
        });
        for step in 0..2000 {
            stage.apply(&format!("slice alpha/a-{} of=a v4=10.1.1.{},10.1.0.5", (step + 1) % 2, step % 250));
            stage.apply(&format!("slice alpha/a-{} of=a v4=10.1.1.{}", step % 2, step % 250));
        }
        done.store(true, Ordering::Release);
    });
}

/// Creates a reducer whose Service and EndpointSlice watches follow the namespaces.
fn following() -> Stage {
    let followed = vec![Kind::Service, Kind::EndpointSlice];
    Stage::new(&Spec { followed, ..Spec::new(&[Kind::Namespace], &[]) })
}

#[test]
fn followed_watches_open_and_close_with_their_namespaces() {
    following().play(
        "? known alpha svc = false
         listed ns
         ? synced = true
         ns alpha => added
         ? synced = true
         ? known beta svc = true
         ? known alpha svc = false
         open svc alpha
         open slice alpha
         svc alpha/web@1 ips=10.96.0.1
         listed svc alpha
         ? known alpha svc = true
         ? known alpha slice = false
         listed slice alpha
         ? known alpha slice = true
         slice alpha/web-a@1 of=web v4=10.1.0.5
         svc beta/web@1 ips=10.96.0.2
         ? svc beta/web = none
         at 7
         close svc alpha
         ? serial = 7
         ? svc alpha/web = none
         ? ip 10.96.0.1 = none
         ? known alpha svc = false
         close slice alpha
         ? at 10.1.0.5 =
         ? counts = 1 0 0 0 0
         -ns alpha => removed
         ? synced = true",
    );
}

#[test]
fn not_synced_before_all_followed_watches_are_listed() {
    following().play(
        "ns alpha
         ns beta
         ? synced = false
         listed ns
         ? synced = false
         open svc alpha
         open slice alpha
         open svc beta
         open slice beta
         listed svc alpha
         listed slice alpha
         listed svc beta
         ? known alpha slice = true
         ? synced = false
         listed slice beta
         ? synced = true",
    );
}

#[test]
fn recreated_namespace_keeps_the_listed_state_of_its_open_watches() {
    following().play(
        "ns alpha
         listed ns
         open svc alpha
         open slice alpha
         listed svc alpha
         listed slice alpha
         -ns alpha
         ns alpha
         ? known alpha slice = true
         -ns alpha
         close svc alpha
         close slice alpha
         ns alpha
         ? known alpha svc = false",
    );
}

#[test]
fn cluster_wide_watch_replaces_watches_of_single_namespaces() {
    following().play(
        "ns alpha
         ns beta
         listed ns
         open svc alpha
         open slice alpha
         svc alpha/web@1 ips=10.96.0.1
         svc alpha/gone@1 ips=10.96.0.9
         listed svc alpha
         listed slice alpha
         open svc
         open slice
         ? known alpha svc = true
         ? known beta svc = false
         listing svc
         ? svc alpha/gone = ClusterIp 10.96.0.9 :-/
         svc alpha/web@1 ips=10.96.0.1 => nothing
         svc beta/web@1 ips=10.96.0.2 => added
         ? known alpha svc = true
         ? known beta svc = false
         listed svc => listed { swept: 1 }
         ? svc alpha/gone = none
         ? ip 10.96.0.9 = none
         ? svc alpha/web = ClusterIp 10.96.0.1 :-/
         ? counts = 2 2 0 0 0
         ? known alpha svc = true
         ? known beta svc = true
         ? known beta slice = false
         ? synced = false
         listing slice
         listed slice
         ? synced = true
         ns gamma
         ? known gamma slice = true",
    );
}

#[test]
fn serial_never_decreases_if_the_clock_is_set_back() {
    play(
        "at 1000
         svc alpha/web@1 ips=10.96.0.1
         ? serial = 1000
         at 10
         -svc alpha/web
         ? serial = 1001
         svc alpha/web@2 ips=10.96.0.1
         ? serial = 1002
         at 2000
         -svc alpha/web
         ? serial = 2000",
    );
}
