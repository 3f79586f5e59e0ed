use super::*;

/// Function of the test environment.
#[derive(Clone, Debug)]
enum Call {
    Name,
    Address,
    Setting(String),
    Group,
    Pair,
}

static FUNCTIONS: [Function<Call>; 5] = [
    Function { name: "name", parameters: Parameters::Values(&[], Call::Name), result: Type::Text },
    Function { name: "address", parameters: Parameters::Values(&[], Call::Address), result: Type::Text },
    Function {
        name: "setting",
        parameters: Parameters::Constant {
            description: "a key",
            bind: |key| Call::Setting(if key == "a/b" { "label" } else { "" }.to_owned()),
        },
        result: Type::Text,
    },
    Function { name: "group", parameters: Parameters::Values(&[Type::Any], Call::Group), result: Type::Text },
    Function {
        name: "pair",
        parameters: Parameters::Values(&[Type::Text, Type::Integer], Call::Pair),
        result: Type::Text,
    },
];

/// Environment in which every variable is 7.
struct Sample;

impl Environment for Sample {
    type Function = Call;

    fn variable(&self, _name: &str) -> Value {
        Value::Integer(7)
    }

    fn call(&self, function: &Call, args: &[Value]) -> Option<Value> {
        Some(match (function, args) {
            (Call::Name, []) => Value::text("www.example."),
            // Not an address: `incidr` has to use `Environment::address`.
            (Call::Address, []) => Value::text("here"),
            (Call::Setting(value), []) => Value::text(value),
            (Call::Group, [at]) => Value::Text(format!("<{at}>")),
            (Call::Pair, [Value::Text(text), Value::Integer(number)]) => Value::Text(format!("{text}{number}")),
            _ => return None,
        })
    }

    fn address(&self, function: &Call) -> Option<core::net::IpAddr> {
        if let Call::Address = function { Some([10, 1, 2, 3].into()) } else { None }
    }
}

fn run(text: &str) -> Result<Option<Value>, String> {
    let functions: Vec<_> = FUNCTIONS.iter().collect();
    let scope = Scope { variables: &[("x", Type::Any), ("n", Type::Integer)], functions: &functions };
    let expression =
        Expression::parse(text, &scope).map_err(|ParseError { offset, error }| format!("{offset}: {error}"))?;
    Ok(expression.evaluate(&Sample))
}

