use super::*;

/// Byte ranges of a match and its groups as `START..END`. `-` is a group that did not take part; `no` means no match.
fn places(pattern: &str, subject: &str) -> Result<String, RegexpError> {
    let regexp = Regexp::compile(pattern)?;
    let Some(found) = regexp.captures(subject) else { return Ok("no".to_owned()) };
    let place = |at| found.get(at).map_or("-".to_owned(), |part| format!("{}..{}", part.start(), part.end()));
    Ok((0..found.len()).map(place).collect::<Vec<_>>().join(","))
}

/// Expression, subject, and the match that Go finds.
const MATCHES: &[(&str, &str, &str)] = &[
    ("(?)a", "a", "0..1"),
    ("(?:)", "a", "0..0"),
    ("(?i-s)a", "A", "0..1"),
    ("(?ii)a", "A", "0..1"),
    ("^*a", "a", "0..1"),
    ("a(?i)*B", "aab", "0..3"),
    (r"a\Q\E*", "aa", "0..2"),
    (r"a*\Q\E?", "aa", "0..2"),
    (r"\Qa", "a", "0..1"),
    (r"\p{greek}", "\u{3b1}", "0..2"),
    (r"\p{^Greek}", "a", "0..1"),
    (r"\P{^Greek}", "\u{3b1}", "0..2"),
    (r"\p{digit}", "1", "0..1"),
    (r"\p{L}", "1", "no"),
    (r"\pl", "a", "0..1"),
    ("[[:alpha]", "a", "0..1"),
    ("[[:^alpha:]]", "a", "no"),
    (r"[\d-z]", "-", "0..1"),
    (r"[a-\x{7a}]", "z", "0..1"),
    ("[]a]", "]", "0..1"),
    ("[^]a]", "b", "0..1"),
    ("[a&&b]", "&", "0..1"),
    ("[a~~b]", "~", "0..1"),
    ("[[a]", "[", "0..1"),
    ("a{,3}", "a{,3}", "0..5"),
    ("a{03}", "a{03}", "0..5"),
    ("{a", "{a", "0..2"),
    ("a{", "a{", "0..2"),
    ("a{1", "a{1", "0..3"),
    ("a{1,", "a{1,", "0..4"),
    ("a{1,2", "a{1,2", "0..5"),
    ("a{1, 2}", "a{1, 2}", "0..7"),
    ("(a{10}){100}", "a", "no"),
    ("((a{1000}){0}){1000}", "a", "0..0,0..0,-"),
    ("((a{1000}){1}){1}", "a", "no"),
    ("((a{1000})?){1}", "a", "0..0,0..0,-"),
    ("(?P<1>a)", "a", "0..1,0..1"),
    ("(?P<a>b)(?P<a>c)", "bc", "0..2,0..1,1..2"),
    ("(?<a>b)", "b", "0..1,0..1"),
    (r"\12", "\n", "0..1"),
    (r"\123", "S", "0..1"),
    (r"\1234", "S4", "0..2"),
    (r"\0", "\u{0}", "0..1"),
    (r"\08", "\u{0}8", "0..2"),
    (r"\x41", "A", "0..1"),
    (r"\x{41}", "A", "0..1"),
    (r"\x{D800}", "A", "no"),
    (r"[\x{D000}-\x{E000}]", "\u{e000}", "0..3"),
    (r"\_", "_", "0..1"),
    (r"\<", "<", "0..1"),
    (r"\z", "a", "1..1"),
    ("]}", "]}", "0..2"),
    (r"\s", "\u{b}", "no"),
    (r"(?i)\w", "\u{17f}", "0..2"),
    (r"(?i)\W", "\u{17f}", "no"),
    ("(?i)k", "K", "0..1"),
    ("(?U)a+", "aaa", "0..1"),
    ("(?U)a+?", "aaa", "0..3"),
    ("(?s).", "\n", "0..1"),
    ("(?m)^b$", "a\nb\nc", "2..3"),
    ("a$", "a\n", "no"),
    ("a(?i)b|c", "aC", "1..2"),
    ("(a(?i))b", "aB", "no"),
    (r"[^\D]", "a1", "1..2"),
    (r"\ba", "\u{e9}a", "2..3"),
    (r"a\B", "a\u{e9}", "no"),
    (r"a\Bé", "a\u{e9}", "no"),
    ("[[:word:]-]", "-", "0..1"),
    ("[a-z-9]", "-", "0..1"),
    (r"[\d-]", "-", "0..1"),
    (r"[a\]]", "]", "0..1"),
    (r"[\_\-]", "-", "0..1"),
    ("(?i:a)B", "AB", "0..2"),
    ("(?-i:a)", "A", "no"),
    (r"[\12]", "\n", "0..1"),
    (r"\pN", "1", "0..1"),
    (r"[\pN\PL]", "1", "0..1"),
    ("a||b", "b", "0..0"),
    ("(|a)*", "aa", "0..0,0..0"),
    ("(a|b)*?c", "abc", "0..3,1..2"),
    (r"\x{0000041}", "A", "0..1"),
    (r"\x{0000000000041}", "A", "0..1"),
    ("", "A", "0..0"),
    (r"\d{2,}?", "1234", "0..2"),
    ("[[:alpha:][:digit:]_]+", "a1_-", "0..3"),
    ("[:alpha:]+", "al:", "0..3"),
    ("[[=a=]]", "a]", "0..2"),
    ("[[.a.]]", "a]", "0..2"),
];

