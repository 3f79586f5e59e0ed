//! Behaviour of a relay towards its subscribers.

use core::time::Duration;
use std::io::Read;

use host::Instant;
use serde_json::{Value, json};

use crate::wire::Fields;
use crate::*;

const SERVICES: &str = "/api/v1/services";
const STREAM: &str = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// Returns the bytes of a Service, without magic bytes and envelope.
fn service(name: &str, version: u64) -> Vec<u8> {
    labelled(name, version, &json!({}))
}

fn labelled(name: &str, version: u64, labels: &Value) -> Vec<u8> {
    raw(&json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": "shop", "uid": "u", "resourceVersion": version.to_string(), "labels": labels,
        },
        "spec": { "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "selector": { "app": name } },
    }))
}

fn raw(object: &Value) -> Vec<u8> {
    let enveloped = fakeapi::protobuf::object("", object);
    let field = Fields::of(&enveloped[4..]).map(Result::unwrap).find(|field| field.number == 2).unwrap();
    field.value.bytes().unwrap().to_vec()
}

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

fn get(path: &str, query: &str, headers: Headers<'_>) -> Request {
    Request::parse(path, query, headers).unwrap()
}

fn json_request(query: &str) -> Request {
    get(SERVICES, query, Headers::default())
}

/// Relay of Services with `a` at version 5 and `b` at 7, listed at version 10.
fn relay() -> Relay {
    let mut relay = Relay::new(&[Kind::Service]);
    relay.begin_list(Kind::Service);
    relay.add_to_list(Kind::Service, &service("b", 7)).unwrap();
    relay.add_to_list(Kind::Service, &service("a", 5)).unwrap();
    relay.end_list(Kind::Service, 10, at(0));
    relay.advance(at(0));
    relay
}

/// Reads all that a subscriber can get. Returns the bytes, and true if the watch has ended.
fn read(relay: &mut Relay, cursor: &mut Cursor, now: Instant) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    for _ in 0..100 {
        match relay.next(cursor, now) {
            Next::Data(bytes) => all.extend_from_slice(&bytes),
            Next::Wait => return (all, false),
            Next::End => return (all, true),
        }
    }
    unreachable!("a subscriber gets the same again and again")
}

/// Returns type, name and version of the events in a JSON body.
fn events(body: &[u8]) -> Vec<String> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let event: Value = serde_json::from_slice(line).unwrap();
            let (object, what) = (&event["object"], event["type"].as_str().unwrap());
            match what {
                "ERROR" => format!("{} {}", object["code"], object["message"].as_str().unwrap()),
                "BOOKMARK" if object["metadata"]["annotations"].is_object() => {
                    format!("END {}", object["metadata"]["resourceVersion"].as_str().unwrap())
                }
                _ => {
                    let metadata = &object["metadata"];
                    let name = metadata["name"].as_str().unwrap_or_default();
                    format!("{what} {name} {}", metadata["resourceVersion"].as_str().unwrap())
                }
            }
        })
        .collect()
}

fn next_events(relay: &mut Relay, cursor: &mut Cursor, millis: u64) -> Vec<String> {
    let now = at(millis);
    relay.advance(now);
    events(&read(relay, cursor, now).0)
}

#[test]
fn a_stream_has_all_objects_the_end_and_then_changes() {
    let mut relay = relay();
    let mut cursor = relay.watch(&json_request(STREAM), at(1)).unwrap();
    assert_eq!(next_events(&mut relay, &mut cursor, 1), ["ADDED a 5", "ADDED b 7", "END 10"]);
    relay.apply(Kind::Service, EventType::Modified, &service("a", 11), at(2)).unwrap();
    relay.apply(Kind::Service, EventType::Deleted, &service("b", 12), at(2)).unwrap();
    relay.apply(Kind::Service, EventType::Added, &service("c", 13), at(2)).unwrap();
    assert_eq!(next_events(&mut relay, &mut cursor, 2), ["MODIFIED a 11", "DELETED b 12", "ADDED c 13"]);
    assert_eq!(next_events(&mut relay, &mut cursor, 999), Vec::<String>::new());
    assert_eq!(next_events(&mut relay, &mut cursor, 1000), ["BOOKMARK  13"]);
    assert_eq!(cursor.version(), 13);
}