/// Parses an expression without an environment.
fn parse(text: &str) -> Result<Expression<core::convert::Infallible>, ParseError<ExpressionError>> {
    Expression::parse(text, &Scope { variables: &[], functions: &[] })
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
        ("name() in ['a', 'www.example.']", "true"),
        ("name() not in ['a', 'www.example.']", "false"),
        ("2 in 1..3 || 5 in []", "true"),
        ("name() matches '^w+[.]ex'", "true"),
        ("name() not matches 'x$' && name() contains 'exam'", "true"),
        ("name() matches '^' + split(name(), '.')[0]", "true"),
        ("name() not matches upper('www')", "true"),
        ("any(['^x', '[.]$'], name() matches #)", "true"),
        ("count(1..9, 'a' matches '[a]' + '')", "9"),
        ("'a' matches {}.x", "false"),
        ("name() startsWith 'www.' and name() endsWith '.'", "true"),
        ("incidr(address(), '10.0.0.0/8') && !incidr(address(), '192.0.2.0/24')", "true"),
        ("incidr('2001:db8::1', '2001:db8::/32')", "true"),
        ("incidr(address(), '10.0' + '.0.0/8')", "true"),
        ("setting('a/b') == 'label' && setting('no/body') == ''", "true"),
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
        ("pair(name(), 1 + n)", "www.example.8"),
        ("'a' | pair(2)", "a2"),
        ("len('äö') + len([1, 2]) + len('')", "4"),
        ("first([1, 2]) + last([1, 2])", "3"),
        ("first([]) == nil && last([]) == nil && get([1], 5) == nil", "true"),
        ("name() | split('.') | first()", "www"),
        ("join(split(name(), '.'), '-') + join(['a', 'b'])", "www-example-ab"),
        ("split('a.b.c', '.', 2)", "[a b.c]"),
        ("split('abc', '')", "[a b c]"),
        ("split('abc', '', 2)", "[a bc]"),
        ("len(split('', '')) + len(split('', ',')) + len(split('a,b', ',', 0))", "1"),
        ("splitAfter('a.b.c', '.')", "[a. b. c]"),
        ("indexOf('abcb', 'b') * 100 + lastIndexOf('abcb', 'b')", "103"),
        ("indexOf('a', 'x')", "-1"),
        ("repeat('ab', 3) + repeat('x', 0)", "ababab"),
        ("replace('aaaa', 'a', 'b', 2)", "bbaa"),
        ("replace('aa', 'a', 'b', -1)", "bb"),
        ("trim('xxaxx', 'x') + trim('..a.b..', '.x')", "aa.b"),
        ("trimPrefix(' a') + trimSuffix('a ')", "aa"),
        ("max(1, 5, 3) + min(4, 2.5) + max([1, 9], 4)", "16.5"),
        ("abs(-3) + abs(-1.5)", "4.5"),
        ("float('1.5') + float(2)", "3.5"),
        ("floor(1.7) + ceil(1.2) + round(2.5)", "6"),
        ("sum([1, 2, 3]) + mean(1, 2) + median([3, 1, 2])", "9.5"),
        ("sort([3, 1, 2])", "[1 2 3]"),
        ("sort(['b', 'a'], 'desc')", "[b a]"),
        ("concat([1], [2, 3], [])", "[1 2 3]"),
        ("reverse([1, 2]) == [2, 1] && uniq([1, 1, 2]) == [1, 2] && flatten([1, [2, [3]]]) == [1, 2, 3]", "true"),
        ("take([1, 2, 3], 2)", "[1 2]"),
        ("toJSON('a\"<b>') + toJSON(1) + toJSON(nil)", "\"a\\\"\\u003cb\\u003e\"1null"),
        ("toJSON([1, 'a']) == '[\\n  1,\\n  \"a\"\\n]' && toJSON([]) == '[]'", "true"),
        ("toBase64('hello') + toBase64('ab') + toBase64('abc') + toBase64('')", "aGVsbG8=YWI=YWJj"),
        ("fromBase64('aGVsbG8=') + fromBase64('YWI=') + fromBase64('YQ==')", "helloaba"),
        ("type(1) + type('') + type([]) + type(1.5) + type(nil) + type(true)", "intstringarrayfloatnilbool"),
        ("bitand(6, 3) + bitor(1, 2) * 10 + bitxor(3, 1) * 100 + bitshl(1, 3) * 1000 + bitshr(8, 2)", "8234"),
        ("2 ^ 3 ^ 2", "512"),
        ("0b11 + 0o17 + 0XFF", "273"),
        (".5 + 1", "1.5"),
        ("1 + 1 // and a comment", "2"),
        ("/* a\n comment */ 3", "3"),
        ("7 / 2", "3.5"),
        ("false ?: 'x'", "x"),
        ("true ?: false", "true"),
        ("1; 2; 3", "3"),
        ("'a';", "a"),
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
        "incidr(address(), '10.0.0.0' + '')",
        "incidr(name(), '10.0.0.0/8')",
        "pair(split('a', 'b')[1], 1)",
        "9223372036854775807 + 1",
        "1 % 0",
        "5 in 1..1000000",
        "int('x') == 1",
        "repeat('a', 100000)",
        "repeat('a', -1)",
        "join([1])",
        "sort([1, 'a'])",
        "sort([1], 'up')",
        "fromBase64('a')",
        "fromBase64('=aaa')",
        "float('x')",
        "split('a', 'b')[1]; 2",
        "'a' matches '(' + ''",
        "'a' matches repeat('a', 257)",
        "'a' matches '[a-z]{100}' + '{10}'",
        "'a' matches '\\\\pL{50}' + ''",
        "count(1..10, 'a' matches '[a]' + '')",
        "1 matches string(name())",
    ] {
        assert_eq!(run(text).unwrap_or_default(), None, "{text}");
    }
    assert_eq!(parse("split('a', '.')[9]").map(|expression| expression.is_true(&())), Ok(false));
    assert_eq!(parse("1").map(|expression| expression.is_true(&())), Ok(false));
    assert_eq!(parse("true").map(|expression| expression.is_true(&())), Ok(true));
}

