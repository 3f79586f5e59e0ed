//! Every check with a healthy cluster, and with a seeded fault that makes exactly its row fail.

mod every_node;
mod faults;
mod output;
mod world;

use std::collections::BTreeMap;

use control::status::ProblemCode;

use crate::report::{Mark, Report, Row};
use crate::{Area, Attempt, CorefileFacts, SelectError, Unknown, all, select};
use faults::{FAULTS, Fault};
use world::{World, encrypted};

/// Codes of the rows with findings.
fn found(report: &Report) -> Vec<&'static str> {
    report.rows.iter().filter(|row| !row.findings.is_empty()).map(|row| row.code).collect()
}

#[test]
fn a_healthy_cluster_has_only_fine_rows() {
    let report = World::healthy().report();
    // With its node cache, this cluster does not show if addresses of clients are hidden. No server is on every node.
    let is_other = |row: &&Row| row.code == "PD-N06" || row.area == Area::EveryNode.name();
    let other: Vec<_> = report.rows.iter().filter(|row| row.outcome != Mark::Fine && !is_other(row)).collect();
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn each_fault_makes_exactly_its_row_fail() {
    FAULTS.iter().for_each(|fault| makes_its_row_fail(World::healthy(), fault));
}

/// Seeds a fault, and checks that exactly its row has findings, with texts and fixes.
fn makes_its_row_fail(mut world: World, (code, name, seed): &Fault) {
    seed(&mut world);
    let report = world.report();
    assert_eq!(found(&report), [*code], "{name}: {report}");
    let row = report.rows.iter().find(|row| row.code == *code).unwrap();
    assert!(row.findings.iter().all(|finding| !finding.text.is_empty() && !finding.fix.is_empty()), "{row:#?}");
}

#[test]
fn the_fix_of_a_forward_loop_starts_with_its_likely_cause() {
    for (address, expected) in
        [("127.0.0.53", "`resolvConf: "), ("10.96.0.10", "The addresses of the real name servers")]
    {
        let mut world = World::healthy();
        world.json["daemon_sets"] = serde_json::json!([]);
        world.json["server"]["status"]["upstreams"][0]["address"] = format!("{address}:53").into();
        let report = world.report();
        let row = report.rows.iter().find(|row| row.code == "PD-U01").unwrap();
        assert!(row.findings[0].fix.starts_with(expected), "{row:#?}");
    }
}

#[test]
fn a_pod_with_two_lists_that_are_too_long_has_both_in_its_finding() {
    let mut world = World::healthy();
    let searches: Vec<String> = (0..4).map(|at| format!("zone{at}.corp")).collect();
    let servers = ["10.0.0.2", "10.0.0.3", "10.0.0.4"];
    world.json["pods"][3]["spec"]["dnsConfig"] = serde_json::json!({ "searches": searches, "nameservers": servers });
    let text = row(&mut world, "PD-P02").findings.remove(0).text;
    assert!(text.contains("4 name servers") && text.contains("7 search domains"), "{text}");
}

fn row(world: &mut World, code: &str) -> Row {
    std::mem::replace(world, World::healthy()).report().rows.into_iter().find(|row| row.code == code).unwrap()
}

/// Returns the row about upstreams.
fn upstreams_row(mut world: World) -> Row {
    row(&mut world, "PD-U02")
}

#[test]
fn a_check_whose_finding_another_one_has_is_not_fine() {
    let mut world = World::healthy();
    world.report_problem("PD-R01", "watch of services has been failing for 9 s: the API server says 403");
    assert_eq!(row(&mut world, "PD-R02").outcome, Mark::Unknown);
    let (_, _, break_corefile) = FAULTS[0];
    break_corefile(&mut world);
    world.json["server"]["status"]["corefile"]["refused"] =
        serde_json::json!({ "error": "unknown directive `redy`", "age_seconds": 240.0 });
    let row = row(&mut world, "PD-C01");
    assert_eq!(row.outcome, Mark::Unknown, "{row:#?}");
}

#[test]
fn an_upstream_that_was_not_asked_is_not_fine() {
    let mut world = World::healthy();
    world.facts.encrypted =
        vec![encrypted("192.0.2.1:853", Attempt::Answered(0.1)), encrypted("dns.corp", Attempt::NotTried)];
    let row = upstreams_row(world);
    let reason = "doctor sends no queries to tls://192.0.2.1:853, tls://dns.corp, and the server has not asked them \
                  in the last minute";
    assert_eq!((row.outcome, row.reason.as_deref()), (Mark::Unknown, Some(reason)));

    let mut world = World::healthy();
    world.facts.upstreams = Err(Unknown::new("no packets are sent"));
    world.json["server"]["status"]["upstreams"][0]["replies"] = 0.into();
    let row = upstreams_row(world);
    assert_eq!((row.outcome, row.reason.as_deref()), (Mark::Unknown, Some("no packets are sent")));

    // Replies to the server are as good as replies to a probe.
    let mut world = World::healthy();
    world.json["server"]["status"]["upstreams"][0]["transport"] = "tls".into();
    world.json["server"]["status"]["upstreams"][0]["address"] = "192.0.2.1:853".into();
    world.facts.encrypted = vec![encrypted("192.0.2.1:853", Attempt::NotTried)];
    assert_eq!(upstreams_row(world).outcome, Mark::Fine);
}

#[test]
fn the_fix_of_an_upstream_is_the_command_that_asks_it() {
    let fix = |text: &str, change: fn(&mut World)| {
        let mut world = World::healthy();
        world.corefile = world.corefile.replace("10.0.0.3", "127.0.0.1:20999");
        world.report_problem("PD-U02", text);
        change(&mut world);
        upstreams_row(world).findings[0].fix.clone()
    };
    let down = "upstream 127.0.0.1:20999 has been down for 4 m: timeout";
    assert_eq!(fix(down, |_| ()), "To query it: `dig corp. SOA @127.0.0.1 -p 20999`");
    let lossy = "upstream 127.0.0.1:20999: 2 of 2 failed, the last 3 s ago: timeout";
    assert_eq!(fix(lossy, |_| ()), "To query it: `dig corp. SOA @127.0.0.1 -p 20999`");
    let other = "upstream 10.0.0.2:53 has been down for 4 m: timeout";
    assert_eq!(fix(other, |_| ()), "To query it: `dig . SOA @10.0.0.2`");
    let tls = fix(down, |world| world.facts.encrypted = vec![encrypted("127.0.0.1:20999", Attempt::NotTried)]);
    assert_eq!(tls, "To query it: `dig corp. SOA @127.0.0.1 -p 20999 +tls +tls-ca`");
    let tcp = fix(down, |world| {
        let upstream = &mut world.json["server"]["status"]["upstreams"][0];
        upstream["address"] = "127.0.0.1:20999".into();
        upstream["last_failure"] = serde_json::json!({ "age_seconds": 3.0, "error": "refused", "over_tcp": true });
    });
    assert_eq!(tcp, "To query it: `dig corp. SOA @127.0.0.1 -p 20999 +tcp`");
}

#[test]
fn reads_upstreams_that_are_not_plain_dns() {
    let text = ".:53 {\n forward . 10.0.0.2 dns://10.0.0.3 tls://192.0.2.1%dns.test tls://127.0.0.1:1 \
                https://[2001:db8::1]/dns-query quic://dns.test:8853\n}\n";
    let written = corefile::parse(std::path::Path::new("Corefile"), text.to_owned(), &corefile::NoFiles).corefile;
    let facts = CorefileFacts { source: String::new(), problems: Ok(Vec::new()), written, forwarded: Vec::new() };
    let found: Vec<String> = facts.encrypted().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["tls://192.0.2.1:853", "tls://127.0.0.1:1", "https://[2001:db8::1]:443", "quic://dns.test:8853"]
    );
}

