//! Status page of the whole server: over both listeners, and in a browser if there is one.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use crate::support::browser::Browser;
use crate::support::control::{ControlSocket, response};
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, PATIENCE, Server, wait_until};
use wire::Type;

/// Screens: a phone, two tablets, a laptop and a large one.
const SCREENS: [(u32, u32); 5] = [(360, 800), (768, 1024), (800, 1280), (1280, 900), (1600, 1000)];
/// Folder for pictures of the page, if somebody wants to see them.
const PICTURES: &str = "PORTOLAN_PICTURES";

/// Server with a page, which has answered and failed.
struct Paged {
    server: Server,
    socket: ControlSocket,
    client: Client,
    address: SocketAddr,
    _upstream: Upstream,
    _folder: Folder,
}

impl Paged {
    fn start() -> Paged {
        let upstream = Upstream::start(7);
        let folder = Folder::new("page");
        let corefile = format!(
            ".:0 {{\n    bind 127.0.0.1\n    control 127.0.0.1:0 {{\n read-only\n }}\n    prometheus localhost:0\n    \
             template IN A down.test. {{\n rcode SERVFAIL\n }}\n    cache 300\n    forward . {}\n}}\n",
            upstream.address
        );
        let mut server = Server::start(&folder.write("Corefile", &corefile));
        let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
        let listening = [server.wait_for(" for control"), server.wait_for(" for control")];
        let name = |line: &str| line.split("listening on ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let tcp = listening.iter().map(|line| name(line)).find(|name| name.parse::<SocketAddr>().is_ok());
        let unix = listening.iter().map(|line| name(line)).find(|name| name.parse::<SocketAddr>().is_err());
        for name in ["a.test.", "a.test.", "b.test.", "down.test.", "<script>alert\\(1\\)</script>.down.test."] {
            assert!(client.ask(name, Type::A).is_some(), "{name}");
        }
        let socket = ControlSocket(unix.unwrap());
        Paged { server, socket, client, address: tcp.unwrap().parse().unwrap(), _upstream: upstream, _folder: folder }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

#[test]
fn both_listeners_have_the_page() {
    let paged = Paged::start();
    let (status, page) = paged.socket.request("GET", "/", "");
    assert_eq!(status, 200, "{page}");
    for text in ["✓ serving", "a.test.", "&lt;script&gt;alert", "SERVFAIL", "template failed", "forward . "] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let over_tcp = |head: &str| {
        let stream = TcpStream::connect(paged.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        (&stream).write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
        response(stream)
    };
    let (status, page) = over_tcp("GET /?name=a.test.&type=&from= HTTP/1.1\r\nHost: localhost\r\n");
    assert!(status == 200 && page.contains("<dt>Why</dt>") && page.contains("value=\"a.test.\""), "{page}");
    let (status, page) = over_tcp("GET /?name=a..b HTTP/1.1\r\nHost: localhost\r\n");
    assert!(status == 200 && page.contains("`a..b` is not a domain name"), "{page}");
    assert_eq!(over_tcp("GET /?other=1 HTTP/1.1\r\nHost: localhost\r\n").0, 400);
    assert_eq!(over_tcp("GET / HTTP/1.1\r\nHost: evil.example\r\n").0, 421);
    assert_eq!(over_tcp("GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n").0, 403);
    assert_eq!(over_tcp("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n").0, 405);
    let (status, nothing) = over_tcp("HEAD / HTTP/1.1\r\nHost: localhost\r\n");
    assert_eq!((status, nothing.as_str()), (200, ""));
}

#[test]
fn a_browser_shows_it_on_every_screen() {
    let Some(mut browser) = Browser::start("a_browser_shows_it_on_every_screen") else { return };
    let paged = Paged::start();
    for (screen, scheme) in SCREENS.into_iter().flat_map(|screen| ["light", "dark"].map(|scheme| (screen, scheme))) {
        browser.show(screen, scheme);
        browser.open_page(&paged.url("/?name=a.test."));
        let width = browser.run("document.documentElement.scrollWidth");
        assert_eq!(width, screen.0, "{screen:?}: the page is wider than the screen");
        // The style applies: its hash is in the policy.
        let background = browser.run("getComputedStyle(document.body).backgroundColor");
        assert_eq!(background, if scheme == "dark" { "rgb(17, 21, 26)" } else { "rgb(255, 255, 255)" });
        let small = "[...document.querySelectorAll('main *')]\
            .filter(one => parseFloat(getComputedStyle(one).fontSize) < 13).length";
        assert_eq!(browser.run(small), 0, "{screen:?}: texts are too small");
        let cut = "[...document.querySelectorAll('caption, [aria-labelledby=failures] tbody *')].filter(one => { \
            const text = document.createRange(); text.selectNodeContents(one); \
            return text.getBoundingClientRect().right > innerWidth; }).length";
        assert_eq!(browser.run(cut), 0, "{screen:?}: captions or failures are cut off");
        let lonely = "(() => { const lines = {}; document.querySelectorAll('.figures > *').forEach(one => { \
            const top = one.getBoundingClientRect().top; lines[top] = (lines[top] || 0) + 1; }); \
            return new Set(Object.values(lines)).size; })()";
        assert_eq!(browser.run(lonely), 1, "{screen:?}: a line of figures is shorter than the others");
        keep_picture(&mut browser, &format!("{}-{scheme}.png", screen.0));
    }
    assert!(browser.console().is_empty(), "{:?}", browser.console());
}

/// Writes a picture of the page if `PORTOLAN_PICTURES` names a folder.
fn keep_picture(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os(PICTURES) {
        let picture = browser.picture();
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.base64")), picture).unwrap();
    }
}

#[test]
fn a_browser_keeps_the_numbers_current() {
    let Some(mut browser) = Browser::start("a_browser_keeps_the_numbers_current") else { return };
    let mut paged = Paged::start();
    browser.show(SCREENS[3], "light");
    browser.open_page(&paged.url("/"));
    let failures = "document.querySelectorAll('section[aria-labelledby=failures] tbody tr').length";
    assert_eq!(browser.run(failures), 2);
    browser.run("document.getElementById('ask-name').value = 'b.test.'; document.getElementById('ask-name').focus()");
    assert!(paged.client.ask("x.down.test.", Type::A).is_some());
    wait_until("the page shows the failure", || browser.run(failures) == 3);
    // A half-typed question survives the change.
    let field = "document.activeElement.id + ' ' + document.activeElement.value";
    assert_eq!(browser.run(field), "ask-name b.test.");
    browser.follow("document.querySelector('form').requestSubmit()");
    assert_eq!(browser.run("location.search"), "?name=b.test.&type=&from=");
    assert_eq!(browser.run("document.querySelector('dl.why dt').textContent"), "Why");
    assert!(browser.console().is_empty(), "{:?}", browser.console());

    paged.server.signal("KILL");
    let lost = "!document.getElementById('lost').hidden && document.getElementById('lost').textContent";
    wait_until("the page says that the server is away", || {
        browser.run(lost).as_str().is_some_and(|text| text.starts_with("The server does not respond"))
    });
}

#[test]
fn a_browser_without_script_can_ask_for_an_explanation() {
    let Some(mut browser) = Browser::start("a_browser_without_script_can_ask_for_an_explanation") else { return };
    let paged = Paged::start();
    browser.show(SCREENS[0], "light");
    browser.run_scripts(false);
    browser.open_page(&paged.url("/"));
    browser.follow(
        "document.getElementById('ask-name').value = 'down.test.'; document.querySelector('form button').click()",
    );
    let text = browser.run("document.querySelector('section[aria-labelledby=explain]').textContent");
    assert!(text.as_str().unwrap().contains("template"), "{text}");
    assert!(browser.console().is_empty(), "{:?}", browser.console());
}
