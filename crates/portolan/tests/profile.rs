//! CPU profile of a busy server, read by Go's own tool. If it is not installed, the test prints a message and is
//! skipped.

use std::net::SocketAddr;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Client, Folder, Server, page, wait_until};
use wire::Type;

#[test]
fn go_tool_reads_the_cpu_profile() {
    let folder = Folder::new("pprof");
    let corefile = ".:0 {\nbind 127.0.0.1\npprof 127.0.0.1:0\nwhoami\n}\n";
    let mut server = Server::start(&folder.write("Corefile", corefile));
    let dns = server.address_of("dns://127.0.0.1:0");
    let pages = server.address_of("127.0.0.1:0");
    let (status, words) = page(pages, "/debug/pprof/cmdline").expect("a page");
    assert!(status == 200 && words.contains("\0-conf\0"), "{words}");
    if let Err(error) = Command::new("go").arg("version").output() {
        return crate::support::skip(format_args!("a test of profiles needs go: {error}"));
    }
    // A busy machine leaves the server so little time that a profile may have no sample of the parser.
    wait_until("a profile of the parser", || {
        let read = profile(&folder, dns, pages);
        let text = String::from_utf8_lossy(&read.stdout);
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        assert!(text.contains("Type: cpu") && text.contains("Duration: 2s"), "{text}");
        text.contains("wire::")
    });
}

/// Profiles the server with Go's tool, while a client asks it.
fn profile(folder: &Folder, dns: SocketAddr, pages: SocketAddr) -> Output {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::new(dns);
            while !is_over.load(Ordering::Relaxed) {
                client.ask("www.example.org.", Type::A);
            }
        });
        let read = Command::new("go")
            .args([
                "tool",
                "pprof",
                "-top",
                "-nodecount=1000",
                // Not the lines, which take it half a minute in a debug build.
                "-symbolize=none",
                // Seconds, for a machine that needs long to look up the names of functions.
                "-timeout=60",
                &format!("http://{pages}/debug/pprof/profile?seconds=2"),
            ])
            .env("PPROF_TMPDIR", folder.path())
            .output();
        is_over.store(true, Ordering::Relaxed);
        read.expect("it ran")
    })
}
