//! Typical mistakes at the command line: the message says what is wrong, what was expected, and what to do, and the
//! exit status is 2.

use std::process::Command;

use crate::support::control::{ControlSocket, Ran};
use crate::support::{Folder, Server};

/// Runs a command and compares its message.
fn assert_says(words: &[&str], expected: &str) {
    let ran: Ran = Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().unwrap().into();
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.trim_end()), (2, "", expected), "{words:?}");
}

#[test]
fn names_what_is_no_socket() {
    let folder = Folder::new("mistakes-socket");
    let file = folder.write("Corefile", ". {\n}\n").display().to_string();
    let directory = folder.path().display().to_string();
    for path in [&file, &directory] {
        let expected = format!(
            "`{path}` is not a socket; expected the control socket of a server, such as /run/portolan/control.sock"
        );
        assert_says(&["status", "--socket", path], &expected);
    }
    let gone = format!("{directory}/gone");
    let advice = "; without `--socket`, the server that runs here is found";
    assert_says(&["status", "--socket", &gone], &format!("{gone}: no such file or directory{advice}"));
    assert_says(&["status", "--socket", "@gone"], &format!("no server listens on `@gone`{advice}"));
}

#[test]
fn names_options_that_do_not_go_together() {
    for option in ["context", "container"] {
        let expected = format!(
            "`--{option}` and `--socket` exclude each other: a socket is that of one server, and `--{option}` asks all \
             replicas"
        );
        assert_says(&["status", &format!("--{option}=one"), "--socket", "@gone"], &expected);
    }
    let words = ["explain", "a.test", "--conf", "Corefile", "--socket", "@gone"];
    let ran: Ran = Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().unwrap().into();
    let expected = "error: the argument '--conf <FILE>' cannot be used with '--socket <SOCKET>'";
    assert!(ran.code == 2 && ran.stderr.starts_with(expected), "{}", ran.stderr);
}

#[test]
fn says_how_to_name_a_service() {
    for option in ["--all", "--replicas"] {
        let expected = format!(
            "error: unexpected argument `kube-system/kube-dns`; to name a Service, write \
             `{option}=kube-system/kube-dns`"
        );
        assert_says(&["status", option, "kube-system/kube-dns"], &expected);
    }
}

#[test]
fn says_what_a_question_to_explain_consists_of() {
    let folder = Folder::new("mistakes-explain");
    let mut server = Server::start(&folder.write("Corefile", ".:0 {\n bind 127.0.0.1\n whoami\n}\n"));
    let ControlSocket(socket) = ControlSocket::of(&mut server);
    let conf = folder.path().join("Corefile").display().to_string();
    for source in [["--conf", &conf], ["--socket", &socket]] {
        let explain = |words: &[&str], expected: &str| assert_says(&[&["explain"], words, &source].concat(), expected);
        explain(
            &["aaaa", "a.test"],
            "`a.test` is not a record type; the name comes first: `portolan explain a.test aaaa`",
        );
        explain(&["a.test", "AAAAA"], "`AAAAA` is not a record type; expected one such as AAAA");
        explain(
            &["a.test", "--from", "shop/web/1"],
            "`shop/web/1` is not a client; expected NAMESPACE/POD or an IP address",
        );
    }
    let gone = folder.path().join("gone.yaml").display().to_string();
    let words = ["explain", "a.test", "--conf", &conf, "--manifests", &gone];
    assert_says(&words, &format!("cannot open {gone}: no such file or directory"));
}

#[test]
fn names_a_kubeconfig_once() {
    let words = ["doctor", "--only", "corefile", "--kubeconfig", "/nonexistent/config"];
    let ran: Ran = Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().unwrap().into();
    let expected = "--kubeconfig: cannot open /nonexistent/config: no such file or directory\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (2, expected));
}

#[test]
fn says_where_the_names_of_plugins_are() {
    let folder = Folder::new("mistakes-plugin");
    let mut server = Server::start(&folder.write("Corefile", ".:0 {\n bind 127.0.0.1\n whoami\n}\n"));
    let socket = ControlSocket::of(&mut server);
    for words in [&["loglevel", "nonsense=debug"][..], &["tail", "--plugin", "nonsense"]] {
        let ran = socket.run(words);
        let expected = "there is no plugin `nonsense`; `portolan --plugins` lists them\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (2, expected));
    }
    let ran = socket.run(&["loglevel", "=debug"]);
    assert!(ran.code == 2 && ran.stderr.contains("expected PLUGIN=LEVEL"), "{}", ran.stderr);
}
