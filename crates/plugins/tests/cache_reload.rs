//! Entries of *cache* across a reload: kept if nothing changed that the answers below depend on, dropped otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test reads files and panics"
)]

/// Upstreams and files of every case. The first upstream answers with 192.0.2.1, the second with 192.0.2.2.
const WORLD: &str = "\
upstream 192.0.2.53
    *.nx.test. A
        NXDOMAIN ra
        authority
        nx.test. 300 IN SOA ns. host. 1 2 3 4 300
    * *
        NOERROR ra
        www.test. 300 IN A 192.0.2.1
upstream 192.0.2.54
    * *
        NOERROR ra
        www.test. 300 IN A 192.0.2.2
file resolv
    nameserver 192.0.2.53
file names
    192.0.2.9 other.test
file zone
    @ 60 IN SOA ns host 1 2 3 4 5
    a 60 IN A 192.0.2.9
";

/// A reload: Corefiles before and after it, statements between them, and the address after it.
struct Case<'a> {
    before: &'a str,
    between: &'a str,
    after: &'a str,
    address: &'a str,
}

const PLAIN: &str = ". {\ncache 300\nforward . 192.0.2.53\n}";
const KEPT: &str = "192.0.2.1";

fn case<'a>(before: &'a str, after: &'a str, address: &'a str) -> Case<'a> {
    Case { before, between: "", after, address }
}

fn corefile(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}\n")).collect();
    format!("corefile\n{}", lines.concat())
}

fn problems(case: &Case<'_>) -> Vec<String> {
    let ask = |address: &str| format!("ask www.test. A\n    NOERROR * rd\n    www.test. * IN A {address}\n");
    // The upstreams change their answers, so only an entry of the cache can have the old one.
    let first = ask(KEPT).replace("NOERROR * rd", "NOERROR rd ra");
    // A plugin of this server is authoritative, an upstream is not.
    let flags = match case.address {
        "192.0.2.7" => "aa rd",
        _ => "rd ra",
    };
    let then = ask(case.address).replace("* rd", flags);
    let changed = "upstream 192.0.2.53\n    * *\n        NOERROR ra\n        www.test. 300 IN A 192.0.2.3\n";
    let (before, after) = (corefile(case.before), corefile(case.after));
    let text = format!("{WORLD}{before}{first}{changed}{}{after}{then}", case.between);
    let problems = testkit::run_text(&text, plugins::DIRECTIVES, &[]);
    problems.into_iter().map(|problem| format!("line {}: {}\n{text}", problem.line, problem.text)).collect()
}

fn check(cases: &[Case<'_>]) {
    let failed: Vec<String> = cases.iter().flat_map(problems).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn drops_entries_when_something_below_changes() {
    let template = "template IN A {\nanswer \"{{ .Name }} 60 IN A 192.0.2.7\"\n}";
    check(&[
        case(
            PLAIN,
            ". {\ncache 300\nhosts {\n192.0.2.7 www.test\nfallthrough\n}\nforward . 192.0.2.53\n}",
            "192.0.2.7",
        ),
        case(PLAIN, &format!(". {{\ncache 300\n{template}\nforward . 192.0.2.53\n}}"), "192.0.2.7"),
        case(PLAIN, ". {\ncache 300\nforward . 192.0.2.54\n}", "192.0.2.2"),
        case(PLAIN, ". {\ncache 300\nforward test 192.0.2.54\nforward . 192.0.2.53\n}", "192.0.2.2"),
        case(PLAIN, ". {\ncache 300 {\nserve_stale\n}\nforward . 192.0.2.54\n}", "192.0.2.2"),
        case(
            PLAIN,
            &format!("(x) {{\n{template}\n}}\n. {{\ncache 300\nimport x\nforward . 192.0.2.53\n}}"),
            "192.0.2.7",
        ),
    ]);
}

#[test]
fn drops_entries_when_a_file_changes_that_a_directive_below_reads() {
    let forward = ". {\ncache 300\nforward . resolv\n}";
    let hosts = ". {\ncache 300\nhosts names {\nreload 0\nfallthrough\n}\nforward . 192.0.2.53\n}";
    let resolv_conf = "file resolv\n    nameserver 192.0.2.54\n";
    let names = "file names\n    192.0.2.7 www.test\n";
    let of = |corefile, between, address| Case { before: corefile, between, after: corefile, address };
    check(&[of(forward, resolv_conf, "192.0.2.2"), of(hosts, names, "192.0.2.7"), of(hosts, "", KEPT)]);
}

#[test]
fn drops_entries_when_a_block_changes_that_the_block_can_reach() {
    let rewrite = "template IN A other.test {\nanswer \"{{ .Name }} 60 IN A 192.0.2.9\"\nfallthrough\n}";
    let blocks = |other: &str| {
        format!(". {{\ncache 300\n{rewrite}\nforward . 192.0.2.53\n}}\nelsewhere.example {{\n{other}\n}}")
    };
    let (one, other) = (blocks("whoami"), blocks("forward . 192.0.2.54"));
    let mut problems = problems(&Case { before: &one, between: "", after: &other, address: "192.0.2.3" });
    // A block on another listener cannot be reached.
    let apart = |upstream: &str| format!("{PLAIN}\n.:1053 {{\nforward . {upstream}\n}}");
    let (before, after) = (apart("192.0.2.53"), apart("192.0.2.54"));
    problems.extend(self::problems(&case(&before, &after, KEPT)));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn keeps_entries_when_only_others_change() {
    let with = |lines: &str| format!(". {{\n{lines}\ncache 300\nforward . 192.0.2.53\n}}");
    let (logs, acl, errors) = (with("log"), with("acl {\nblock net 198.51.100.0/24\n}"), with("errors"));
    check(&[
        case(PLAIN, PLAIN, KEPT),
        case(PLAIN, &logs, KEPT),
        case(PLAIN, &acl, KEPT),
        case(&logs, &errors, KEPT),
        case(PLAIN, &format!("{PLAIN}\nother.test {{\nwhoami\n}}"), KEPT),
    ]);
}

/// A directive that asks the whole server must say so, or *cache* keeps what another block answered.
#[test]
fn directives_that_ask_the_server_declare_it() {
    let crates = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let folders = ["common-plugins", "plugins"].map(|name| crates.join(name).join("src/plugins"));
    let plugins = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    let mut found = 0;
    for plugin in plugins.filter(|entry| entry.path().is_dir()) {
        let sources = std::fs::read_dir(plugin.path()).unwrap().flatten().map(|entry| entry.path());
        let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let text: String = sources.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let asks = ["SubqueryTarget::Top", "SubqueryTarget::BelowOrOther", "Authority::new"];
        if asks.iter().any(|asks| text.contains(asks)) {
            found += 1;
            assert!(text.contains(".asks_server()"), "{} does not declare `asks_server`", plugin.path().display());
        }
    }
    assert!(found > 5);
}
