//! dnstap messages, read by a collector in this file and by the tools that Debian has. If a tool is not installed, the
//! tests print a message and skip it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::{Client, Folder, Server, wait_until};
use testkit::FrameReader;
use wire::Type;

/// Collector with the messages that it has received.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<FrameReader>>);

impl Collector {
    /// Reads a stream on a new thread.
    fn read(&self, mut stream: impl Read + Write + Send + 'static) {
        let reader = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                let answer = reader.lock().unwrap().take(&buffer[..length]);
                stream.write_all(&answer).expect("room");
            }
        });
    }

    /// Returns the first words of the received messages.
    fn seen(&self) -> Vec<String> {
        let lines = &self.0.lock().unwrap().lines;
        lines.iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
    }
}

/// Returns a Corefile with these lines before the plugin that answers.
fn corefile(lines: &str) -> String {
    format!(".:0 {{\nbind 127.0.0.1\n{lines}\nwhoami\n}}\n")
}

#[test]
fn sends_all_messages_to_each_kind_of_collector() {
    let folder = Folder::new("dnstap");
    let path = folder.path().join("collector.sock");
    let (unix, tcp) = (UnixListener::bind(&path).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let here = folder.path().join("here.sock");
    let collectors = [Collector::default(), Collector::default(), Collector::default()];
    let lines = format!(
        "dnstap {} full\ndnstap tcp://{}\ndnstap listen {} full",
        path.display(),
        tcp.local_addr().unwrap(),
        here.display()
    );
    let mut server = Server::start(&folder.write("Corefile", &corefile(&lines)));
    collectors[0].read(unix.accept().unwrap().0);
    collectors[1].read(tcp.accept().unwrap().0);
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    wait_until("the server listens for collectors", || {
        UnixStream::connect(&here).map(|stream| collectors[2].read(stream)).is_ok()
    });
    wait_until("all streams are started", || collectors.iter().all(|collector| collector.seen() == ["READY", "START"]));

    client.ask("www.example.org.", Type::A).expect("an answer");
    let all = ["READY", "START", "CQ udp", "CR udp"];
    wait_until("messages arrive", || collectors.iter().all(|collector| collector.seen() == all));
    // Shutdown sends the remaining messages and ends the stream.
    client.ask("www.example.org.", Type::A).expect("an answer");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let all = ["READY", "START", "CQ udp", "CR udp", "CQ udp", "CR udp", "STOP"];
    wait_until("the remaining messages arrive", || collectors.iter().all(|collector| collector.seen() == all));
    assert!(!here.exists());
}

/// Each silent connection is closed after five seconds. One after the other, they would take longer than
/// [`wait_until`] waits.
#[test]
fn a_silent_collector_does_not_delay_others() {
    let folder = Folder::new("dnstap-silent");
    let here = folder.path().join("here.sock");
    let server = Server::start(&folder.write("Corefile", &corefile(&format!("dnstap listen {}", here.display()))));
    let mut silent = Vec::new();
    wait_until("the server listens for collectors", || UnixStream::connect(&here).map(|one| silent.push(one)).is_ok());
    silent.extend((0..7).map(|_| UnixStream::connect(&here).unwrap()));
    let collector = Collector::default();
    collector.read(UnixStream::connect(&here).unwrap());
    wait_until("the collector is greeted", || collector.seen() == ["READY", "START"]);
    drop(server);
}

#[test]
fn third_party_tools_read_the_messages() {
    let folder = Folder::new("fstrm");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let capture = Command::new("fstrm_capture")
        .args(["-t", "protobuf:dnstap.Dnstap", "-u", &path("socket"), "-w", &path("frames")])
        .stderr(Stdio::null())
        .spawn();
    let mut capture = match capture {
        Ok(capture) => capture,
        Err(error) => return crate::support::skip(format_args!("a test of dnstap needs fstrm_capture: {error}")),
    };
    wait_until("fstrm_capture listens", || folder.path().join("socket").exists());
    let lines = format!("dnstap {} full {{\nidentity dns-1\nextra \"{{name}} {{rcode}}\"\n}}", path("socket"));
    let mut server = Server::start(&folder.write("Corefile", &corefile(&lines)));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    for _ in 0..3 {
        client.ask("Www.Example.org.", Type::AAAA).expect("an answer");
    }
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let stopped = Command::new("kill").args(["-TERM", &capture.id().to_string()]).status();
    assert!(stopped.is_ok_and(|status| status.success()) && capture.wait().is_ok_and(|status| status.success()));

    let read = Command::new("dnstap-ldns").args(["-y", "-r", &path("frames")]).output();
    let text = match read {
        Ok(output) => String::from_utf8(output.stdout).expect("text"),
        Err(error) => return crate::support::skip(format_args!("a test of dnstap needs dnstap-ldns: {error}")),
    };
    let count = |part: &str| text.matches(part).count();
    assert_eq!((count("type: CLIENT_QUERY"), count("type: CLIENT_RESPONSE")), (3, 3), "{text}");
    assert_eq!((count("identity: \"dns-1\""), count("socket_protocol: UDP")), (6, 6), "{text}");
    assert_eq!((count("query_address: \"127.0.0.1\""), count("response_address: \"127.0.0.1\"")), (6, 6), "{text}");
    assert_eq!((count("rcode: NOERROR"), count("Www.Example.org.")), (6, 12), "{text}");
    // This tool does not show the extra field.
    let frames = std::fs::read(path("frames")).expect("its file");
    let extra = b"www.example.org. NOERROR";
    assert_eq!(frames.windows(extra.len()).filter(|window| window == extra).count(), 3);
}
