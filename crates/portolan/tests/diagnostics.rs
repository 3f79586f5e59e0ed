//! `portolan check`: each code is documented with an example, and the machine-readable formats are as documented.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::Folder;
use portolan::diagnostics;
use serde_json::Value;

/// Phrase in an entry without an example Corefile.
const NO_EXAMPLE: &str = "No short example";

#[test]
fn documents_every_code_and_no_other() {
    let codes: Vec<&str> = diagnostics::codes().map(corefile::Code::name).collect();
    let known: BTreeSet<&str> = codes.iter().copied().collect();
    assert_eq!(known.len(), codes.len(), "a code is declared twice");
    let entries: BTreeSet<&str> = diagnostics::entries().map(|(code, _)| code).collect();
    assert_eq!(entries, known);
    for code in codes {
        let (room, what) = code.split_once('/').expect("room/what");
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        assert!(is_word(room) && is_word(what), "{code}");
    }
}

#[test]
fn examples_of_entries_produce_their_code() {
    let mut wrong = Vec::new();
    for (code, text) in diagnostics::entries() {
        let example = text.split("~~~ corefile\n").nth(1).and_then(|rest| rest.split("~~~").next());
        match example {
            None if text.contains(NO_EXAMPLE) => {}
            None => wrong.push(format!("{code}: neither an example nor a reason for its absence")),
            Some(example) => {
                let said = said(example, if code.starts_with("coredns/") { &["--for", "coredns"] } else { &[] });
                if !said.contains_key(code) {
                    wrong.push(format!("{code}: the example is said to be {said:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the diagnostics of a Corefile, by code.
fn said(corefile: &str, options: &[&str]) -> BTreeMap<String, String> {
    let options = [&["--json"][..], options].concat();
    let (_, document) = check_in(&Folder::new("diagnostics"), corefile, &options);
    let list = document["diagnostics"].as_array().unwrap().iter();
    list.map(|problem| (text(&problem["code"]).to_owned(), text(&problem["message"]).to_owned())).collect()
}

/// Checks a Corefile. Returns the exit code and the document.
fn check(corefile: &str, form: &str) -> (Option<i32>, Value) {
    check_in(&Folder::new("diagnostics"), corefile, &[form])
}

/// Checks a Corefile in a folder with the files that it names.
fn check_in(folder: &Folder, corefile: &str, options: &[&str]) -> (Option<i32>, Value) {
    folder.write("Corefile", corefile);
    let output = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .arg("check")
        .args(options)
        .arg("Corefile")
        .env_remove("NOT_SET")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let document = serde_json::from_slice(&output.stdout);
    (output.status.code(), document.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

#[test]
fn checks_for_a_release_of_coredns() {
    let own = ".:0 {\n control\n whoami\n}\n";
    let late = ".:0 {\n forward . 192.0.2.1 {\n  read_timeout 1s\n }\n}\n";
    let planned = ".:0 {\n nomad\n}\n";
    let wrong = ".:0 {\n forward . 192.0.2.1 {\n  policy fast\n }\n}\n";
    for (corefile, server, code) in [
        (own, "coredns", Some("coredns/directive")),
        (late, "coredns", None),
        (late, "coredns@1.14.4", Some("coredns/property")),
        (planned, "coredns", None),
        (planned, "coredns@1.12.4", Some("coredns/directive")),
        (wrong, "coredns", Some("options/value")),
    ] {
        let (exit, document) = check_in(&Folder::new("diagnostics"), corefile, &["--json", "--for", server]);
        let codes: Vec<&str> =
            document["diagnostics"].as_array().unwrap().iter().map(|problem| text(&problem["code"])).collect();
        assert_eq!((exit, codes), (Some(i32::from(code.is_some())), Vec::from_iter(code)), "{server}: {corefile}");
        let release = server.split_once('@').map_or("1.15.0", |(_, release)| release);
        assert_eq!(document["for"], format!("coredns@{release}"));
    }
    let (_, document) = check(planned, "--json");
    assert_eq!(document["diagnostics"][0]["help"], "CoreDNS accepts this since 1.13.0");
    for server in ["coredns@1.10.1", "coredns@x", "bind"] {
        let output = Command::new(env!("CARGO_BIN_EXE_portolan")).args(["check", "--for", server]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{server}");
    }
}

#[test]
fn a_corefile_that_is_too_long_has_a_diagnostic_like_any_other() {
    // The bound is within a character.
    for filler in ["x", "äöü", "€"] {
        let corefile = format!("# {}\n.:53 {{\n    whoami\n}}\n", filler.repeat((5 << 20) / filler.len()));
        let (code, document) = check(&corefile, "--json");
        assert_eq!(code, Some(1), "{filler}");
        assert_eq!(document["diagnostics"][0]["code"], "corefile/file-too-large", "{document}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        let mut process =
            command.args(["check", "--json", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The command does not read all of it.
        let _ = process.stdin.take().unwrap().write_all(corefile.as_bytes());
        let output = process.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(1) && text.contains("corefile/file-too-large"), "{text}");
    }
}

#[test]
fn checks_files_only_with_the_flag() {
    let folder = Folder::new("files");
    folder.write("db.good", "@ 60 IN SOA ns hostmaster 1 7200 1800 86400 60\n");
    folder.write("db.bad", "@ 60 IN SOA ns hostmaster 1 7200 1800 86400 60\n@ 60 IN A 192.0.2\n");
    let odd = "@ 60 IN SOA ns hostmaster 1 7200 1800 86400 60\na 60 IN DNAME b.test.\nb.a 60 IN A 192.0.2.1\n";
    std::fs::create_dir_all(folder.path().join("zones")).unwrap();
    folder.write("zones/db.odd.test", odd);
    crate::support::certify_all(&folder, "ca", &[("own", "own-key", &["dns.example.org", "192.0.2.53"])]);
    let announced = "ddr dns.example.org 192.0.2.53 {\n announce tls\n }\n tls own.pem own-key.pem";
    let unreachable = "ddr dns.example.org 192.0.2.54 {\n announce tls\n }\n tls own.pem own-key.pem";
    let cases = [
        (announced, None, ""),
        (unreachable, Some("setup/warned"), "own.pem is not valid for 192.0.2.54"),
        ("file db.good good.test", None, ""),
        (
            "file zones/db.odd.test odd.test",
            Some("zone/below-dname"),
            "db.odd.test:3:1: `b.a.odd.test.` is below a DNAME",
        ),
        (
            "auto odd.test {\n directory zones\n }",
            Some("zone/below-dname"),
            "db.odd.test:3:1: `b.a.odd.test.` is below",
        ),
        ("hosts nowhere", Some("setup/warned"), "nowhere: "),
        ("file db.bad bad.test", Some("setup/failed"), "db.bad:2"),
        ("tls cert.pem key.pem", Some("setup/failed"), "cert.pem"),
        ("kubernetes cluster.local", None, ""),
        ("kubernetes cluster.local {\n manifests nowhere\n }", Some("setup/failed"), "nowhere"),
        ("kubernetes cluster.local {\n kubeconfig config\n }", Some("setup/failed"), "config"),
        ("etcd skydns.test {\n endpoint http://127.0.0.1:1\n }", None, ""),
        (
            "etcd skydns.test {\n endpoint https://127.0.0.1:1\n tls nowhere.pem\n }",
            Some("setup/failed"),
            "nowhere.pem",
        ),
        ("probe a 127.0.0.1:53 a.test\n probe a 127.0.0.1:53 b.test", Some("setup/failed"), "duplicate probe a"),
        ("nomad", Some("directives/not-here"), "nomad"),
    ];
    for (line, code, part) in cases {
        let corefile = format!(".:0 {{\n {line}\n}}\n");
        let without = check_in(&folder, &corefile, &["--json"]);
        let is_missing = code.is_some_and(|code| code.ends_with("not-here"));
        assert_eq!(without.0, Some(i32::from(is_missing)), "{line}");
        let (exit, document) = check_in(&folder, &corefile, &["--json", "--files"]);
        let list = document["diagnostics"].as_array().unwrap();
        assert_eq!(list.len(), usize::from(code.is_some()), "{line}: {list:?}");
        let warned = code.is_none_or(|code| code == "setup/warned" || code.starts_with("zone/"));
        assert_eq!(exit, Some(i32::from(!warned)), "{line}: {list:?}");
        for problem in list {
            let at = if line.starts_with("probe") { 3 } else { 2 };
            assert_eq!((Some(text(&problem["code"])), &problem["line"]), (code, &Value::from(at)), "{problem}");
            assert!(text(&problem["message"]).contains(part), "{problem}");
        }
    }
}

#[test]
fn sorts_diagnostics_of_files_by_place() {
    let corefile = ".:0 {\n    tls nowhere nowhere\n    hosts {\n    }\n    forward . 192.0.2.1\n}\n";
    let (_, document) = check_in(&Folder::new("order"), corefile, &["--json", "--files"]);
    let lines: Vec<_> = document["diagnostics"].as_array().unwrap().iter().map(|problem| &problem["line"]).collect();
    assert_eq!(lines, [2, 5]);
}

#[test]
fn files_reports_every_broken_file_with_its_line() {
    let corefile = "one.test:0 two.test:0 {\n file nowhere one.test {\n reload 0s\n }\n file broken two.test\n tls a b\n}\n\
                    .:0 {\n k8s_external out.test\n kubernetes cluster.local {\n kubeconfig absent\n }\n \
                    forward . tls://192.0.2.1 {\n tls absent.pem\n }\n}\n";
    let folder = Folder::new("every");
    folder.write("broken", "@ 60 IN SOA ns hostmaster 1 7200 1800 86400 60\n@ 60 IN A 192.0.2\n");
    let (exit, document) = check_in(&folder, corefile, &["--json", "--files"]);
    let found: Vec<_> = document["diagnostics"].as_array().unwrap().iter().collect();
    let lines: Vec<_> = found.iter().map(|problem| &problem["line"]).collect();
    assert_eq!((exit, &lines[..]), (Some(1), &[2, 5, 6, 10, 13].map(Value::from).each_ref()[..]), "{found:#?}");
    assert!(text(&found[3]["message"]).contains("absent"), "{found:#?}");
}

#[test]
fn files_reports_mistakes_in_manifests_with_their_lines() {
    let corefile = ".:0 {\n kubernetes cluster.local {\n manifests shop\n }\n}\n";
    let folder = Folder::new("manifests");
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  clusterIp: None\n";
    folder.write("shop/all.yaml", &format!("{service}---\n{service}  ports: [{{port: 70000}}]\n"));
    let (exit, document) = check_in(&folder, corefile, &["--json", "--files"]);
    let found: Vec<_> = document["diagnostics"].as_array().unwrap().iter().collect();
    let messages: Vec<_> = found.iter().map(|problem| text(&problem["message"])).collect();
    assert_eq!((exit, messages.len()), (Some(0), 2), "{found:#?}");
    assert!(messages[0].contains("all.yaml:12: `70000` is too large for a port"), "{messages:?}");
    assert!(messages[1].contains("all.yaml:5: unknown field `clusterIp`; did you mean `clusterIP`?"), "{messages:?}");
    let (_, document) = check_in(&folder, corefile, &["--json"]);
    assert_eq!(document["diagnostics"].as_array().unwrap().len(), 0, "without --files, no file is read");
}

#[test]
fn rbac_reads_no_files() {
    let folder = Folder::new("rights");
    let corefile = "z.test:0 {\n file nowhere {\n reload 0s\n }\n tls a b\n}\n.:0 {\n kubernetes cluster.local\n}\n";
    folder.write("Corefile", corefile);
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    let output = command.args(["check", "--rbac", "Corefile"]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("kind: ClusterRole"), "{output:?}");
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Corefile with two errors and a warning, after multi-byte characters.
const BAD: &str = "# é日\n. {\n    hosts é日é {\n        fallthrough\n    }\n    cach 30\n    tls a\n}\n}\n";

#[test]
fn prints_one_json_document() {
    let (code, document) = check(BAD, "--json");
    assert_eq!(code, Some(1));
    assert_eq!(
        (&document["form"], &document["errors"], &document["files"][0]),
        (&1.into(), &2.into(), &"Corefile".into())
    );
    let list = document["diagnostics"].as_array().unwrap();
    let unknown = list.iter().find(|problem| problem["code"] == "directives/unknown").unwrap();
    assert_eq!((&unknown["file"], &unknown["severity"]), (&"Corefile".into(), &"error".into()));
    assert_eq!((&unknown["line"], &unknown["column"]), (&6.into(), &5.into()));
    assert_eq!((&unknown["end"]["line"], &unknown["end"]["column"]), (&6.into(), &9.into()));
    assert_eq!(unknown["help"], "did you mean `cache`?");
    let places: Vec<_> = list.iter().map(|problem| (problem["line"].as_u64(), problem["column"].as_u64())).collect();
    assert!(places.is_sorted(), "{places:?}");
    let (code, document) = check(". {\n    whoami\n}\n", "--json");
    assert_eq!(
        (code, &document["diagnostics"], &document["warnings"]),
        (Some(0), &Value::Array(Vec::new()), &0.into())
    );
}

#[test]
fn machine_readable_forms_name_the_other_directive() {
    let corefile = ". {\n    whoami\n    forward . 192.0.2.53\n}\n";
    let (_, document) = check(corefile, "--json");
    let problem = &document["diagnostics"][0];
    assert_eq!(
        (&problem["line"], &problem["other"]["line"], &problem["other"]["column"]),
        (&2.into(), &3.into(), &5.into())
    );
    assert!(text(&problem["other"]["label"]).contains("earlier in the chain"), "{problem}");
    let (_, log) = check(corefile, "--sarif");
    let related = &log["runs"][0]["results"][0]["relatedLocations"][0];
    assert_eq!(related["physicalLocation"]["region"]["startLine"], 3, "{related}");
    assert!(text(&related["message"]["text"]).contains("earlier in the chain"), "{related}");
}

/// Checks that messages name an unreadable file once and have no number of the system.
#[test]
fn names_an_unreadable_file_once() {
    let folder = Folder::new("unreadable");
    let (missing, directory) = (folder.path().join("missing"), folder.path().display());
    let missing = missing.display();
    let in_block =
        |lines: String| folder.write("Corefile", &format!("a.test {{\n    {lines}\n}}\n")).display().to_string();
    let cases = [
        (
            format!("kubernetes {{\n kubeconfig {missing}\n }}"),
            format!("kubeconfig: cannot open {missing}: no such file or directory"),
        ),
        (
            format!("kubernetes {{\n kubeconfig {directory}\n }}"),
            format!("kubeconfig: cannot open {directory}: it is a directory"),
        ),
        (
            format!("kubernetes {{\n manifests {missing}\n }}"),
            format!("manifests: cannot open {missing}: no such file or directory"),
        ),
        (
            format!("kubernetes {{\n endpoint https://192.0.2.1\n tls {missing} {missing} {missing}\n }}"),
            format!("credentials for the API server: cannot open {missing}: no such file or directory"),
        ),
        (format!("file {directory}"), format!("zone a.test.: cannot open {directory}: it is a directory")),
        (format!("forward . {missing}"), format!("cannot open {missing}: no such file or directory")),
    ];
    for (lines, expected) in cases {
        let output = run(&["check", "--files", &in_block(lines)]);
        assert!(output.lines().next().unwrap_or_default().ends_with(&expected), "expected {expected}:\n{output}");
    }
    for command in [&["check"][..], &["migrate"], &["-conf"]] {
        let path = directory.to_string();
        let output = run(&[command, &[&path]].concat());
        let expected = format!("cannot open {directory}: it is a directory\n");
        assert!(output.trim_start_matches("loading Corefile: ") == expected, "{command:?}: {output}");
    }
}

/// Runs the program. Returns both of its outputs.
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_portolan")).args(arguments).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Checks the properties that SARIF 2.1.0 requires (§3.13, §3.14, §3.18, §3.19, §3.27, §3.29, §3.30, §3.49) and their
/// values.
#[test]
fn sarif_has_all_required_properties() {
    let (code, log) = check(BAD, "--sarif");
    assert_eq!((code, text(&log["version"])), (Some(1), "2.1.0"));
    assert!(text(&log["$schema"]).ends_with("sarif-2.1.0.json"));
    let [run] = &log["runs"].as_array().unwrap()[..] else { panic!("one run") };
    assert_eq!(text(&run["tool"]["driver"]["name"]), "portolan");
    assert_eq!(text(&run["columnKind"]), "unicodeCodePoints");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules.iter().map(|rule| text(&rule["id"])).collect();
    assert_eq!(ids.len(), rules.len());
    assert!(rules.iter().all(|rule| !text(&rule["shortDescription"]["text"]).is_empty()));
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 3, "{results:#?}");
    for result in results {
        check_result(result, rules);
    }
}

fn check_result(result: &Value, rules: &[Value]) {
    assert!(!text(&result["message"]["text"]).is_empty());
    assert!(["error", "warning"].contains(&text(&result["level"])));
    let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
    assert_eq!(rule["id"], result["ruleId"]);
    let [location] = &result["locations"].as_array().unwrap()[..] else { panic!("one location") };
    let place = &location["physicalLocation"];
    assert_eq!(text(&place["artifactLocation"]["uri"]), "Corefile");
    let number = |name: &str| place["region"][name].as_u64().unwrap();
    assert!(number("startLine") >= 1 && number("startColumn") >= 1);
    assert!((number("startLine"), number("startColumn")) <= (number("endLine"), number("endColumn")));
}

#[test]
fn exit_codes_are_as_documented() {
    let folder = Folder::new("exit");
    let run = |arguments: &[&OsStr]| {
        Command::new(env!("CARGO_BIN_EXE_portolan")).arg("check").args(arguments).output().unwrap()
    };
    let written = |text: &str| run(&[folder.write("Corefile", text).as_os_str()]);
    assert_eq!(written(". {\n    whoami\n}\n").status.code(), Some(0));
    let warned = written(". {\n    cache\n}\n");
    assert_eq!((warned.status.code(), warned.stdout.starts_with(b"warning[chain/nothing-below]")), (Some(0), true));
    assert_eq!(written(". {\n    nonsense\n}\n").status.code(), Some(1));
    assert_eq!(run(&[folder.path().join("missing").as_os_str()]).status.code(), Some(2));
    assert_eq!(run(&["--json".as_ref(), "--sarif".as_ref()]).status.code(), Some(2));
    let explained = run(&["--explain".as_ref(), "keys/invalid".as_ref()]);
    assert!(explained.status.success() && explained.stdout.starts_with(b"A key must"));
    assert_eq!(run(&["--explain".as_ref(), "keys/valid".as_ref()]).status.code(), Some(2));
}

#[test]
fn refuses_what_coredns_accepts_and_this_build_cannot_serve() {
    let folder = Folder::new("later");
    for (corefile, name) in [
        (".:0 {\n    route53 a.test.:Z1\n}\n", "route53"),
        (".:0 {\n    clouddns a.test.:b:c\n    whoami\n}\n", "clouddns"),
    ] {
        let path = folder.write("Corefile", corefile);
        let (code, document) = check(corefile, "--json");
        assert_eq!((code, &document["errors"]), (Some(1), &1.into()), "{corefile}");
        let list = document["diagnostics"].as_array().unwrap();
        let problem = list.iter().find(|problem| text(&problem["message"]).contains(name)).unwrap();
        assert_eq!(problem["severity"], "error");
        assert!(text(&problem["help"]).starts_with("CoreDNS accepts this"), "{problem}");
        let output = Command::new(env!("CARGO_BIN_EXE_portolan")).arg("-conf").arg(path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("error[") && said.contains(name), "{said}");
    }
}

#[test]
fn says_which_files_it_has_not_read() {
    let named = ".:0 {\n tls cert.pem key.pem\n auto\n file nowhere.db a.test\n kubernetes cluster.local {\n  manifests x\n }\n whoami\n}\n";
    let hint = "not read: the files that these directives name: file, kubernetes, tls; `--files` reads them\n";
    let (code, out, err) = check_input(&["-"], named);
    assert_eq!((code, err.as_str()), (Some(0), hint), "{out}");
    assert_eq!(check_input(&["--json", "-"], named).2, "");
    assert_eq!(check_input(&["-"], ".:0 {\n hosts {\n  192.0.2.1 a.test\n }\n whoami\n}\n").2, "");
    for (line, name) in [
        ("forward . /run/resolv.conf", "forward"),
        ("forward . tls://192.0.2.1", ""),
        ("forward . /etc/resolv.conf", ""),
        ("loadbalance weighted weights", "loadbalance"),
        ("loadbalance round_robin", ""),
        ("rrl {\n  cookies file\n }", "rrl"),
        ("rrl {\n  cookies\n }", ""),
    ] {
        let (_, _, err) = check_input(&["-"], &format!(".:0 {{\n {line}\n whoami\n}}\n"));
        assert_eq!(err.contains(&format!("name: {name};")), !name.is_empty(), "{line}: {err}");
    }
}

#[test]
fn fails_for_a_corefile_that_serves_nothing() {
    for text in ["# nothing\n", "(part) {\n log\n}\n", "{$NO_SUCH_VARIABLE} {\n whoami\n}\n"] {
        let (code, out, _) = check_input(&["-"], text);
        assert_eq!(code, Some(1), "{text}: {out}");
        assert!(out.contains("error["), "{out}");
    }
}

#[test]
fn checks_the_parts_of_a_managed_cluster() {
    let main = "kind: ConfigMap\nmetadata: {name: coredns}\ndata:\n  Corefile: |\n    .:53 {\n        whoami\n        import \
                custom/*.override\n    }\n    import custom/*.server\n---\n";
    let custom = "kind: ConfigMap\nmetadata: {name: coredns-custom}\ndata:\n  x.override: |\n    forwarrd . 10.10.10.1\n  \
                  y.sever: |\n    a.test {\n    }\n";
    for (input, said) in [(format!("{main}{custom}"), ""), (custom.to_owned(), "only parts of a Corefile")] {
        let (code, out, err) = check_input(&["-"], &input);
        assert_eq!(code, Some(1), "{out}{err}");
        assert!(out.contains("unknown directive `forwarrd`") && out.contains("coredns-custom/x.override:1:1"), "{out}");
        assert!(err.contains("key `y.sever`") && err.contains(said), "{err}");
    }
    let (code, out, err) = check_input(&["-"], &format!("{main}{}", custom.replace("forwarrd . 10.10.10.1", "log")));
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(out.matches("nothing is imported").count(), 1, "no key ends in .server: {out}");
    let (code, _, err) = check_input(&["-"], "kind: ConfigMap\nmetadata: {name: coredns}\ndata: {corefile: '.'}\n");
    assert!(code == Some(2) && err.contains("has the key `corefile`"), "{err}");
}

/// Runs `portolan check` with standard input; returns the exit code and both outputs.
fn check_input(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .arg("check")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn reads_standard_input_by_both_names() {
    for name in ["-", "stdin"] {
        assert_eq!(check_input(&[name], ". {\n    whoami\n}\n").0, Some(0), "{name}");
        let (code, _, stderr) = check_input(&[name], "\n");
        assert_eq!((code, stderr.contains("standard input is empty")), (Some(2), true), "{stderr}");
    }
}

#[test]
fn reads_the_corefiles_of_manifests() {
    let map = "kind: ConfigMap\nmetadata: {name: coredns}\ndata:\n  Corefile: |\n    .:53 {\n        cach\n    }\n";
    let (code, stdout, _) = check_input(&["-"], map);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("coredns/Corefile:2:5"), "{stdout}");
    let (code, _, _) = check_input(&["-"], &map.replace("cach", "whoami"));
    assert_eq!(code, Some(0));
    let two = format!("{}---\n{map}", map.replace("cach", "whoami"));
    assert_eq!(check_input(&["-"], &two).0, Some(1));
    let (code, _, stderr) = check_input(&["-"], "kind: ConfigMap\nmetadata: {name: kube-dns}\n");
    assert_eq!((code, stderr.contains("portolan migrate")), (Some(2), true), "{stderr}");
}

#[test]
fn strict_fails_for_warnings() {
    let warned = ". {\n    cache\n}\n";
    assert_eq!(check_input(&["-"], warned).0, Some(0));
    let (code, stdout, _) = check_input(&["--strict", "-"], warned);
    assert_eq!((code, stdout.starts_with("error[chain/nothing-below]")), (Some(1), true), "{stdout}");
}

#[test]
fn reports_a_missing_brace_once_at_the_block_that_lacks_it() {
    let forward = "    forward . 192.0.2.1\n";
    for (corefile, at, help) in [
        (format!(".:53 {{\n    health {{\n        lameduck 5s\n    ready\n{forward}}}\n"), "2:12", "before line 4"),
        (
            format!(
                ".:53 {{\n    kubernetes a.test {{\n        ttl 5\n    cache {{\n      keepttl\n    }}\n{forward}}}\n"
            ),
            "2:23",
            "before line 4",
        ),
        (format!(".:53 {{\n{forward}\nb.test {{\n{forward}}}\n"), "1:6", "before line 4"),
    ] {
        let (code, document) = check(&corefile, "--json");
        let list = document["diagnostics"].as_array().unwrap();
        let [problem] = &list[..] else { panic!("{corefile}{list:#?}") };
        let place = format!("{}:{}", problem["line"], problem["column"]);
        assert_eq!((code, text(&problem["code"]), place.as_str()), (Some(1), "corefile/unclosed-block", at));
        assert!(text(&problem["help"]).contains(help), "{problem}");
    }
}

/// Checks a Corefile without indentation, where the place of a missing brace would be a guess.
#[test]
fn ignores_the_indentation_of_a_corefile_without_any() {
    let (code, document) = check(". {\nforward . 192.0.2.1 {\nmax_fails 3\nready\n}\n", "--json");
    let list = document["diagnostics"].as_array().unwrap();
    assert_eq!(code, Some(1));
    assert!(list.iter().any(|problem| text(&problem["message"]).contains("unknown property `ready`")), "{list:#?}");
}

/// The template in the manifest has placeholders where only the cluster's administrator knows the values.
#[test]
fn checks_the_template_of_a_node_local_dns_manifest_with_example_values() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/node-local-dns.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_portolan")).args(["check", manifest]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}{said}", String::from_utf8_lossy(&output.stdout));
    assert!(said.contains("checked with example values: __PILLAR__LOCAL__DNS__ = 169.254.20.10"), "{said}");
}

#[test]
fn names_an_unset_variable_in_messages_about_its_empty_value() {
    let (code, report) = check(". {\n    forward . {$NOT_SET}\n    cache {$NOT_SET}\n}\n", "--json");
    assert_eq!(code, Some(1), "{report}");
    let text = report.to_string();
    assert!(
        text.contains("`{$NOT_SET}`: expected an IP address") && text.contains("`{$NOT_SET}` is not a zone"),
        "{text}"
    );
    assert!(!text.contains("``"), "{text}");
}