#[test]
fn an_encrypted_upstream_that_is_this_server_is_a_loop() {
    let mut world = World::healthy();
    world.json["daemon_sets"] = serde_json::json!([]);
    world.facts.server = Err(Unknown::new("not asked"));
    world.corefile = world.corefile.replace("/etc/resolv.conf", "tls://10.96.0.10");
    let report = world.report();
    let row = report.rows.iter().find(|row| row.code == "PD-U01").unwrap();
    assert_eq!(row.findings[0].text, "upstream 10.96.0.10 is the cluster IP of the DNS Service, which is this server");
}

#[test]
fn a_service_without_a_selector_is_said_to_have_none() {
    let mut world = World::healthy();
    world.json["slices"].as_array_mut().unwrap().remove(0);
    world.json["services"][0]["spec"]["selector"] = serde_json::json!({});
    let report = world.report();
    let row = report.rows.iter().find(|row| row.code == "PD-K03").unwrap();
    assert_eq!(row.findings[0].text, "kube-system/kube-dns has no endpoints and no selector");
    assert!(row.findings[0].fix.starts_with("`kubectl -n kube-system get endpointslices,pods"), "{row:#?}");
}

#[test]
fn a_replica_that_refuses_is_not_blamed_on_a_policy() {
    let found = |udp: Attempt| {
        let mut world = World::healthy();
        world.facts.probes.as_mut().unwrap().replicas[1].udp = udp;
        let report = world.report();
        report.rows.iter().find(|row| row.code == "PD-N03").unwrap().findings[0].clone()
    };
    let refused = found(Attempt::Failed("connection refused".to_owned()));
    assert!(refused.text.ends_with("over UDP: connection refused, so no process listens there"), "{}", refused.text);
    assert!(refused.fix.contains("a server block for port 53") && !refused.fix.contains("egress"), "{}", refused.fix);
    assert!(found(Attempt::Silent).fix.starts_with("An egress rule"));
}

