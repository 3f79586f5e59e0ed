//! Explanations compared with the answers of the server itself.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use control::explain::Step;
use engine::{ListenerId, PeerInfo, Progress, Transaction, Worker};
use metrics::Registry;
use tokio::task::LocalSet;
use transport::MonotonicClock;
use wire::{Message, Name, Section, Type};

use super::offline::{Files, Loaded, load};
use super::step::text_of;
use super::{Asked, packet_of};

/// Number of random queries.
const QUERIES: usize = 10_000;
/// Corefile with many plugins. Nothing answers at the upstreams, and nothing is sent to them.
const COREFILE: &str = r#"
.:53 {
    errors
    log
    metadata
    acl {
        block net 10.9.0.0/16
        filter type TXT net 10.8.0.0/16
        drop net 10.7.0.0/16
    }
    rewrite name db.short db.shop.svc.cluster.local
    rewrite name regex (.*)\.old\.test {1}.shop.svc.cluster.local answer auto
    rewrite type ANY HINFO
    hosts {
        192.0.2.1 one.hosts.test
        192.0.2.2 two.hosts.test one.hosts.test
        fallthrough
    }
    template IN A made.test {
        match ^ip-(?P<a>[0-9]*)\.made\.test\.$
        answer "{{ .Name }} 60 IN A 10.0.0.{{ .Group.a }}"
        fallthrough
    }
    template IN A strict.test {
        match ^yes\.strict\.test\.$
        answer "{{ .Name }} 60 IN CNAME web.shop.svc.cluster.local."
    }
    autopath @kubernetes
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods verified
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    cache 30
    loadbalance
    forward . 192.0.2.53 {
        except none.test
    }
}
corp:53 {
    whoami
}
denied.test:53 {
    hosts {
        192.0.2.9 known.denied.test
    }
}
sub.corp:5300 {
    whoami
}
"#;

/// Labels that random names are made of.
const LABELS: [&str; 30] = [
    "web",
    "db",
    "db-0",
    "db-1",
    "payments",
    "storefront",
    "shop",
    "nope",
    "svc",
    "pod",
    "cluster",
    "local",
    "_http",
    "_tcp",
    "_udp",
    "_pg",
    "10-244-1-10",
    "10-244-1-20",
    "ns",
    "dns",
    "dns-version",
    "corp",
    "test",
    "hosts",
    "one",
    "two",
    "made",
    "ip-7",
    "WEB",
    "old",
];
/// Ends of random names.
const ENDS: [&str; 26] = [
    "shop.svc.cluster.local.",
    "svc.cluster.local.",
    "cluster.local.",
    "shop.pod.cluster.local.",
    "",
    "web.shop.svc.cluster.local.",
    "db.shop.svc.cluster.local.",
    "payments.shop.svc.cluster.local.",
    "storefront.shop.svc.cluster.local.",
    "10.20.96.10.in-addr.arpa.",
    "20.1.244.10.in-addr.arpa.",
    "in-addr.arpa.",
    "5.5.5.5.in-addr.arpa.",
    "db.short.",
    "db.old.test.",
    "hosts.test.",
    "made.test.",
    "strict.test.",
    "corp.",
    "denied.test.",
    "none.test.",
    "example.org.",
    "one.hosts.test.",
    "two.hosts.test.",
    "ip-7.made.test.",
    "yes.strict.test.",
];
const TYPES: [Type; 11] = [
    Type::A,
    Type::A,
    Type::A,
    Type::AAAA,
    Type::AAAA,
    Type::SRV,
    Type::PTR,
    Type::TXT,
    Type::NS,
    Type::SOA,
    Type::ANY,
];
const SOURCES: [&str; 7] =
    ["10.244.1.10", "10.244.1.20", "10.9.1.1", "10.8.1.1", "10.7.1.1", "192.0.2.77", "2001:db8::7"];

/// Random numbers with a seed (xorshift64*).
struct Random(u64);

impl Random {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        from[usize::try_from(number).unwrap() % from.len()]
    }

    fn name(&mut self) -> String {
        let labels = self.pick(&[0, 0, 1, 1, 1, 2, 3]);
        let mut name: String = (0..labels).map(|_| format!("{}.", self.pick(&LABELS))).collect();
        name.push_str(self.pick(&ENDS));
        if name.is_empty() { ".".to_owned() } else { name }
    }
}

/// Answer of the server itself, in the words of an explanation.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    waits: bool,
    dropped: bool,
    truncated: bool,
    rcode: Option<String>,
    plugin: Option<String>,
    sections: [Vec<String>; 3],
}

