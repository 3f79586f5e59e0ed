use super::*;
use engine::{Labels, Zones};
use wire::{Name, Type};

fn query() -> Query {
    let mut query = Query::default();
    query.qclass = wire::Class::IN;
    query.qtype = Type::AAAA;
    query.set_name(Name::from_text("Www.Example.").unwrap().as_ref());
    query.path.peer = "[::ffff:10.1.2.3]:5353".parse().unwrap();
    query.path.local = "192.0.2.1:53".parse().unwrap();
    query.udp_size = 1232;
    query
}

fn run(text: &str) -> Result<Option<Value>, String> {
    let labels = Labels::default();
    labels.publish("a/b", |_| Some("label".to_owned()));
    labels.switch_on(Zones::all());
    let scope = Scope { variables: &[("x", Sort::Any), ("n", Sort::Integer)], has_groups: true };
    let mut expression = Expression::read(text, scope).map_err(|(at, fault)| format!("{at}: {fault}"))?;
    expression.bind(&labels);
    let values = Values { variable: &|_| Value::Integer(7), group: &|at| format!("<{at}>") };
    Ok(expression.value(&query(), values))
}

#[test]
fn evaluates_expressions() {
    let cases = [
        ("true", "true"),
        ("1 + 2 * 3 - 4", "3"),
        ("(1 + 2) * 3", "9"),
        ("2 ** 3 ** 2", "512"),
        ("7 / 2", "3.5"),
        ("7 % 4", "3"),
        ("-x + 1", "-6"),
        ("0x1F + 1_000", "1031"),
        ("1.5 < 2 && 2 <= 2 and not false", "true"),
        ("1 == 1.0", "true"),
        ("'a' + \"b\" + `c`", "abc"),
        ("'it\\'s\\n' == `it's\n`", "true"),
        ("name()", "www.example."),
        ("type() + class() + proto()", "AAAAINudp"),
        ("client_ip() + ' ' + port() + ' ' + server_ip() + ' ' + server_port()", "10.1.2.3 5353 192.0.2.1 53"),
        ("bufsize() > 1000 && size() == 0 && id() == 0 && opcode() == 0 && !do()", "true"),
        ("type() in ['A', 'AAAA']", "true"),
        ("type() not in ['A', 'AAAA']", "false"),
        ("2 in 1..3 || 5 in []", "true"),
        ("name() matches '^w+[.]ex'", "true"),
        ("name() not matches 'x$' && name() contains 'exam'", "true"),
        ("name() startsWith 'www.' and name() endsWith '.'", "true"),
        ("incidr(client_ip(), '10.0.0.0/8') && !incidr(client_ip(), '192.0.2.0/24')", "true"),
        ("incidr('2001:db8::1', '2001:db8::/32')", "true"),
        ("incidr(client_ip(), '10.0' + '.0.0/8')", "true"),
        ("metadata('a/b') == 'label' && metadata('no/body') == ''", "true"),
        ("len(name()) > 5 ? upper('yes') : 'no'", "YES"),
        ("split(name(), '.')[0]", "www"),
        ("split(name(), '.')[-1] == ''", "true"),
        ("name()[0:3] + name()[:1] + name()[9:] + name()[4]", "wwwwle.e"),
        ("[1, 2, 3][1:]", "[2 3]"),
        ("name() | upper() | len()", "12"),
        ("trimPrefix(name(), 'www.') + trimSuffix('a.', '.') + trim(' b ')", "example.ab"),
        ("replace('aXbX', 'X', '-') + string(1) + lower('A')", "a-b-1a"),
        ("int('42') + int(1.9) == 43", "true"),
        ("hasPrefix('ab', 'a') && hasSuffix('ab', 'b')", "true"),
        ("nil ?? 'x'", "x"),
        ("nil == nil", "true"),
        ("true ? 1 : false ? 2 : 3", "1"),
        ("group(1) + group('host')", "<1><host>"),
    ];
    for (text, value) in cases {
        assert_eq!(run(text).map(|value| value.map(|value| value.to_string())), Ok(Some(value.to_owned())), "{text}");
    }
}

