//! The static binary in an empty root: nothing but the binary, its keeper, a Corefile and certificate authorities.
//!
//! `cargo xtask binary` builds it, and the environment variable `PORTOLAN_STATIC` names it. Without it, or where a user
//! namespace may not be made, the test prints a message and is skipped.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, Server, certify, page};
use wire::{Rcode, Type};

/// Returns a command that runs a program with `folder` as its root, as user and group 0 of a user namespace.
fn in_root(folder: &Folder) -> Command {
    let mut command = Command::new("unshare");
    command.arg("--map-root-user").arg("--root").arg(folder.path()).args(["--wd", "/", "/portolan-keeper"]);
    command
}

/// Copies the static binary into a folder that becomes the root. Says why if that is not possible.
fn prepare(folder: &Folder) -> Result<(), String> {
    let binary =
        std::env::var_os("PORTOLAN_STATIC").ok_or("set PORTOLAN_STATIC to what `cargo xtask binary` prints")?;
    let server = Path::new(&binary);
    for program in [server, &server.with_file_name("portolan-keeper")] {
        let name = if program == server { "portolan" } else { "portolan-keeper" };
        std::fs::copy(program, folder.path().join(name)).expect("the binary");
    }
    let version = in_root(folder).arg("--version").output().map_err(|error| format!("unshare: {error}"))?;
    let (text, errors) = (String::from_utf8_lossy(&version.stdout), String::from_utf8_lossy(&version.stderr));
    if errors.starts_with("unshare: unshare failed") {
        return Err(errors.into_owned());
    }
    assert!(text.starts_with("Portolan-"), "{text}{errors}");
    Ok(())
}

#[test]
fn static_binary_serves_from_an_empty_root() {
    let folder = Folder::new("empty-root");
    if let Err(reason) = prepare(&folder) {
        crate::support::skip(format_args!("the static binary in an empty root: {}", reason.trim()));
        return;
    }
    let outside = Folder::new("empty-root-upstream");
    certify(&outside, &["127.0.0.1"]);
    let path = |name: &str| outside.path().join(name).display().to_string();
    let text = format!(
        "tls://.:0 {{\nbind 127.0.0.1\ntls {} {}\nhosts /dev/null {{\n192.0.2.1 www.tls.test\n}}\n}}\n",
        path("cert.pem"),
        path("key.pem")
    );
    let mut encrypted = Server::start(&outside.write("Corefile", &text));
    let encrypted_at = encrypted.address_of("tls://127.0.0.1:0");
    let authority = std::fs::read_to_string(outside.path().join("ca.pem")).unwrap();
    folder.write("etc/ssl/certs/ca-certificates.crt", &authority);

    let plain = Upstream::start(7);
    let port = plain.address.port();
    folder.write(
        "Corefile",
        &format!(
            ".:0 {{\nbind 127.0.0.1\nerrors\nhealth localhost:0\nforward tls.test tls://{encrypted_at}\n\
             forward . localhost:{port}\n}}\n"
        ),
    );
    let mut command = in_root(&folder);
    command.args(["-conf", "/Corefile"]).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut server = Server::start_command(command);
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    // The upstream is named, and its name is found without any file of the system.
    let answer = client.ask("www.example.org.", Type::A).expect("an answer");
    assert_eq!(answer.addresses(), [IpAddr::from(plain.own)]);
    // The certificate of this one is verified with the authorities in the root.
    let answer = client.ask("www.tls.test.", Type::A).expect("an answer");
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, None), "{:?}", server.lines());
    assert_eq!(page(server.address_of("localhost:0"), "/health").expect("a page").0, 200);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}