#[test]
fn every_check_has_a_fault() {
    let faults: Vec<&str> = FAULTS.iter().chain(every_node::FAULTS).map(|(code, ..)| *code).collect();
    let missing: Vec<_> = all().filter(|check| !faults.contains(&check.code)).collect();
    assert!(missing.is_empty(), "{:?}", missing.iter().map(|check| check.code).collect::<Vec<_>>());
}

#[test]
fn every_problem_of_the_status_has_a_check_and_a_row_on_its_page() {
    let page = include_str!("../../../../docs/control.md");
    for code in ProblemCode::ALL {
        assert!(all().any(|check| check.code == *code), "{code} is no check");
        assert!(page.contains(&format!("\n| {code} | ")), "{code} has no row in docs/control.md");
    }
}

#[test]
fn rows_without_facts_say_why_they_could_not_look() {
    let report = Report::of(&crate::Facts::unknown("nobody looked"), &all().collect::<Vec<_>>(), "0.1.0");
    assert!(report.is_blind() && !report.has_findings());
    let fixes = report.fix_text();
    assert!(fixes.starts_with("Nothing was checked.\nNot checked\n  – nobody looked: PD-C01 PD-C02 "), "{fixes}");
    let mut world = World::healthy();
    world.facts.api_clock_ahead = Err(Unknown::new("no clock"));
    let fixes = world.report().fix_text();
    assert!(
        fixes.starts_with("Nothing to fix was found, but not everything could be checked.\nNot checked\n"),
        "{fixes}"
    );
    let silent: Vec<_> = report.rows.iter().filter(|row| row.reason.as_deref() != Some("nobody looked")).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

/// Makes a gatherer fail.
type Fail = fn(&mut World, Unknown);
/// Takes away everything that a gatherer found.
type Empty = fn(&mut World);

/// Gatherers, how each fails, and the checks that are no longer fine without it.
const GATHERERS: &[(&str, Fail, &[&str])] = &[
    (
        "server",
        |world, reason| world.facts.server = Err(reason),
        &[
            "PD-C03", "PD-R02", "PD-K06", "PD-K09", "PD-P01", "PD-P05", "PD-U02", "PD-U04", "PD-U06", "PD-T03",
            "PD-T05", "PD-T06", "PD-T07",
        ],
    ),
    (
        "corefile",
        |world, reason| world.facts.corefile = Err(reason),
        &["PD-C01", "PD-K02", "PD-K07", "PD-P03", "PD-S02"],
    ),
    ("access", |world, reason| world.facts.access = Err(reason), &["PD-R01"]),
    ("clock", |world, reason| world.facts.api_clock_ahead = Err(reason), &["PD-T01"]),
    ("kubelets", |world, reason| world.facts.kubelets = Err(reason), &["PD-K01", "PD-K02"]),
    ("replicas", |world, reason| world.facts.replicas = Err(reason), &["PD-C02"]),
    ("probes", |world, reason| world.facts.probes = Err(reason), &["PD-K08", "PD-N03", "PD-N04", "PD-N05", "PD-L01"]),
    ("upstreams", |world, reason| world.facts.upstreams = Err(reason), &["PD-N05", "PD-U01", "PD-U02", "PD-U03"]),
    ("search", |world, reason| world.facts.search = Err(reason), &["PD-U05"]),
    ("conntrack", |world, reason| world.facts.conntrack = Err(reason), &["PD-N01", "PD-N02", "PD-N07"]),
    ("interfaces", |world, reason| world.facts.interfaces = Err(reason), &["PD-L01"]),
    ("certificates", |world, reason| world.facts.certificates = Err(reason), &["PD-T02"]),
];

/// Codes of the rows that are fine.
fn fine(report: &Report) -> Vec<&'static str> {
    report.rows.iter().filter(|row| row.outcome == Mark::Fine).map(|row| row.code).collect()
}