#[test]
fn an_expression_without_a_value_does_not_hold() {
    for text in [
        "split(name(), '.')[9]",
        "incidr('nowhere', '10.0.0.0/8')",
        "incidr(client_ip(), '10.0.0.0' + '')",
        "9223372036854775807 + 1",
        "1 % 0",
        "5 in 1..1000000",
        "int('x') == 1",
    ] {
        assert_eq!(run(text), Ok(None), "{text}");
        assert!(!Expression::read(text, Scope::default()).unwrap().holds(&query(), Values::NONE));
    }
    assert!(!Expression::read("1", Scope::default()).unwrap().holds(&query(), Values::NONE));
    assert!(Expression::read("true", Scope::default()).unwrap().holds(&query(), Values::NONE));
}

#[test]
fn explains_why_an_expression_is_invalid() {
    let cases = [
        ("", "0: unexpected end of the expression"),
        ("1 +", "3: unexpected end of the expression"),
        ("1 2", "2: unexpected `2`"),
        ("foo()", "0: unknown name foo"),
        ("y", "unknown name y"),
        ("name", "unknown name name"),
        ("name() + x", "!"),
        ("name() == 5", "`==` cannot be applied to string and int"),
        ("port() == 53", "string and int"),
        ("'a' && true", "`&&` cannot be applied to string and bool"),
        ("!'a'", "`not` cannot be applied to string and bool"),
        ("-'a'", "`-` cannot be applied to string"),
        ("1 ? 2 : 3", "`?` cannot be applied to int"),
        ("true ? 1", "unexpected end inside a condition"),
        ("1 in 2", "`in` cannot be applied to"),
        ("'a' matches '('", "not a regular expression"),
        ("'a' matches name()", "not supported"),
        ("incidr(client_ip())", "`incidr` does not take these arguments"),
        ("incidr(1, '')", "does not take"),
        ("metadata(name())", "not supported"),
        ("(1", "unexpected end inside parentheses"),
        ("[1, 2", "unexpected end inside a list"),
        ("'a", "unexpected end inside a string"),
        ("'\\q'", "backslash"),
        ("name()[1", "unexpected end inside brackets"),
        ("1[0]", "cannot be applied to int"),
        ("a # b", "unexpected `#`"),
        ("1 not 2", "unexpected `not`"),
        ("1 | 2", "unexpected `2`"),
        ("12x", "unexpected `12x`"),
        ("n == 'a'", "`==` cannot be applied to int and string"),
        ("n startsWith 'a'", "cannot be applied to int and string"),
        ("group()", "`group` does not take these arguments"),
    ];
    for (text, part) in cases.into_iter().filter(|(_, part)| *part != "!") {
        let problem = run(text).unwrap_err();
        assert!(problem.contains(part), "{text}: {problem}");
    }
    for deep in [format!("{}1{}", "(".repeat(500), ")".repeat(500)), "!".repeat(500), "1 ** ".repeat(500)] {
        let problem = run(&deep).unwrap_err();
        assert!(problem.contains("levels"), "{problem}");
    }
    assert!(run(&" ".repeat(5000)).unwrap_err().contains("longer"));
}

#[test]
fn reserves_the_names_of_the_language() {
    for name in ["group", "client_ip", "first", "len", "true", "matches", "let"] {
        assert!(is_reserved(name), "{name}");
    }
    assert!(!is_reserved("host"));
    assert!(Expression::read("group(1)", Scope::default()).is_err());
}

/// Parsing and evaluation terminate without a panic for any text.
#[test]
fn does_not_panic_on_random_input() {
    let parts = [
        "name()",
        "1",
        "'a'",
        "(",
        ")",
        "[",
        "]",
        "?",
        ":",
        ",",
        "..",
        "not ",
        " in ",
        "matches",
        "==",
        "-",
        "!",
        "|",
        "upper()",
        "x",
        "incidr(",
        "**",
        " ",
        "\u{e4}",
        "#",
        "[1:",
        "9223372036854775807",
        "len(",
    ];
    let mut seed = 3u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(parts[(seed >> 33) as usize % parts.len()]);
        }
        let _ = run(&text);
    }
}
