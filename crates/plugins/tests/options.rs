//! Checks the manifests against `options.txt`: the options each plugin accepts and rejects, with the position of each
//! error.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use cluster::Clusters;
use cluster::scenario::Script;
use config::setup::{Capabilities, ReloadState};
use config::{BuildContext, Built, Planning, plan};
use corefile::Diagnostic;
use engine::tls::TlsMaker;
use metrics::Registry;
use skydns::Stores;
use testkit::World;

/// Text before the row in its Corefile.
const BEFORE: &str = ". {\n";

#[test]
fn accepts_or_rejects_each_row() {
    let rows = include_str!("options.txt").lines().enumerate();
    let rows: Vec<_> = rows.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(at, line)| {
            Some(format!("options.txt:{}: {line}\n    {}", at + 1, Row::read(line).check().err()?))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Row of the table.
struct Row<'a> {
    kind: &'a str,
    corefile: String,
    /// Expected position of the message.
    marked: Option<Range<usize>>,
    /// Expected text of the message, or the expected listening addresses.
    says: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Row<'a> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (text, says) = rest.split_once(" => ").unwrap_or((rest, ""));
        let text = format!("{BEFORE}{}\n}}\n", text.trim().replace('⏎', "\n").replace('␀', "\0"));
        let (before, marked) = text.split_once('«').unwrap_or((&text, ""));
        let (marked, after) = marked.split_once('»').unwrap_or(("", marked));
        let range = (!marked.is_empty()).then(|| before.len()..before.len() + marked.len());
        Row { kind, corefile: [before, marked, after].concat(), marked: range, says }
    }

    fn check(&self) -> Result<(), String> {
        let (built, problems) = build(&self.corefile);
        let listed = || problems.iter().map(|problem| format!("{}: {}", self.word(problem), problem.message)).collect();
        let errors: Vec<_> = problems.iter().filter(|problem| problem.is_error()).collect();
        let mistakes: Vec<_> = errors.iter().copied().filter(|problem| !is_later(problem)).collect();
        let errors = if mistakes.is_empty() { &errors } else { &mistakes };
        match (self.kind, built, problems.as_slice(), errors.as_slice()) {
            ("accept", Some(built), [], _) => self.check_listeners(&built),
            ("syntax", ..) if mistakes.is_empty() => Ok(()),
            ("warn", Some(_), [problem], _) if self.is_marked(problem) => Ok(()),
            ("reject", None, _, [problem]) if self.is_marked(problem) => Ok(()),
            ("accept" | "syntax" | "warn" | "reject", built, ..) => {
                let listed: Vec<String> = listed();
                Err(format!("{} {}", if built.is_some() { "taken" } else { "refused" }, listed.join("; ")))
            }
            (kind, ..) => Err(format!("`{kind}` is not one of accept, syntax, warn, reject")),
        }
    }

    fn check_listeners(&self, built: &Built) -> Result<(), String> {
        let labels: Vec<_> = built.listeners.iter().map(config::PlannedListener::label).collect();
        let labels = labels.join(" ");
        if self.says.is_empty() || self.says == labels { Ok(()) } else { Err(format!("listens on {labels}")) }
    }

    fn is_marked(&self, problem: &Diagnostic) -> bool {
        let place = problem.span.start as usize..problem.span.end as usize;
        self.marked.as_ref() == Some(&place) && !self.says.is_empty() && problem.message.contains(self.says)
    }

    fn word(&self, problem: &Diagnostic) -> &str {
        self.corefile.get(problem.span.start as usize..problem.span.end as usize).unwrap_or("?")
    }
}

/// Returns true if the only problem is that this build does not support the option.
fn is_later(problem: &Diagnostic) -> bool {
    problem.code.name().ends_with("not-here")
}

/// Builds a Corefile as far as a server does before it opens sockets.
fn build(corefile: &str) -> (Option<Built>, Vec<Diagnostic>) {
    let world = World::default();
    world.write("weights", "a.test\n192.0.2.1 3\n");
    world.write("broken", "192.0.2.1 3\n");
    world.write("keys", "key \"k.\" {\n secret \"YWJj\";\n};\n");
    world.write("pem", "-----BEGIN CERTIFICATE-----\n");
    world.write("comments", "# nobody\n");
    world.write("zone", "@ 60 SOA a b 1 2 3 4 5\n");
    world.write("K.key", "example.org. IN DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n");
    world.write(
        "K.private",
        "Private-key-format: v1.2\nAlgorithm: 15 (ED25519)\nPrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=\n",
    );
    world.write("wrong.key", "example.org. A 192.0.2.1\n");
    world.write("wrong.private", "");
    world.write("broken-zone", "@ 60 SOA a b 1 2 3 4 5\n@ A 192.0.2\n");
    world.write("/etc/resolv.conf", "nameserver 192.0.2.53\n");
    let parsed = corefile::parse(Path::new("Corefile"), corefile.to_owned(), &world);
    let mut problems = parsed.diagnostics;
    let interface = |name: &str| (name == "lo").then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    let planning =
        Planning { entries: plugins::DIRECTIVES.entries(), dns_port: 53, interface: &interface, memory: None };
    let planned = plan(&parsed.corefile, &planning, &mut problems);
    let (registry, mut process) = (Registry::new(), Capabilities::default());
    let tls: Arc<dyn TlsMaker> = Arc::new(testkit::PretendedTls);
    process.provide(tls);
    let clusters: Rc<dyn Clusters> = Rc::new(Script::default());
    process.provide(clusters);
    let stores: Rc<dyn Stores> = Rc::new(skydns::scenario::Script::default());
    process.provide(stores);
    let context =
        BuildContext { registry: &registry, files: &world, process: &process, reload_state: ReloadState::default() };
    // A row is alone in its block, which these warnings object to. `advice.txt` tests them.
    problems.retain(|problem| !problem.code.name().starts_with("chain/"));
    match planned.map(|planned| planned.build(context)) {
        Some(Ok(built)) => (Some(built), problems),
        Some(Err(failed)) => {
            problems.extend(failed);
            (None, problems)
        }
        None => (None, problems),
    }
}