#[test]
fn gathers_changes_but_not_the_first_one() {
    let mut relay = relay();
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=10"), at(0)).unwrap();
    let change = |relay: &mut Relay, version, millis| {
        relay.apply(Kind::Service, EventType::Modified, &service("a", version), at(millis)).unwrap();
    };
    change(&mut relay, 11, 100);
    assert_eq!(relay.due(), Some(at(100)));
    assert_eq!(next_events(&mut relay, &mut cursor, 100), ["MODIFIED a 11"]);
    change(&mut relay, 12, 105);
    assert_eq!(relay.due(), Some(at(120)));
    assert_eq!(next_events(&mut relay, &mut cursor, 119), Vec::<String>::new());
    (13..40).for_each(|version| change(&mut relay, version, 119));
    assert_eq!(next_events(&mut relay, &mut cursor, 120).len(), 28);
    change(&mut relay, 40, 121);
    assert_eq!(relay.due(), Some(at(170)), "under load");
}

#[test]
fn gathers_for_longer_with_more_subscribers() {
    for (subscribers, millis) in [(0, 20), (100, 23), (1000, 50), (100_000, 50)] {
        let mut relay = relay();
        relay.note_subscribers(Kind::Service, subscribers);
        for version in [11, 12] {
            relay.apply(Kind::Service, EventType::Modified, &service("a", version), at(100)).unwrap();
            relay.advance(at(100));
        }
        assert_eq!(relay.due(), Some(at(100 + millis)), "{subscribers} subscribers");
    }
}

#[test]
fn initial_events_have_parts_that_subscribers_share() {
    let mut relay = Relay::new(&[Kind::Service]);
    relay.begin_list(Kind::Service);
    (1..=20).for_each(|version| {
        relay.add_to_list(Kind::Service, &service(&format!("s{version:02}"), version)).unwrap();
    });
    relay.end_list(Kind::Service, 20, at(0));
    let mut subscribers = [0, 1].map(|_| relay.watch(&json_request(STREAM), at(1)).unwrap());
    relay.apply(Kind::Service, EventType::Modified, &service("s20", 21), at(1)).unwrap();
    let parts = subscribers.each_mut().map(|cursor| {
        let parts = core::iter::from_fn(|| match relay.next(cursor, at(1)) {
            Next::Data(bytes) => Some(bytes),
            _ => None,
        });
        parts.collect::<Vec<_>>()
    });
    let [first, second] = &parts;
    assert!(first.len() > 3 && first.iter().zip(second).all(|(first, second)| first.as_ptr() == second.as_ptr()));
    let all = events(&first.concat());
    assert_eq!((all.len(), all[19].as_str(), all[20].as_str()), (21, "ADDED s20 20", "END 20"));
}

#[test]
fn continues_from_any_version_of_the_history() {
    let mut relay = relay();
    (11..16)
        .for_each(|version| relay.apply(Kind::Service, EventType::Modified, &service("a", version), at(1)).unwrap());
    relay.advance(at(1));
    relay.note_bookmark(Kind::Service, 20, at(2));
    for (version, expected) in [(10, 5), (12, 3), (15, 0), (18, 0), (20, 0)] {
        let mut cursor = relay.watch(&json_request(&format!("watch=1&resourceVersion={version}")), at(2)).unwrap();
        assert_eq!(next_events(&mut relay, &mut cursor, 2).len(), expected, "{version}");
    }
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=9"), at(2)).unwrap();
    assert_eq!(relay.next(&mut cursor, at(2)), Next::Wait, "the API server may have the changes");
    relay.advance(at(6002));
    let (body, ended) = read(&mut relay, &mut cursor, at(6002));
    assert_eq!((events(&body), ended), (vec!["410 too old resource version: 9 (10)".to_owned()], true));
    let ahead = relay.watch(&json_request("watch=1&resourceVersion=21"), at(2)).err();
    assert_eq!(ahead, Some(Refusal::Ahead(21, 20)));
    assert_eq!(ahead.unwrap().to_string(), "Timeout: Too large resource version: 21, current: 20");
}

