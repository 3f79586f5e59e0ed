//! Tests of the page on seeded content: its document, its size, hostile texts, accessibility.

mod contrast;
mod elements;
mod seed;

use control::explain::{Client, Explained, Question as Asked, Search, Step, Why};
use hyper::StatusCode;

use super::super::super::refusal::Refusal;
use super::policy::POLICY;
use super::{Content, PAGE_MAX, Question, SCRIPT, STYLE, document};
use elements::{Element, elements, outline};

/// Maximum number of lines of the script.
const SCRIPT_LINES_MAX: usize = 40;
/// Golden document. `UPDATE_GOLDEN=1 cargo test -p portolan-inspect --lib page` writes it.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/endpoints/page/tests/golden.txt");

#[test]
#[allow(clippy::disallowed_methods, reason = "golden file")]
fn has_the_golden_document() {
    let found = outline(&document(&seed::busy()));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &found).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("a golden file");
    assert!(found == golden, "the page differs from {GOLDEN}; UPDATE_GOLDEN=1 writes it:\n{found}");
}

#[test]
fn is_small_with_everything_on_it() {
    let full = document(&seed::full());
    assert!(full.len() <= PAGE_MAX, "{} bytes", full.len());
    assert!(!full.contains("Left out") && full.len() > PAGE_MAX / 2, "{} bytes", full.len());
    assert!(SCRIPT.lines().count() <= SCRIPT_LINES_MAX);
}

#[test]
fn leaves_out_what_has_no_room() {
    let flooded = document(&seed::hostile(100));
    assert!(flooded.len() <= PAGE_MAX && flooded.contains("Left out"), "{} bytes", flooded.len());
    let sections = |page: &str| {
        let all = elements(page);
        let sections = all.iter().filter(|element| element.name == "section");
        sections.filter_map(|section| section.attribute("aria-labelledby").map(str::to_owned)).collect::<Vec<_>>()
    };
    // The script finds each section again by its name.
    let mut names = [sections(&flooded), sections(&document(&seed::busy()))];
    names.iter_mut().for_each(|names| names.sort());
    assert_eq!(names[0], names[1]);
}

#[test]
fn shows_hostile_texts_as_texts() {
    let page = document(&seed::hostile(2));
    let all = elements(&page);
    let of = |name: &str| all.iter().filter(|element| element.name == name).count();
    assert_eq!((of("script"), of("style"), of("img")), (1, 1, 0));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "the texts are on the page");
    assert!(!page.contains(['\u{202e}', '\u{2066}', '\u{1b}']), "they cannot change the direction of writing");
    assert!(page.contains("\\u{202e}"));
    let links = all.iter().filter_map(|element| element.attribute("href"));
    assert!(links.clone().count() > 5, "{}", outline(&page));
    for link in links {
        assert!(link.starts_with('/') && !link.starts_with("//") || link == "data:,", "{link}");
        assert!(link.chars().all(|c| c.is_ascii_graphic() && !"\"<>".contains(c)), "{link}");
    }
    assert!(all.iter().all(|element| element.attributes.iter().all(|(name, _)| !name.starts_with("on"))));
}

#[test]
fn loads_and_runs_nothing_but_its_own_style_and_script() {
    let page = document(&seed::busy());
    let all = elements(&page);
    assert!(all.iter().all(|element| element.attribute("src").is_none() && element.attribute("style").is_none()));
    // The hash is that of the text between the tags, so escaping would break it.
    assert!(page.contains(&format!("<style>{STYLE}</style>")) && page.contains(&format!("<script>{SCRIPT}</script>")));
    assert!(!STYLE.contains("</") && !STYLE.contains("url(") && !STYLE.contains("@import") && !SCRIPT.contains("</"));
    let sources: Vec<&str> = POLICY.split("; ").collect();
    assert_eq!(sources.len(), 8, "{sources:?}");
    assert_eq!(sources[0], "default-src 'none'");
    for (at, name) in [(1, "style-src 'sha256-"), (2, "script-src 'sha256-")] {
        let hash = sources[at].strip_prefix(name).and_then(|rest| rest.strip_suffix('\'')).expect(name);
        assert_eq!(hash.len(), 44, "{hash}");
    }
    assert_eq!(
        sources[3..].join("; "),
        "connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
}

#[test]
fn can_be_used_without_seeing_it() {
    for content in [seed::busy(), seed::quiet(), seed::hostile(2)] {
        let page = document(&content);
        let all = elements(&page);
        let named = |name: &'static str| all.iter().filter(move |element| element.name == name);
        for landmark in ["h1", "header", "main", "footer", "title"] {
            assert_eq!(named(landmark).count(), 1, "{landmark}");
        }
        assert_eq!(named("html").next().and_then(|html| html.attribute("lang")), Some("en"));
        let tables = named("table").count();
        assert_eq!(named("caption").count(), tables, "every table has a caption");
        for heading in named("th") {
            assert!(matches!(heading.attribute("scope"), Some("col" | "row")), "{heading:?}");
        }
        let ids: Vec<&str> = all.iter().filter_map(|element| element.attribute("id")).collect();
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[..at].contains(id), "{id} occurs twice");
        }
        for element in &all {
            for reference in ["aria-labelledby", "for"] {
                assert!(element.attribute(reference).is_none_or(|id| ids.contains(&id)), "{element:?}");
            }
        }
        for input in named("input") {
            let id = input.attribute("id").expect("an id");
            assert_eq!(named("label").filter(|label| label.attribute("for") == Some(id)).count(), 1, "{id}");
        }
        for picture in named("svg") {
            let is_hidden = picture.attribute("aria-hidden") == Some("true");
            let is_named = picture.attribute("role") == Some("img") && picture.attribute("aria-label").is_some();
            assert!(is_hidden != is_named, "{picture:?}");
        }
        check_headings(&all);
    }
}