/// Codes of the rows that a change makes not fine.
fn lost(change: impl FnOnce(&mut World)) -> Vec<&'static str> {
    let mut world = World::healthy();
    change(&mut world);
    let left = fine(&world.report());
    fine(&World::healthy().report()).into_iter().filter(|code| !left.contains(code)).collect()
}

#[test]
fn a_check_whose_gatherer_failed_is_not_fine() {
    for (name, fail, codes) in GATHERERS {
        assert_eq!(lost(|world| fail(world, Unknown::new("failed"))), *codes, "{name}");
    }
    let missing: Vec<&str> = all().map(|check| check.code).filter(|code| !is_read(code)).collect();
    assert!(missing.is_empty(), "no gatherer is known to matter for {missing:?}");
}

/// Returns true if a gatherer or a list of objects matters for a check.
fn is_read(code: &str) -> bool {
    let by_list = |(list, _): &(&str, &str)| lost(|world| world.json[*list] = "refused".into()).contains(&code);
    // With its node cache, this cluster does not show if addresses of clients are hidden.
    let is_every_node = code.starts_with("PD-E");
    code == "PD-N06"
        || is_every_node
        || GATHERERS.iter().any(|(.., codes)| codes.contains(&code))
        || LISTS.iter().any(by_list)
}

#[test]
fn a_check_without_anything_to_look_at_is_not_fine() {
    for list in ["services", "slices", "endpoints", "pods", "deployments"] {
        let refused = lost(|world| world.json[list] = "refused".into());
        let empty = lost(|world| world.json[list] = serde_json::json!([]));
        let mut world = World::healthy();
        world.json[list] = serde_json::json!([]);
        let found = found(&world.report());
        let is_hidden = |code: &&&str| !empty.contains(code) && !found.contains(code);
        let hidden: Vec<_> = refused.iter().filter(is_hidden).collect();
        assert!(hidden.is_empty(), "without {list}, {hidden:?} are fine");
    }
    let empty: [(Empty, &[&str]); 9] = [
        (|world| world.facts.access = Ok(Vec::new()), &["PD-R01"]),
        (|world| world.facts.kubelets = Ok(Vec::new()), &["PD-K01", "PD-K02"]),
        (|world| world.facts.replicas = Ok(Vec::new()), &["PD-C02"]),
        (|world| world.facts.probes = Ok(crate::Probes::default()), &["PD-K08", "PD-N03", "PD-N04", "PD-L01"]),
        (|world| world.facts.upstreams = Ok(Vec::new()), &["PD-U01", "PD-U03"]),
        (|world| world.facts.search = Ok(Vec::new()), &["PD-U05"]),
        (|world| world.facts.certificates = Ok(Vec::new()), &["PD-T02"]),
        (|world| world.json["server"]["status"]["upstreams"] = serde_json::json!([]), &["PD-U06"]),
        (|world| world.json["server"]["status"]["clusters"] = serde_json::json!([]), &["PD-R02"]),
    ];
    for (at, (change, codes)) in empty.into_iter().enumerate() {
        let lost = lost(change);
        let fine: Vec<_> = codes.iter().filter(|code| !lost.contains(code)).collect();
        assert!(fine.is_empty(), "{at}: {fine:?}");
    }
}

#[test]
fn one_silent_upstream_of_two_is_not_fine() {
    let lost = lost(|world| {
        let probe = &mut world.facts.upstreams.as_mut().unwrap()[1];
        probe.attempts = vec![Attempt::Silent; 5];
        (probe.tcp, probe.large) = (Attempt::Silent, Attempt::NotTried);
        (probe.edns, probe.keeps_case) = (None, None);
        probe.came_back = Err(Unknown::new("upstream 10.0.0.3:53 does not answer from here"));
    });
    assert_eq!(lost, ["PD-N05", "PD-U01", "PD-U02", "PD-U03"]);
}

#[test]
fn a_private_zone_without_large_answers_is_fine() {
    let without = |zone: &'static str, tcp: Attempt| {
        move |world: &mut World| {
            let probe = &mut world.facts.upstreams.as_mut().unwrap()[1];
            (probe.zone, probe.large_answer, probe.tcp) = (zone.to_owned(), None, tcp.clone());
        }
    };
    let answered = || Attempt::Answered(0.004);
    assert_eq!(lost(without("corp.example", answered())), [""; 0]);
    assert_eq!(lost(without(".", answered())), ["PD-N05"]);
    assert_eq!(lost(without("", answered())), ["PD-N05"]);
    assert!(lost(without("corp.example", Attempt::Silent)).contains(&"PD-N05"));
    let mut world = World::healthy();
    without("corp.example", answered())(&mut world);
    let row = row(&mut world, "PD-N05");
    assert!(row.evidence.unwrap().ends_with("for corp.example are small"));
}