/// Reads the changes after `from` at the API server: `a` was modified at 5, `c` came at 6 and went at 9, `b` came at 7.
fn changes_before_the_relay(earlier: &mut Earlier) {
    let changes = [
        (EventType::Modified, "a", 5),
        (EventType::Added, "c", 6),
        (EventType::Added, "b", 7),
        (EventType::Deleted, "c", 9),
        (EventType::Modified, "a", 11),
    ];
    let from = earlier.from();
    for (what, name, version) in changes.into_iter().filter(|(.., version)| *version > from) {
        assert!(!earlier.is_complete());
        earlier.add(what, &service(name, version)).unwrap();
    }
    assert!(earlier.is_complete());
}

#[test]
fn subscribers_of_a_new_relay_continue_with_changes_before_its_list() {
    let mut relay = relay();
    let watch = |relay: &mut Relay, version: u64, millis| {
        let query = format!("watch=1&resourceVersion={version}&allowWatchBookmarks=1");
        relay.watch(&json_request(&query), at(millis)).unwrap()
    };
    let mut cursors = [watch(&mut relay, 6, 0), watch(&mut relay, 4, 100)];
    relay.apply(Kind::Service, EventType::Modified, &service("a", 11), at(200)).unwrap();
    assert_eq!(
        cursors.each_mut().map(|cursor| next_events(&mut relay, cursor, 400)),
        [vec![], vec![]] as [Vec<String>; 2]
    );
    assert!(relay.begin_earlier(Kind::Service, at(400)).is_none(), "others may come");
    let mut earlier = relay.begin_earlier(Kind::Service, at(500)).unwrap();
    assert_eq!(earlier.from(), 4);
    changes_before_the_relay(&mut earlier);
    relay.end_earlier(earlier, at(600));
    assert_eq!((relay.due(), relay.advance(at(600))), (Some(Instant::START), vec![(Kind::Service, News::Changes)]));
    let [later, first] = cursors.each_mut().map(|cursor| next_events(&mut relay, cursor, 600));
    assert_eq!(later, ["ADDED b 7", "DELETED c 9", "MODIFIED a 11"]);
    assert_eq!(first, ["MODIFIED a 5", "ADDED c 6", "ADDED b 7", "DELETED c 9", "MODIFIED a 11"]);
    // The object before a change is not known, so that a selection cannot say whether it has come or gone.
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=4&fieldSelector=metadata.name%3Da"), at(700));
    let cursor = cursor.as_mut().unwrap();
    assert!(next_events(&mut relay, cursor, 700)[0].starts_with("410 too old"));
    let mut cursor = watch(&mut relay, 3, 700);
    assert!(next_events(&mut relay, &mut cursor, 700)[0].starts_with("410 too old"), "only once");
    assert!(!relay.may_need_earlier(Kind::Service));
}

#[test]
fn subscribers_list_if_the_api_server_does_not_have_the_changes_before_the_relay() {
    let watch = |relay: &mut Relay, version: u64| {
        relay.watch(&json_request(&format!("watch=1&resourceVersion={version}")), at(0)).unwrap()
    };
    // From the lowest version, and then from one that half of the subscribers have.
    let mut relay = relay();
    let mut cursors = [1, 4, 5].map(|version| watch(&mut relay, version));
    let mut earlier = relay.begin_earlier(Kind::Service, at(500)).unwrap();
    assert_eq!(earlier.from(), 1);
    earlier.fail();
    relay.end_earlier(earlier, at(500));
    let mut earlier = relay.begin_earlier(Kind::Service, at(600)).unwrap();
    assert_eq!(earlier.from(), 4);
    changes_before_the_relay(&mut earlier);
    relay.end_earlier(earlier, at(700));
    let counts = cursors.each_mut().map(|cursor| next_events(&mut relay, cursor, 700).len());
    assert_eq!(counts, [1, 4, 3], "the first one is refused");
    // A watch that does not say whether there are more changes, until the time is over.
    let mut relay = self::relay();
    let mut cursor = watch(&mut relay, 4);
    let mut earlier = relay.begin_earlier(Kind::Service, at(500)).unwrap();
    earlier.add(EventType::Added, &service("b", 7)).unwrap();
    assert!(!earlier.is_complete() && next_events(&mut relay, &mut cursor, 5000).is_empty());
    let refused = next_events(&mut relay, &mut cursor, 6500);
    assert!(refused[0].starts_with("410 too old"));
    relay.end_earlier(earlier, at(6500));
    assert!(!relay.may_need_earlier(Kind::Service));
}

