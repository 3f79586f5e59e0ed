//! Tests of the screen on a terminal in memory: what it shows as text, and what the keys do.

use control::top::Counts;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

/// Table with three pods.
fn top(by: By) -> Top {
    let counts = |queries: u64, nxdomain, servfail, useful| Counts {
        queries,
        per_second: queries as f64 / 10.0,
        nxdomain,
        servfail,
        useful,
        waste: (useful > 0).then(|| queries as f64 / useful as f64),
        p99_seconds: Some(64e-6),
    };
    let row = |key: &str, clients, counts, name: &str| Row {
        key: key.to_owned(),
        clients,
        counts,
        error: 0,
        top_name: Some(name.to_owned()),
    };
    Top {
        host: "portolan-6c9".to_owned(),
        by,
        window: Window::Medium,
        covered_seconds: 84.0,
        sampled_one_of: 1,
        total: counts(17_000, 9_000, 40, 7_000),
        refused: 0,
        from_cache: 15_000,
        names: 812,
        clients: 40,
        groups_max: 256,
        rows: vec![
            row("shop/web", 12, counts(11_200, 8_300, 0, 1_400), "api.stripe.com."),
            row("logging/fluent-bit", 1, counts(5_700, 700, 0, 5_200), "es.logging.svc.cluster.local."),
            row("10.0.7.4 (node)", 1, counts(100, 0, 40, 0), "git.corp."),
        ],
    }
}

fn screen() -> Screen {
    Screen { latest: Ok(top(By::Pod)), ..Screen::new(By::Pod, Window::Medium, false) }
}

/// Returns the lines of the screen, without blanks at their ends.
fn lines(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw::draw(screen, frame)).expect("a frame");
    let buffer = terminal.backend().buffer();
    let cell = |x, y| buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
    let line = |y| (0..width).map(|x| cell(x, y)).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn press(screen: &mut Screen, keys: &str) -> Vec<Action> {
    let code = |key| match key {
        '\n' => KeyCode::Enter,
        '\x1b' => KeyCode::Esc,
        '\t' => KeyCode::Tab,
        key => KeyCode::Char(key),
    };
    keys.chars().map(|key| screen.key(KeyEvent::new(code(key), KeyModifiers::NONE))).collect()
}

#[test]
fn fits_a_small_terminal() {
    assert_eq!(
        lines(&screen(), 80, 8),
        [
            "portolan-6c9 · 1.7k q/s · p99 ≤ 64 µs · NXDOMAIN 53 % · SERVFAIL 0.24 % · cache",
            "88 % · window 1m (1 m 24 s) · 812 names, 40 clients · by pod",
            "POD                                Q/S      % NXDOMAIN SERVFAIL       P99  WASTE",
            "shop/web (12 pods)                1.1k     66     74 %        0   ≤ 64 µs   8.0×",
            "logging/fluent-bit                 570     34     12 %        0   ≤ 64 µs   1.1×",
            "10.0.7.4 (node)                     10   0.59        0     40 %   ≤ 64 µs      ∞",
            "",
            " q quit  1-8 view  s sort  w window  f filter  p pause  ? help  │ by pod, sorted",
        ]
    );
}

#[test]
fn a_narrow_terminal_has_the_groups_and_fewer_numbers() {
    let lines = lines(&screen(), 40, 7);
    assert_eq!(
        lines[2..5],
        [
            "POD                           Q/S      %",
            "shop/web (12 pods)           1.1k     66",
            "logging/fluent-bit            570     34"
        ]
    );
}

#[test]
fn a_wide_terminal_has_names_too() {
    let lines = lines(&screen(), 120, 7);
    assert!(lines[2].ends_with("WASTE TOP NAME"), "{lines:#?}");
    assert!(
        lines[4].contains("logging/fluent-bit") && lines[4].ends_with("es.logging.svc.cluster.local."),
        "{lines:#?}"
    );
    assert!(lines[0].contains("window 1m (1 m 24 s) · 812 names,"), "{lines:#?}");
}

#[test]
fn keys_change_the_view() {
    let mut screen = screen();
    assert_eq!(press(&mut screen, "3"), [Action::Fetch]);
    assert_eq!((screen.by, screen.window), (By::Name, Window::Medium));
    assert_eq!(press(&mut screen, "\tw"), [Action::Fetch, Action::Fetch]);
    assert_eq!((screen.by, screen.window), (By::Zone, Window::Long));
    press(&mut screen, "w8\t");
    assert_eq!((screen.by, screen.window), (By::Pod, Window::Short));
    assert_eq!(press(&mut screen, "xq"), [Action::Nothing, Action::Quit]);
}

#[test]
fn sorts_and_filters_the_rows() {
    let mut screen = screen();
    let keys = |screen: &Screen| screen.rows(&top(By::Pod)).iter().map(|row| row.key.clone()).collect::<Vec<_>>();
    press(&mut screen, "ss");
    assert_eq!(keys(&screen)[0], "10.0.7.4 (node)");
    press(&mut screen, "s");
    assert_eq!(keys(&screen)[0], "shop/web");
    press(&mut screen, "fsvc");
    assert_eq!(
        (keys(&screen), lines(&screen, 80, 4)[3].as_str()),
        (vec!["logging/fluent-bit".to_owned()], " filter: svc_")
    );
    press(&mut screen, "\n");
    assert!(lines(&screen, 140, 4)[3].ends_with("by pod, sorted by waste, with `svc`"));
    press(&mut screen, "\x1b");
    assert_eq!(keys(&screen).len(), 3);
}

#[test]
fn shows_help_and_pauses() {
    let mut screen = screen();
    press(&mut screen, "?");
    let shown = lines(&screen, 80, 24);
    assert!(shown.iter().any(|line| line.contains("┌ keys ")), "{shown:#?}");
    assert!(shown.iter().any(|line| line.contains("w  window: 10 s, 1 minute, 10 minutes")), "{shown:#?}");
    assert_eq!(press(&mut screen, "q"), [Action::Nothing]);
    assert!(!lines(&screen, 80, 24).iter().any(|line| line.contains("keys")));
    press(&mut screen, "p");
    assert!(lines(&screen, 140, 4)[3].ends_with("PAUSED"));
}

#[test]
fn shows_why_the_server_does_not_respond() {
    let mut screen = screen();
    screen.latest = Err(Missing("the connection to the server broke\u{1b}[2J".to_owned()));
    assert_eq!(lines(&screen, 80, 4)[1], "the connection to the server broke\\u{1b}[2J");
}