/// Checks that no level of headings is left out.
fn check_headings(all: &[Element<'_>]) {
    let mut last = 0;
    for element in all {
        let Some(level) = element.name.strip_prefix('h').and_then(|level| level.parse::<u8>().ok()) else { continue };
        assert!(level <= last + 1, "h{level} after h{last}");
        last = level;
    }
}

#[test]
fn says_what_is_wrong_before_everything_else() {
    let page = document(&seed::busy());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("<title>✗ 2 problems") < at("<h1>"));
    assert!(at("PD-U02") < at("class=\"figures\"") && at("class=\"figures\"") < at("class=\"flow\""));
    let quiet = document(&seed::quiet());
    assert!(quiet.contains("<section class=\"problems\" hidden") && quiet.contains("✓ serving"));
    for text in ["No query has failed", "no server block has <code>prometheus</code>", "No queries in the last"] {
        assert!(quiet.contains(text), "{text}");
    }
}

#[test]
fn shows_the_answer_to_a_question_first() {
    let step =
        Step { name: "db.shop.svc.cluster.local.".to_owned(), rcode: Some("NXDOMAIN".to_owned()), ..Step::default() };
    let explained = Explained {
        question: Asked { name: "db".to_owned(), qtype: "A".to_owned() },
        from: Some(Client::default()),
        listener: None,
        asked_from: None,
        search: Some(Search { domains: vec!["shop.svc.cluster.local".to_owned()], ndots: 5, ..Default::default() }),
        steps: vec![step],
        answered: None,
        queries: 2,
        why: Why { code: "PE-K02".to_owned(), text: "no Service db in shop".to_owned() },
        advice: Some("Check the name".to_owned()),
        unjudged: Vec::new(),
        differing: Vec::new(),
    };
    let ask = |answer| Content {
        question: Question {
            name: "db".to_owned(),
            qtype: String::new(),
            from: "shop/web".to_owned(),
            answer: Some(answer),
        },
        ..seed::quiet()
    };
    let page = document(&ask(Ok(explained)));
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("no Service db in shop [PE-K02]") < at("class=\"figures\"") && at("Check the name") > 0);
    assert!(page.contains("value=\"db\"") && page.contains("value=\"shop/web\"") && page.contains("<td>NXDOMAIN</td>"));
    let refused = document(&ask(Err(Refusal::new(StatusCode::BAD_REQUEST, "`a..b` is not a domain name"))));
    assert!(refused.contains("role=\"alert\">✗ `a..b` is not a domain name</p>"));
}

#[test]
fn shows_failures_from_the_cache_once_for_each_question() {
    let cached = |at: u8| {
        let mut event = seed::event("12:44:07", "git.corp.", Some("SERVFAIL"), "cache");
        event.ede = Some(13);
        event.client.address = format!("10.244.1.{}", at % 3);
        event
    };
    let mut failures: Vec<_> = (0..30).map(cached).collect();
    failures.extend((0..3).map(|_| seed::event("12:43:00", "git.corp.", Some("SERVFAIL"), "forward")));
    let page = document(&Content { failures, ..seed::busy() });
    assert_eq!(page.matches("the failure is cached").count(), 1, "{page}");
    assert!(page.contains("the failure is cached (30 times)") && page.contains("3 clients"), "{page}");
    // The upstream failed three times, which can have three reasons.
    assert_eq!(page.matches("12:43:00").count(), 3);
}

#[test]
fn does_not_link_names_that_the_corefile_hides() {
    let hidden = document(&Content { shows_names: false, ..seed::busy() });
    assert!(document(&seed::busy()).contains("?name=git.corp.&amp;type=A&amp;from=10.244.1.17#explain"));
    assert!(!hidden.contains("?name="));
}