/// Expressions that Go rejects.
const REFUSED: &[&str] = &[
    "(?i-)a",
    "(?-)a",
    r"\E",
    r"\p{}",
    r"\p^",
    r"\pé",
    "[[:alpha:]",
    "[[:foo:]]",
    r"[a-\d]",
    "[]",
    "[a",
    "[a--b]",
    r"[\b]",
    r"[\Qa]\E]",
    "a{1001}",
    "a{2,1}",
    "a{100000000}",
    "a{99999999999999}",
    "{2}",
    "(a{10}){101}",
    "(a{2,}){501}",
    "a**",
    "a+?*",
    "a{2}{3}",
    "a{2}?{3}",
    "a???",
    "*",
    "(*)",
    "a|*",
    "(?i)*",
    "(?P<a.b>a)",
    "(?P<>a)",
    "(?P=a)",
    "(?'a'b)",
    "(?=a)",
    "(?<=a)",
    "(?#a)",
    "(?x)a",
    r"\1",
    r"\8",
    r"\x4",
    r"\x{}",
    r"\x{110000}",
    r"\é",
    r"\C",
    r"\Z",
    r"\h",
    r"a\",
    "a)",
    "(a",
    "[z-a]",
    "[a-[:digit:]]",
    "(?i-:a)",
    "(?--i:a)",
    "(?i",
    "(?P<a",
    "(?P",
    "(?",
    r"\p{L",
];

#[test]
fn finds_the_matches_that_go_finds() {
    for (pattern, subject, expected) in MATCHES {
        assert_eq!(places(pattern, subject).as_deref(), Ok(*expected), "{pattern} in {subject:?}");
    }
}

#[test]
fn rejects_the_expressions_that_go_rejects() {
    for pattern in REFUSED {
        assert!(Regexp::compile(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn names_the_error_in_an_expression() {
    let cases = [
        ("a(b", "missing closing )"),
        ("a[b", "missing closing ]"),
        ("a)", "unexpected )"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("a{2,1}?", "invalid repeat count: `{2,1}`; the maximum is 1000 in total"),
        ("(a{10}){101}", "invalid repeat count: `{101}`; the maximum is 1000 in total"),
        ("a+**", "invalid nested repetition operator: `*`; add parentheses"),
        ("x|*", "missing argument to repetition operator: `*`"),
        ("(?=a)", "`(?=` is not supported: Go's regular expressions have no such group"),
        ("(?<!a)", "`(?<!` is not supported: Go's regular expressions have no such group"),
        ("[z-a]", "invalid character class or range: `z-a`"),
        ("[[:foo:]]", "invalid character class or range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class or range: `\p{Foo}`"),
    ];
    for (pattern, expected) in cases {
        assert_eq!(Regexp::compile(pattern).unwrap_err().to_string(), expected, "{pattern}");
    }
    let deep = |levels| format!("{}a{}", "(".repeat(levels), ")*".repeat(levels));
    assert!(Regexp::compile(&deep(200)).is_ok());
    assert_eq!(Regexp::compile(&deep(201)).unwrap_err(), RegexpError::TooDeep);
    assert_eq!(Regexp::compile(&"a".repeat(10_001)).unwrap_err(), RegexpError::TooLong);
    assert_eq!(Regexp::compile(r"(\pL\pL\pL\pL){250}(\pL\pL\pL\pL){250}").unwrap_err(), RegexpError::TooLarge);
}

#[test]
fn keeps_group_names_and_the_original_text() {
    let regexp = Regexp::compile("(?P<a>x)(y)(?<1>z)(?P<a>)").unwrap();
    let name = |text: &str| Some(text.to_owned());
    assert_eq!(regexp.names(), [None, name("a"), None, name("1"), name("a")]);
    assert_eq!((regexp.groups(), regexp.to_string().as_str()), (4, "(?P<a>x)(y)(?<1>z)(?P<a>)"));
}

/// About 10 KiB of memory.
const SMALL: &str = r"^([a-z]+)-(\d+)\.example\.$";
/// More than half of the smallest budget.
const LARGE: &str = r"\pL{1,50}";

#[test]
fn all_expressions_share_one_budget() {
    let budget = Budget::begin(Some(0));
    assert!(Regexp::compile(LARGE).is_ok(), "one fits");
    let error = Regexp::compile(LARGE).unwrap_err();
    assert!(matches!(error, RegexpError::OverBudget { total: BUDGET_MIN, used: 1.., .. }), "{error:?}");
    assert!(error.to_string().contains("may use 4096 KiB"), "{error}");
    assert!(Regexp::compile(SMALL).is_ok(), "small expressions still fit");
    drop(budget);
    assert!(Regexp::compile(LARGE).is_ok(), "the budget has ended");
}

#[test]
fn the_budget_depends_on_the_memory_limit() {
    for (limit, total) in
        [(None, BUDGET_MAX), (Some(u64::MAX), BUDGET_MAX), (Some(170 << 20), (170 << 20) / 8), (Some(1), BUDGET_MIN)]
    {
        let _budget = Budget::begin(limit);
        let error = Regexp::compile(r"(\pL\pL\pL\pL){250}(\pL\pL\pL\pL){250}").unwrap_err();
        assert!(matches!(error, RegexpError::OverBudget { total: found, used: 0, .. } if found == total), "{error:?}");
    }
}

#[test]
fn thousands_of_ordinary_expressions_fit() {
    let _budget = Budget::begin(None);
    assert!((0..2_000).all(|_| Regexp::compile(SMALL).is_ok()));
}