#[test]
fn more_upstreams_than_are_asked_are_not_fine() {
    let lost = lost(|world| world.corefile.push_str("lab.:53 {\n forward lab 10.0.0.4\n}\n"));
    assert_eq!(lost, ["PD-U01", "PD-U02", "PD-U03"]);
}

#[test]
fn a_list_that_does_not_end_is_not_current() {
    let row = row(
        &mut {
            let mut world = World::healthy();
            world.json["server"]["status"]["clusters"][0]["resources"][2]["state"] = "listing".into();
            world
        },
        "PD-R02",
    );
    assert_eq!((row.outcome, row.reason.as_deref()), (Mark::Unknown, Some("namespaces have not been listed yet")));
}

#[test]
fn an_upstream_over_tls_is_followed_only_by_loop() {
    let with = |answered: bool| {
        let mut world = World::healthy();
        world.json["server"]["status"]["loops"][0]["answered"] = answered.into();
        world.facts.encrypted = vec![encrypted("192.0.2.1:853", Attempt::Answered(0.1))];
        row(&mut world, "PD-U01").outcome
    };
    assert_eq!((with(true), with(false)), (Mark::Fine, Mark::Unknown));
}

/// Lists of the world, with the plural names of their resources.
const LISTS: [(&str, &str); 14] = [
    ("services", "services"),
    ("slices", "endpointslices"),
    ("endpoints", "endpoints"),
    ("namespaces", "namespaces"),
    ("pods", "pods"),
    ("nodes", "nodes"),
    ("deployments", "deployments"),
    ("daemon_sets", "daemonsets"),
    ("disruption_budgets", "poddisruptionbudgets"),
    ("autoscalers", "horizontalpodautoscalers"),
    ("network_policies", "networkpolicies"),
    ("events", "events"),
    ("cilium_policies", "ciliumnetworkpolicies"),
    ("redirect_policies", "ciliumlocalredirectpolicies"),
];

#[test]
fn every_check_names_the_lists_that_it_cannot_do_without() {
    let mut needed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (list, plural) in LISTS {
        let mut world = World::healthy();
        world.json[list] = "refused".into();
        let report = world.report();
        let blind = report.rows.iter().filter(|row| row.reason.as_deref() == Some("refused"));
        blind.for_each(|row| needed.entry(row.code).or_default().push(format!("list {plural}")));
    }
    for check in all() {
        let needed = needed.remove(check.code).unwrap_or_default();
        // Gatherers may need more, such as the addresses to probe.
        let missing: Vec<&String> = needed.iter().filter(|right| !check.rights.contains(&right.as_str())).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", check.code);
    }
}

#[test]
fn codes_are_unique_and_named_after_their_area() {
    let codes: Vec<&str> = all().map(|check| check.code).collect();
    let is_first = |at: usize| !codes[..at].contains(&codes[at]);
    assert!((0..codes.len()).all(is_first), "{codes:?}");
    for check in all() {
        let text = [check.title, check.meaning, check.fix].join(" ");
        assert!(!check.needs.is_empty() && !text.contains("  "), "{}: {text}", check.code);
        assert!(!check.title.ends_with('.') && check.meaning.ends_with('.'), "{}", check.code);
    }
}

#[test]
fn selects_checks_by_area_and_code() {
    fn codes(only: Option<&str>) -> Result<Vec<&'static str>, SelectError> {
        select(only).map(|checks| checks.iter().map(|check| check.code).collect())
    }
    assert_eq!(codes(Some("rights")).unwrap(), ["PD-R01", "PD-R02", "PD-R03"]);
    for area in Area::ALL.map(Area::name) {
        let other = area.strip_suffix('s').map_or_else(|| format!("{area}s"), str::to_owned);
        assert!(codes(Some(area)).unwrap().len() > 1);
        assert_eq!(codes(Some(area)), codes(Some(&other)), "{other}");
        assert_eq!(codes(Some(area)), codes(Some(&area.to_uppercase())));
    }
    for code in ["PD-U02", "pd-u02", "U02", "u02"] {
        assert_eq!(codes(Some(code)).unwrap(), ["PD-U02"]);
    }
    assert!(codes(Some("s")).is_err() && codes(Some("")).is_err());
    assert_eq!(codes(None).unwrap().len(), all().count());
    assert!(
        codes(Some("dns"))
            .unwrap_err()
            .to_string()
            .contains("`dns` is neither an area nor a code; use one of corefile, ")
    );
}
