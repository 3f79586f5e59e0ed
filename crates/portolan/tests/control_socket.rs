//! Commands find the socket of the running server, wherever the Corefile puts it. Each test has a network namespace of
//! its own, because abstract sockets of other tests would be found too.

use std::process::Command;

use crate::support::control::{ControlSocket, Ran};
use crate::support::namespace::{enter, is_inside, run};
use crate::support::{Folder, Server, skip};

/// Runs a command without `--socket`.
fn command(words: &[&str]) -> Ran {
    Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().expect("the command runs").into()
}

#[test]
fn finds_a_socket_that_the_corefile_moves() {
    let (test, flags) = ("finds_a_socket_that_the_corefile_moves", ["--net"]);
    if !is_inside() && !run("unshare", &["--net", "ip", "link"]).0 {
        return skip(format_args!("{test}: no network namespaces here"));
    }
    enter(module_path!(), test, &flags, || {
        let missing = command(&["status"]);
        assert!(missing.code == 2 && missing.stderr.starts_with("no running server found"), "{}", missing.stderr);
        let doctor = command(&["doctor"]).stdout;
        assert!(doctor.contains("or name its socket with `--socket`"), "{doctor}");
        let folder = Folder::new("control-moved");
        for path in [folder.path().join("own.sock").display().to_string(), "@own-name".to_owned()] {
            let corefile = format!(".:0 {{\n    bind 127.0.0.1\n    control {path}\n    whoami\n}}\n");
            let mut server = Server::start(&folder.write("Corefile", &corefile));
            assert_eq!(ControlSocket::of(&mut server).0, path);
            for words in [&["status"][..], &["ready"], &["explain", "a.test."], &["top"], &["requests"]] {
                let ran = command(words);
                assert!(ran.code < 2 && !ran.stdout.is_empty(), "{words:?}: {}{}", ran.stdout, ran.stderr);
            }
            let doctor = command(&["doctor"]);
            assert!(!doctor.stdout.contains("name its socket"), "{}", doctor.stdout);
        }
    });
}