#[test]
fn explains_why_an_expression_is_invalid() {
    let cases = [
        ("", "0: unexpected end of the expression"),
        ("1 +", "3: unexpected end of the expression"),
        ("1 2", "2: unexpected `2`"),
        ("foo()", "0: unknown name foo"),
        ("now().Hour() < 8", "0: `now` is a function of expr for times, which expressions do not have here"),
        ("true && now() > date('2026-01-01')", "8: `now` is a function of expr for times"),
        ("duration('1h')", "`duration` is a function of expr"),
        ("'UTC' | timezone()", "`timezone` is a function of expr"),
        ("y", "unknown name y"),
        ("name", "unknown name name"),
        ("name() + x", "!"),
        ("name() == 5", "`==` cannot be applied to string and int"),
        ("address() == 53", "string and int"),
        ("'a' && true", "`&&` cannot be applied to string and bool"),
        ("!'a'", "`not` cannot be applied to string and bool"),
        ("-'a'", "`-` cannot be applied to string"),
        ("1 ? 2 : 3", "`?` cannot be applied to int"),
        ("true ? 1", "unexpected end inside a condition"),
        ("1 in 2", "`in` cannot be applied to"),
        ("'a' matches '('", "not a regular expression"),
        ("incidr(address())", "`incidr` does not take these arguments"),
        ("incidr(1, '')", "does not take"),
        ("setting(name())", "`setting` with a key that is not constant is not supported here"),
        ("setting(1)", "`setting` does not take these arguments"),
        ("(1", "unexpected end inside parentheses"),
        ("[1, 2", "unexpected end inside a list"),
        ("'a", "unexpected end inside a string"),
        ("'\\q'", "backslash"),
        ("name()[1", "unexpected end inside brackets"),
        ("1[0]", "cannot be applied to int"),
        ("1 not 2", "unexpected `not`"),
        ("1 | 2", "unexpected `2`"),
        ("12x", "unexpected `12x`"),
        ("n == 'a'", "`==` cannot be applied to int and string"),
        ("n startsWith 'a'", "cannot be applied to int and string"),
        ("group()", "`group` does not take these arguments"),
        ("first('a')", "does not take"),
        ("trim()", "does not take"),
        ("trim('a', 'b', 'c')", "does not take"),
        ("max()", "does not take"),
        ("1 /* 2", "unexpected end inside a comment"),
        ("0b12", "unexpected `0b12`"),
        ("1;;2", "unexpected `;`"),
    ];
    for (text, part) in cases.into_iter().filter(|(_, part)| *part != "!") {
        let message = run(text).unwrap_err();
        assert!(message.contains(part), "{text}: {message}");
    }
    for deep in [format!("{}1{}", "(".repeat(500), ")".repeat(500)), "!".repeat(500), "1 ** ".repeat(500)] {
        let message = run(&deep).unwrap_err();
        assert!(message.contains("levels"), "{message}");
    }
    assert!(run(&" ".repeat(5000)).unwrap_err().contains("longer"));
}

#[test]
fn reserves_the_names_of_the_language() {
    for name in ["incidr", "first", "len", "true", "matches", "let"] {
        assert!(is_reserved(name), "{name}");
    }
    assert!(!is_reserved("host"));
    assert!(parse("group(1)").is_err());
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
        "#index",
        "filter([1], ",
        "reduce([1, 2], ",
        "let y = ",
        "if ",
        "else ",
        "{",
        "}",
        "a: ",
        ".a",
        "?.a",
        "[1:",
        "9223372036854775807",
        "len(",
        ";",
        "/*",
        "?:",
        "repeat('ab', 9)",
        "split('ä', '')",
        "fromBase64(",
        "toJSON(",
        "max(",
        "sort(",
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