#[test]
fn serves_nothing_before_all_kinds_are_listed() {
    let mut relay = Relay::new(&[Kind::Service, Kind::Namespace]);
    relay.begin_list(Kind::Service);
    relay.end_list(Kind::Service, 10, at(0));
    assert_eq!(relay.list(&json_request("resourceVersion=0"), at(0)), Err(Refusal::NotReady));
    relay.begin_list(Kind::Namespace);
    relay.end_list(Kind::Namespace, 10, at(0));
    assert!(relay.list(&json_request("resourceVersion=0"), at(0)).is_ok());
    let nodes = get("/api/v1/nodes", "", Headers::default());
    assert_eq!(relay.list(&nodes, at(0)), Err(Refusal::NotFound));
    relay.close(at(0));
    assert_eq!(relay.list(&json_request(""), at(0)), Err(Refusal::NotReady));
}

#[test]
fn lists_follow_the_rules_of_the_api_server() {
    let mut relay = relay();
    let mut names = |query: &str, millis| {
        let body = relay.list(&json_request(query), at(millis))?;
        let list: Value = serde_json::from_slice(&body).unwrap();
        let items = list["items"].as_array().unwrap().iter();
        Ok::<_, Refusal>(items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(names("", 10_000).unwrap(), ["a", "b"]);
    assert_eq!(names("limit=1&resourceVersion=0", 20_000).unwrap(), ["a", "b"]);
    assert_eq!(names("resourceVersion=10&resourceVersionMatch=Exact", 0).unwrap(), ["a", "b"]);
    assert_eq!(names("resourceVersion=9&resourceVersionMatch=Exact", 0), Err(Refusal::Expired(9, 10)));
    assert_eq!(names("resourceVersion=11", 0), Err(Refusal::Ahead(11, 10)));
    assert_eq!(names("fieldSelector=metadata.name%3Db", 0).unwrap(), ["b"]);
    assert_eq!(names("", 10_001), Err(Refusal::NotFresh), "nothing has confirmed the state for ten seconds");
}

#[test]
fn sends_bookmarks_only_while_the_state_is_proved() {
    let mut relay = relay();
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=10&allowWatchBookmarks=1"), at(0)).unwrap();
    let mut silent = relay.watch(&json_request("watch=1&resourceVersion=10"), at(0)).unwrap();
    assert_eq!(next_events(&mut relay, &mut cursor, 1000), ["BOOKMARK  10"]);
    assert_eq!(next_events(&mut relay, &mut cursor, 10_000), ["BOOKMARK  10"]);
    assert_eq!(next_events(&mut relay, &mut cursor, 11_000), Vec::<String>::new());
    relay.prove(Kind::Service, at(11_500));
    assert_eq!(next_events(&mut relay, &mut cursor, 12_000), ["BOOKMARK  10"]);
    assert_eq!(next_events(&mut relay, &mut silent, 12_000), Vec::<String>::new());
}

#[test]
fn a_list_after_a_gap_becomes_one_tick_with_the_deletions_first() {
    let mut relay = relay();
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=10"), at(0)).unwrap();
    relay.begin_list(Kind::Service);
    relay.add_to_list(Kind::Service, &service("b", 18)).unwrap();
    relay.add_to_list(Kind::Service, &service("c", 12)).unwrap();
    relay.end_list(Kind::Service, 20, at(1));
    assert_eq!(next_events(&mut relay, &mut cursor, 1), ["DELETED a 10", "ADDED c 12", "MODIFIED b 18"]);
    assert_eq!(cursor.version(), 20);
    // A subscriber between the two versions cannot continue: the list does not say what was deleted when.
    let mut between = relay.watch(&json_request("watch=1&resourceVersion=15"), at(1)).unwrap();
    assert_eq!(next_events(&mut relay, &mut between, 1), ["410 too old resource version: 15 (10)"]);
}

#[test]
fn an_object_that_was_created_again_in_a_gap_is_deleted_first() {
    let mut relay = relay();
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=10"), at(0)).unwrap();
    let metadata = json!({ "name": "a", "namespace": "shop", "uid": "another", "resourceVersion": "18" });
    relay.begin_list(Kind::Service);
    relay.add_to_list(Kind::Service, &raw(&json!({ "kind": "Service", "metadata": metadata }))).unwrap();
    relay.add_to_list(Kind::Service, &service("b", 12)).unwrap();
    relay.end_list(Kind::Service, 20, at(1));
    assert_eq!(next_events(&mut relay, &mut cursor, 1), ["DELETED a 10", "MODIFIED b 12", "ADDED a 18"]);
}

#[test]
fn a_list_without_a_difference_after_a_gap_does_not_hide_the_gap() {
    let mut relay = relay();
    relay.begin_list(Kind::Service);
    relay.add_to_list(Kind::Service, &service("a", 5)).unwrap();
    relay.add_to_list(Kind::Service, &service("b", 7)).unwrap();
    relay.end_list(Kind::Service, 20, at(1));
    // An object of version 12 may have been deleted at 18.
    for (version, expected) in [(10, None), (15, Some("410 too old resource version: 15 (10)")), (20, None)] {
        let mut cursor = relay.watch(&json_request(&format!("watch=1&resourceVersion={version}")), at(1)).unwrap();
        let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
        assert_eq!(next_events(&mut relay, &mut cursor, 1), expected, "{version}");
    }
}

#[test]
fn a_restored_api_server_begins_an_epoch() {
    let mut relay = relay();
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=10"), at(0)).unwrap();
    relay.begin_list(Kind::Service);
    relay.add_to_list(Kind::Service, &service("a", 5)).unwrap();
    relay.end_list(Kind::Service, 6, at(1));
    let (body, ended) = read(&mut relay, &mut cursor, at(1));
    assert!(ended && events(&body)[0].starts_with("410 too old resource version: the API server has been restored"));
    assert_eq!(relay.version(Kind::Service), 6);
}

#[test]
fn another_cluster_begins_an_epoch_for_all_kinds() {
    let mut relay = Relay::new(&[Kind::Namespace, Kind::Service]);
    let namespace = |uid: &str| {
        let metadata = json!({ "name": "kube-system", "uid": uid, "resourceVersion": "5" });
        raw(&json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": metadata }))
    };
    for (uid, version) in [("one", 10), ("two", 20)] {
        relay.begin_list(Kind::Namespace);
        relay.add_to_list(Kind::Namespace, &namespace(uid)).unwrap();
        relay.end_list(Kind::Namespace, version, at(0));
        if uid == "one" {
            relay.begin_list(Kind::Service);
            relay.end_list(Kind::Service, version, at(0));
            assert!(relay.is_ready());
        }
    }
    assert!(!relay.is_ready() && relay.needs_list(Kind::Service) && !relay.needs_list(Kind::Namespace));
}

#[test]
fn a_selection_sees_objects_come_and_go() {
    let mut relay = relay();
    let request = json_request("watch=1&resourceVersion=10&labelSelector=app%3Dweb");
    let mut cursor = relay.watch(&request, at(0)).unwrap();
    let mut apply = |version, labels: Value, what| {
        relay.apply(Kind::Service, what, &labelled("a", version, &labels), at(version)).unwrap();
        next_events(&mut relay, &mut cursor, version * 100)
    };
    assert_eq!(apply(11, json!({}), EventType::Modified), Vec::<String>::new());
    assert_eq!(apply(12, json!({ "app": "web" }), EventType::Modified), ["ADDED a 12"]);
    assert_eq!(apply(13, json!({ "app": "web" }), EventType::Modified), ["MODIFIED a 13"]);
    assert_eq!(apply(14, json!({ "app": "x" }), EventType::Modified), ["DELETED a 14"]);
    assert_eq!(apply(15, json!({ "app": "web" }), EventType::Modified), ["ADDED a 15"]);
    assert_eq!(apply(16, json!({ "app": "web" }), EventType::Deleted), ["DELETED a 16"]);
}

#[test]
fn subscribers_share_frames_of_each_form() {
    let mut relay = relay();
    let headers = |profile| Headers {
        accept: "application/vnd.kubernetes.protobuf;stream=watch",
        accept_encoding: "gzip",
        profile,
    };
    let mut data = Vec::new();
    for profile in ["dns-1", "dns-1", ""] {
        let request = get(SERVICES, "watch=1&resourceVersion=10", headers(profile));
        data.push((relay.watch(&request, at(0)).unwrap(), Vec::new()));
    }
    relay.apply(Kind::Service, EventType::Modified, &service("a", 11), at(1)).unwrap();
    relay.advance(at(1));
    for (cursor, found) in &mut data {
        while let Next::Data(bytes) = relay.next(cursor, at(1)) {
            found.push(bytes);
        }
    }
    let [(_, first), (_, second), (_, full)] = &data[..] else { unreachable!("three") };
    assert_eq!(first[1].as_ptr(), second[1].as_ptr(), "the same bytes");
    assert!(full[1].len() > first[1].len());
    relay.close(at(2));
    let mut body = first.concat();
    while let Next::Data(bytes) = relay.next(&mut data[0].0, at(2)) {
        body.extend_from_slice(&bytes);
    }
    let mut decoded = Vec::new();
    flate2::read::GzDecoder::new(&*body).read_to_end(&mut decoded).unwrap();
    assert_eq!(decoded[..4], u32::try_from(decoded.len() - 4).unwrap().to_be_bytes());
}

#[test]
fn a_watch_ends_in_time_and_at_the_end_of_the_relay_with_a_bookmark() {
    let mut relay = relay();
    let query = "watch=1&resourceVersion=10&allowWatchBookmarks=1&timeoutSeconds=3";
    let mut cursor = relay.watch(&json_request(query), at(0)).unwrap();
    assert_eq!(read(&mut relay, &mut cursor, at(2999)), (Vec::new(), false));
    assert_eq!(read(&mut relay, &mut cursor, at(3000)), (Vec::new(), true));
    let mut cursor = relay.watch(&json_request(query), at(0)).unwrap();
    relay.apply(Kind::Service, EventType::Modified, &service("a", 11), at(1)).unwrap();
    relay.close(at(1));
    let (body, ended) = read(&mut relay, &mut cursor, at(1));
    assert_eq!((events(&body), ended), (vec!["MODIFIED a 11".to_owned(), "BOOKMARK  11".to_owned()], true));
}

#[test]
fn the_history_is_bounded_in_age_and_bytes() {
    let mut relay = relay();
    relay.apply(Kind::Service, EventType::Modified, &service("a", 11), at(1)).unwrap();
    relay.advance(at(1));
    let mut old = relay.watch(&json_request("watch=1&resourceVersion=10"), at(1)).unwrap();
    relay.advance(at(1) + HISTORY_AGE_MAX);
    assert!(relay.states(at(1))[0].history_bytes > 0);
    relay.advance(at(2000) + HISTORY_AGE_MAX);
    assert_eq!(relay.states(at(1))[0].history_bytes, 0);
    assert_eq!(events(&read(&mut relay, &mut old, at(1)).0), ["410 too old resource version: 10 (11)"]);
    let filler = "x".repeat(1 << 20);
    for version in 12..100 {
        let large = labelled("a", version, &json!({ "filler": filler }));
        relay.apply(Kind::Service, EventType::Modified, &large, at(version * 1000)).unwrap();
        relay.advance(at(version * 1000));
        assert!(relay.states(at(1))[0].history_bytes <= HISTORY_BYTES_MAX);
    }
    assert!(relay.states(at(1))[0].history_bytes > HISTORY_BYTES_MAX / 2);
}

#[test]
fn knows_who_is_behind() {
    let mut relay = relay();
    let mut cursor = relay.watch(&json_request("watch=1&resourceVersion=10"), at(0)).unwrap();
    let first = relay.watch(&json_request(STREAM), at(0)).unwrap();
    read(&mut relay, &mut cursor, at(0));
    assert!(!relay.is_behind(&cursor, at(100_000)), "there is nothing to read");
    relay.apply(Kind::Service, EventType::Modified, &service("a", 11), at(1000)).unwrap();
    relay.advance(at(1000));
    assert!(!relay.is_behind(&cursor, at(6000)) && relay.is_behind(&cursor, at(6001)));
    read(&mut relay, &mut cursor, at(7000));
    assert!(!relay.is_behind(&cursor, at(7000)));
    assert!(!relay.is_behind(&first, at(60_000)) && relay.is_behind(&first, at(60_001)), "grace for the list");
}

#[test]
fn refuses_objects_that_it_cannot_store() {
    let mut relay = relay();
    for (bytes, error) in [
        (raw(&json!({ "kind": "Service", "metadata": { "resourceVersion": "9" } })), ObjectError::Unnamed),
        (raw(&json!({ "kind": "Service", "metadata": { "name": "a", "resourceVersion": "x" } })), ObjectError::Version),
    ] {
        assert_eq!(relay.apply(Kind::Service, EventType::Added, &bytes, at(0)), Err(error));
    }
    assert!(matches!(relay.add_to_list(Kind::Service, b"\x0a\x7f"), Err(ObjectError::Wire(_))));
}

/// Prints the bytes of a tick per event; docs/decisions has the figures.
#[test]
fn a_tick_of_slices_costs_few_bytes_per_event() {
    let mut random = 1_u64;
    let mut next = move |most: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % most
    };
    let mut slice = |number: u64, version: u64| {
        let mut endpoint = |_| {
            let (a, b, c) = (next(256), next(256), next(256));
            json!({
                "addresses": [format!("10.{a}.{b}.{c}")],
                "conditions": { "ready": true, "serving": true, "terminating": false },
                "nodeName": format!("ip-10-0-{a}-{b}.eu-central-1.compute.internal"),
                "zone": format!("eu-central-1{}", ["a", "b", "c"][usize::try_from(c % 3).unwrap()]),
                "targetRef": {
                    "kind": "Pod", "namespace": format!("ns-{}", number % 50), "uid": format!("{:036x}", a * b * c),
                    "name": format!("app-{number}-{:08x}-{:05x}", a * b * 4099, c * b),
                },
            })
        };
        let endpoints: Vec<Value> = (0..10).map(&mut endpoint).collect();
        raw(&json!({
            "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
            "metadata": {
                "name": format!("app-{number}-{:05x}", number * 7919), "namespace": format!("ns-{}", number % 50),
                "uid": format!("{:08x}-0000-4000-8000-{:012x}", number * 1_000_003, number * 99_991),
                "resourceVersion": version.to_string(),
                "labels": { "kubernetes.io/service-name": format!("app-{number}") },
                "annotations": { "endpoints.kubernetes.io/last-change-trigger-time": "2026-11-27T12:00:00Z" },
            },
            "endpoints": endpoints, "ports": [{ "name": "http", "protocol": "TCP", "port": 8080 }],
        }))
    };
    for (count, bytes_max) in [(1, 500), (25, 150), (50, 150)] {
        let mut relay = Relay::new(&[Kind::EndpointSlice]);
        relay.begin_list(Kind::EndpointSlice);
        relay.end_list(Kind::EndpointSlice, 1, at(0));
        let headers =
            Headers { accept: "application/vnd.kubernetes.protobuf", accept_encoding: "gzip", profile: PROFILE };
        let request = get("/apis/discovery.k8s.io/v1/endpointslices", "watch=1&resourceVersion=1", headers);
        let plain = Headers { accept_encoding: "", ..headers };
        let plain = get("/apis/discovery.k8s.io/v1/endpointslices", "watch=1&resourceVersion=1", plain);
        let mut cursors = [relay.watch(&request, at(0)).unwrap(), relay.watch(&plain, at(0)).unwrap()];
        (0..count).for_each(|number| {
            relay.apply(Kind::EndpointSlice, EventType::Added, &slice(number, 1_000_000 + number), at(1)).unwrap();
        });
        relay.advance(at(1));
        let [packed, raw] = cursors.each_mut().map(|cursor| read(&mut relay, cursor, at(1)).0.len());
        let events = usize::try_from(count).unwrap();
        let (packed, raw) = (packed / events, raw / events);
        println!("{count} slices: {packed} bytes per event in gzip, {raw} without");
        assert!(packed < bytes_max, "{count}: {packed}");
    }
}
