//! Trace spans, received by a local collector.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use crate::support::{Client, Folder, PATIENCE, Server};
use wire::Type;

/// Receives POST requests, and returns a channel with their paths and bodies.
fn collect(listener: TcpListener) -> Receiver<(String, String)> {
    let (sender, posts) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut text = String::new();
            let (head, body) = loop {
                let mut buffer = [0; 4096];
                let length = stream.read(&mut buffer).expect("a request");
                text.push_str(core::str::from_utf8(&buffer[..length]).expect("text"));
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
                if body.len() == length.parse::<usize>().expect("a number") {
                    break (head, body);
                }
            };
            let path = head.split(' ').nth(1).expect("a path").to_owned();
            stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").expect("room");
            let _ = sender.send((path, body.to_owned()));
        }
    });
    posts
}

#[test]
fn sends_spans_to_a_collector() {
    for (form, path, name) in [
        ("zipkin", "/api/v2/spans", "\"name\":\"servedns\",\"kind\":\"SERVER\""),
        ("otlp", "/v1/traces", "\"name\":\"servedns\",\"kind\":2"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let posts = collect(listener);
        let folder = Folder::new("trace");
        let corefile = format!(".:0 {{\nbind 127.0.0.1\ntrace {form} {address}\nwhoami\n}}\n");
        let mut server = Server::start(&folder.write("Corefile", &corefile));
        let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
        client.ask("www.example.org.", Type::A).expect("an answer");
        let (posted_to, body) = posts.recv_timeout(PATIENCE).expect("spans");
        assert_eq!(posted_to, path);
        assert!(body.contains(name) && body.contains("\"name\":\"whoami\""), "{body}");

        // Shutdown sends the remaining spans.
        client.ask("last.example.org.", Type::A).expect("an answer");
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
        let (_, body) = posts.recv_timeout(PATIENCE).expect("the rest");
        assert!(body.contains("last.example.org."), "{body}");
    }
}