impl Answer {
    /// Asks the generation that serves, as a worker does.
    fn of_server(loaded: &Loaded, worker: &mut Worker, (name, qtype, from): (&str, Type, IpAddr)) -> Answer {
        let mut transaction = Box::<Transaction>::default();
        transaction.query.packet = packet_of(&Name::from_text(name).unwrap(), qtype);
        transaction.query.peer = PeerInfo { address: SocketAddr::new(from, 40_000), ..PeerInfo::default() };
        transaction.query.received = worker.now();
        let progress = loaded.generation.receive(ListenerId(0), &mut transaction, worker);
        let Transaction { query, response, .. } = &mut *transaction;
        let steps = loaded.generation.blocks[loaded.generation.sites[query.site.0].block.0].chain.steps();
        let plugin = response.source().and_then(|order| steps.iter().find(|step| step.order == order));
        let plugin = plugin.map(|step| step.name.to_owned());
        let mut answer = Answer {
            waits: progress == Progress::Waiting,
            dropped: progress == Progress::Dropped,
            ..Answer::default()
        };
        if progress != Progress::Answered {
            return answer;
        }
        answer.plugin = plugin;
        let message = Message::parse(response.finish(query)).unwrap();
        answer.truncated = message.header().flags.truncated();
        answer.rcode = Some(message.header().flags.rcode().to_string());
        for record in message.records() {
            let place = [Section::Answer, Section::Authority, Section::Additional]
                .iter()
                .position(|one| *one == record.section());
            answer.sections[place.unwrap()].extend(text_of(&record));
        }
        answer.sorted()
    }

    fn of_step(step: &Step) -> Answer {
        let Step { dropped, truncated, rcode, plugin, records, authority, additional, .. } = step.clone();
        let waits = rcode.is_none() && !dropped;
        let plugin = plugin.filter(|_| rcode.is_some());
        Answer { waits, dropped, truncated, rcode, plugin, sections: [records, authority, additional] }.sorted()
    }

    /// The order of records is random where *loadbalance* shuffles them.
    fn sorted(mut self) -> Answer {
        self.sections.iter_mut().for_each(|section| section.sort());
        self
    }
}

fn examples() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop"))
}

/// Runs a test with a loaded Corefile.
fn with_loaded(name: &str, corefile: &str, test: impl FnOnce(&Loaded)) {
    let conf = std::env::temp_dir().join(format!("portolan-explain-{name}-{}", std::process::id()));
    std::fs::write(&conf, corefile).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        test(&load(&Files { conf: conf.clone(), manifests: vec![examples()] }, plugins::DIRECTIVES).await.unwrap());
    });
    let _ = std::fs::remove_file(conf);
}

#[test]
fn an_explanation_has_the_answer_of_the_server() {
    with_loaded("random", COREFILE, |loaded| {
        let mut worker = Worker::new(&Registry::new(), Box::new(MonotonicClock), 7);
        let mut explainer = loaded.explainer();
        let mut random = Random(0x5eed);
        let mut seen: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for _ in 0..QUERIES {
            let (name, qtype, from) = (random.name(), random.pick(&TYPES), random.pick(&SOURCES));
            let asked = Asked { name: &name, qtype: Some(&qtype.to_string()), from: Some(from), ..Asked::default() };
            let explained = explainer.explain(&asked).unwrap();
            assert_eq!(explained.steps.len(), 1, "{explained}");
            let own = Answer::of_server(loaded, &mut worker, (&name, qtype, from.parse().unwrap()));
            let told = Answer::of_step(&explained.steps[0]);
            // A failure has no source; an explanation names the plugin that failed.
            let told = if own.plugin.is_none() { Answer { plugin: None, ..told } } else { told };
            assert_eq!(told, own, "{name} {qtype} from {from}\n{explained}");
            let outcome = explained.steps[0].rcode.clone().unwrap_or_else(|| "none".to_owned());
            let plugin = explained.steps[0].plugin.clone().unwrap_or_default();
            *seen.entry(format!("{plugin} {outcome}")).or_default() += 1;
            assert!(!explained.why.code.is_empty(), "{explained}");
        }
        for wanted in [
            "kubernetes NOERROR",
            "kubernetes NXDOMAIN",
            "hosts NOERROR",
            "template NOERROR",
            "cache NOERROR",
            "forward none",
        ] {
            assert!(seen.get(wanted).is_some_and(|times| *times > 10), "{wanted}: {seen:?}");
        }
        assert!(seen.len() >= 10, "{seen:?}");
    });
}

#[test]
fn an_explanation_counts_and_logs_nothing() {
    let corefile = ".:53 {\n whoami\n errors\n log\n prometheus localhost:0\n}\n";
    with_loaded("quiet", corefile, |loaded| {
        let explained = loaded.explainer().explain(&Asked { name: "a.test.", ..Asked::default() }).unwrap();
        assert_eq!(explained.steps[0].plugin.as_deref(), Some("whoami"), "{explained}");
    });
}

#[test]
fn the_codes_that_decide_are_those_of_the_plugin() {
    for code in super::why::IN_NAMESPACE.into_iter().chain([super::why::NO_NAMESPACE]) {
        assert!(plugins::reason_codes().any(|reason| reason.code == code), "{code}");
    }
}

#[test]
fn names_follow_resolv_conf() {
    let search = control::explain::Search {
        domains: vec!["a.test".to_owned(), "test".to_owned()],
        ndots: 2,
        ..Default::default()
    };
    let names = |text: &str| {
        let names = super::names_of(text, Some(&search)).unwrap();
        names.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names("x"), ["x.a.test.", "x.test.", "x."]);
    assert_eq!(names("x.y"), ["x.y.a.test.", "x.y.test.", "x.y."]);
    assert_eq!(names("x.y.z"), ["x.y.z.", "x.y.z.a.test.", "x.y.z.test."]);
    assert_eq!(names("x."), ["x."]);
    assert!(super::names_of("", Some(&search)).is_err() && super::names_of("a..b", None).is_err());
}
