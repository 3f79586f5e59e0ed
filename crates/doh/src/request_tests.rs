use super::*;

const LAX: Policy = Policy { strict: false };
const STRICT: Policy = Policy { strict: true };

fn get(target: &str) -> Result<Accepted, Refusal> {
    accept(&Head { method: b"GET", target: target.as_bytes(), content_type: None }, LAX)
}

fn status(outcome: Result<Accepted, Refusal>) -> u16 {
    outcome.map_or_else(|refusal| refusal.status, |_| 200)
}

#[test]
fn serves_one_path_only() {
    for target in
        ["/", "", "*", "/dns-query/", "/dns-queryx", "/Dns-Query", "/resolve?dns=AAAB", "/dns-query/?dns=AAAB"]
    {
        assert_eq!(status(get(target)), 404, "{target}");
        assert!(get(target).unwrap_err().text.ends_with('\n'));
    }
}

#[test]
fn reads_the_message_of_a_get() {
    for target in [
        "/dns-query?dns=AAAB",
        "/dns-query?ct=application/dns-message&dns=AAAB",
        "/dns-query?dns=AAAB&x=1",
        "/dns-query?dns=%41AAB",
        "/dns-query?&dns=AAAB",
        "/dns-query?xdns=AAAA&dns=AAAB",
    ] {
        assert_eq!(get(target), Ok(Accepted::Query(vec![0, 0, 1])), "{target}");
    }
}

#[test]
fn refuses_a_parameter_that_is_missing_repeated_or_not_base64url() {
    for target in [
        "/dns-query",
        "/dns-query?",
        "/dns-query?dns",
        "/dns-query?dns=",
        "/dns-query?name=example.org&type=A",
        "/dns-query?dns=AAAB&dns=AAAB",
        "/dns-query?dns=AAAA=",
        "/dns-query?dns=AAA=",
        "/dns-query?dns=AA%3D%3D",
        "/dns-query?dns=AA+B",
        "/dns-query?dns=AA/B",
        "/dns-query?dns=AA\u{e9}B",
        "/dns-query?dns=AAAA%",
        "/dns-query?dns=AAAA%4",
        "/dns-query?dns=AAAA%zz",
        "/dns-query?dns=AAAAA",
    ] {
        assert_eq!(status(get(target)), 400, "{target}");
    }
}

#[test]
fn refuses_a_parameter_that_is_longer_than_a_message() {
    let long = |length: usize| get(&format!("/dns-query?dns={}", "A".repeat(length)));
    assert!(matches!(long(87_380), Ok(Accepted::Query(message)) if message.len() == BODY_MAX));
    // 65,536 bytes.
    assert_eq!(status(long(PARAMETER_MAX)), 400);
    assert_eq!(status(long(PARAMETER_MAX + 1)), 400);
    assert_eq!(status(long(4 * PARAMETER_MAX)), 400);
}

#[test]
fn uses_the_status_codes_of_coredns_unless_strict() {
    let methods = ["HEAD", "PUT", "OPTIONS", "DELETE", "get", ""];
    for method in methods {
        let head = Head { method: method.as_bytes(), target: b"/dns-query?dns=AAAB", content_type: None };
        assert_eq!(status(accept(&head, LAX)), 400, "{method}");
        let strict = accept(&head, STRICT).unwrap_err();
        assert_eq!((strict.status, strict.allow), (405, Some("GET, POST")), "{method}");
    }
    assert_eq!([LAX, STRICT].map(|policy| Refusal::too_long(policy).status), [400, 413]);
}

#[test]
fn looks_at_the_content_type_of_a_post_only_if_strict() {
    let rows: [(Option<&str>, u16); 5] = [
        (Some("application/dns-message"), 200),
        (Some("Application/DNS-Message; charset=utf-8"), 200),
        (Some("application/dns-json"), 415),
        (Some(""), 415),
        (None, 415),
    ];
    for (content_type, strict) in rows {
        let head = Head { method: b"POST", target: b"/dns-query", content_type: content_type.map(str::as_bytes) };
        assert_eq!(accept(&head, LAX), Ok(Accepted::Body), "{content_type:?}");
        assert_eq!(status(accept(&head, STRICT)), strict, "{content_type:?}");
    }
}

#[test]
fn refuses_messages_that_the_server_would_ignore() {
    assert!(check_message(&[0; 12]).is_ok());
    assert_eq!(check_message(&[0; 11]).unwrap_err().status, 400);
    let mut response = [0; 12];
    response[2] = 0x80;
    assert_eq!(check_message(&response).unwrap_err().status, 400);
}
