use super::*;
use crate::value::Value;

pub(super) struct Sample;

impl Data for Sample {
    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Name" => Value::text("www.example."),
            "Type" => Value::text("TXT"),
            "Match" => Value::List(["whole", "one", "two"].map(Value::text).into()),
            "Group" => Value::Map([("1".to_owned(), Value::text("one")), ("a".to_owned(), Value::text("two"))].into()),
            "Empty" => Value::text(""),
            "N" => Value::Integer(7),
            "Message" => object([
                ("Id", Value::Integer(9)),
                ("RD", Value::Bool(true)),
                ("Question", Value::List(vec![question()])),
            ]),
            "Var" => Value::Map(
                [("n", Value::Integer(1)), ("f", Value::Float(1.5)), ("t", Value::text("x")), ("b", Value::Bool(true))]
                    .map(|(name, value)| (name.to_owned(), value))
                    .into(),
            ),
            _ => return None,
        })
    }

    fn method(&self, name: &str, args: &[Value]) -> Option<Value> {
        match (name, args) {
            ("Meta", [Value::Text(label)]) => Some(Value::Text(format!("<{label}>"))),
            _ => None,
        }
    }
}

fn object<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
    Value::Struct(fields.into())
}

fn question() -> Value {
    object([("Name", Value::text("www.example.")), ("Qtype", Value::Integer(16))])
}

fn run(template: &str) -> Result<String, String> {
    let read =
        Template::parse("answer", template).map_err(|ParseError { offset, error }| format!("{offset}: {error}"))?;
    read.execute(&Sample).map_err(|error| error.to_string())
}

#[test]
fn prints_templates() {
    let cases = [
        ("", ""),
        ("plain } text", "plain } text"),
        ("{{ .Name }} 60 IN A 1.2.3.4", "www.example. 60 IN A 1.2.3.4"),
        ("{{.Name}}{{ .Group.a }}", "www.example.two"),
        ("{{ .Group.none }} {{ index .Group `none` }}.", "<no value> ."),
        ("{{ index .Match 1 }}-{{ index .Group \"a\" }}", "one-two"),
        ("{{ (index .Match 2) }}{{ len .Match }}{{ .Name | len }}", "two312"),
        ("{{ $.Type }}{{ $ | len | print }}", "!"),
        ("{{ .Meta \"a/b\" }} {{ `x/y` | .Meta }} {{ $.Meta `z/z` }}", "<a/b> <x/y> <z/z>"),
        ("a {{- .Type -}} b {{- /* no */ -}} c{{/* {{ */}}d", "aTXTbcd"),
        ("a{{ -1 }}b{{- 1 }}", "a-1b1"),
        ("{{ if eq .Type \"A\" \"TXT\" }}yes{{ else }}no{{ end }}", "yes"),
        ("{{if .Empty}}a{{else if eq .Type `TXT`}}b{{else}}c{{end}}", "b"),
        ("{{if not .Empty}}a{{end}}{{if and .Name .Empty}}b{{end}}{{if or .Empty .Name}}c{{end}}", "ac"),
        ("{{ and 1 0 2 }}{{ or 0 `` 3 }}{{ and 1 2 }}", "032"),
        ("{{ or .Name (index .Match 99) }}", "www.example."),
        ("{{ with $x := .Group.a }}{{ . }}{{ $x }}{{ end }}{{ with .Empty }}a{{ else }}b{{ end }}", "twotwob"),
        ("{{ range .Match }}[{{ . }}]{{ end }}", "[whole][one][two]"),
        ("{{ range $i, $e := .Match }}{{ $i }}={{ $e }}{{ $.Type }};{{ end }}", "0=wholeTXT;1=oneTXT;2=twoTXT;"),
        ("{{ range $k, $v := .Group }}{{ $k }}{{ $v }}{{ else }}none{{ end }}", "1oneatwo"),
        ("{{ range $e := .Match }}{{ if eq $e `one` }}{{ continue }}{{ end }}{{ $e }}{{ end }}", "wholetwo"),
        ("{{ range .Match }}{{ break }}{{ end }}{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $y := 3 }}{{ end }}{{ $x }}", "2"),
        ("{{ print 1 2 `a` `b` 3 }} {{ println `a` 1 }}", "1 2ab3 a 1\n"),
        (
            "{{ printf `%s|%5d|%-4s|%04d|%x|%X|%q|%v|%t|%%|%c` `a` 7 `b` -3 255 `hi` `q` .Match true 97 }}",
            "a|    7|b   |-003|ff|6869|\"q\"|[whole one two]|true|%|a",
        ),
        (
            "{{ printf `%d` `x` }} {{ printf `%d` }} {{ printf `a` 1 }} {{ printf `%#x %+d %.2s` 255 3 `abc` }}",
            "%!d(string=x) %!d(MISSING) a%!(EXTRA int=1) 0xff +3 ab",
        ),
        (
            "{{ printf `%02x` (parseInt `10` 10 64) }}{{ parseInt `7f` 16 64 }} {{ 0x1F }} {{ 010 }} {{ 1.5 }} {{ 'a' }}",
            "0a127 31 8 1.5 97",
        ),
        ("{{ parseInt `80` 16 8 }} {{ parseInt `ff` 16 8 }} {{ parseInt `255` 10 8 }}", "128 255 255"),
        ("{{ parseInt `1_000` 0 64 }} {{ parseInt `0_7` 0 64 }} {{ parseInt `0x_1f` 0 0 }}", "1000 7 31"),
        ("{{ parseInt `0X80` 0 8 }} {{ parseInt `0o17` 0 8 }} {{ parseInt `0b11` 0 8 }}", "128 15 3"),
        ("{{ parseInt `0` 0 1 }} {{ parseInt `18446744073709551615` 10 64 }}", "0 18446744073709551615"),
        ("{{ lt 1 2 }}{{ ge `b` `a` }}{{ ne 1 2 }}{{ le 2 1 }}{{ gt 1.5 1.0 }}", "truetruetruefalsetrue"),
        (
            "{{ slice .Name 1 3 }}{{ slice .Match 1 }}{{ html `<a&b>` }}{{ urlquery `a b&` }}",
            "ww[one two]&lt;a&amp;b&gt;a+b%26",
        ),
        ("{{ \"a\\tb\\x41\\u00e4\\101\\\"\" }}", "a\tbA\u{e4}A\""),
        ("{{ true }}{{ (len .Name) | printf `%d` }}", "true12"),
    ];
    for (template, text) in cases {
        let got = run(template);
        if text == "!" {
            assert!(got.is_err(), "{template}: {got:?}");
        } else {
            assert_eq!(got.as_deref(), Ok(text), "{template}");
        }
    }
}

#[test]
fn names_the_error_in_a_template() {
    let cases = [
        ("{{ .Name", "ends inside an action"),
        ("{{ if .Name }}a", "`{{ end }}` is missing"),
        ("{{ if .Name }}a{{ else }}b", "`{{ end }}` is missing"),
        ("{{ end }}", "3: unexpected `end`"),
        ("{{ else }}", "unexpected `else`"),
        ("{{ if }}{{ end }}", "is missing"),
        ("{{ randInt 1 2 }}", "function \"randInt\" not defined"),
        ("{{ print end }}", "unexpected `end`"),
        ("{{ $x }}", "undefined variable"),
        ("{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}", "undefined variable"),
        ("{{ .Group.1 }}", "unexpected `0.1`"),
        ("{{ (1 }}", "ends inside parentheses"),
        ("{{ 1) }}", "unexpected `)`"),
        ("{{ 1 | 2 }}", "a function or a field after `|` is missing"),
        ("{{ \"a }}", "ends inside a string"),
        ("{{ \"\\q\" }}", "backslash"),
        ("{{ 'ab' }}", "unexpected"),
        ("{{ 12x }}", "`12x` is not a number"),
        ("{{ ! }}", "unexpected `!`"),
        ("{{ , }}", "unexpected `,`"),
        ("{{ call .Name }}", "`call` is not supported here"),
        ("{{ break }}", "unexpected `break`"),
        ("{{/* a", "ends inside a comment"),
        ("{{ if 1 }}{{ else }}{{ else }}{{ end }}", "unexpected `else`"),
        ("{{ if 1 }}{{ end x }}", "unexpected `x`"),
    ];
    for (template, part) in cases {
        let problem = run(template).unwrap_err();
        assert!(problem.contains(part), "{template}: {problem}");
    }
    let deep = format!("{}1{}", "{{ if 1 }}".repeat(200), "{{ end }}".repeat(200));
    assert!(run(&deep).unwrap_err().contains("levels"));
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(200), ")".repeat(200));
    assert!(run(&deep).unwrap_err().contains("levels"));
    assert!(run(&"a".repeat(70_000)).unwrap_err().contains("longer"));
}

#[test]
fn names_the_error_of_a_failed_run() {
    let cases = [
        ("{{ .Foo }}", "can't evaluate field Foo"),
        ("{{ .Name.x }}", "can't evaluate field x"),
        ("{{ .Name 1 }}", "can't evaluate field Name"),
        ("{{ 1 2 }}", "can't give argument"),
        ("{{ index .Match 3 }}", "index out of range: 3"),
        ("{{ index .Match `a` }}", "wrong arguments of index"),
        ("{{ eq 1 .Type }}", "incompatible types for comparison: int and string"),
        ("{{ eq 1 }}", "wrong arguments of eq"),
        ("{{ lt 1 `a` }}", "wrong arguments of lt"),
        ("{{ len 1 }}", "wrong arguments of len"),
        ("{{ parseInt `x` 10 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `256` 10 8 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `18446744073709551616` 10 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `-5` 10 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `+5` 10 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `0x+5` 0 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `1_000` 10 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `1__0` 0 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `_1` 0 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `1_` 0 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `08` 0 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `0x80` 16 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `5` 37 64 }}", "wrong arguments of parseInt"),
        ("{{ parseInt `5` 10 65 }}", "wrong arguments of parseInt"),
        ("{{ range .Name }}{{ end }}", "can't iterate over string"),
        ("{{ . }}", "the data as a whole"),
        ("{{ range 9999 }}{{ range 9999 }}{{ end }}{{ end }}", "steps"),
        ("{{ range 4000 }}{{ .Name }}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}", "field Name"),
        ("{{ $x := .Name }}{{ range 99 }}{{ $x = print $x $x }}{{ end }}", "longer"),
        ("{{ printf `%99999d` 1 }}", "longer"),
        (
            "{{ define `r` }}{{ if . }}{{ template `r` . }}{{ end }}{{ end }}{{ template `r` 1 }}",
            "blocks and templates",
        ),
        ("{{ template `r` }}", "template \"r\" not defined"),
        ("{{ range 3000 }}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}", "longer"),
    ];
    for (template, part) in cases {
        let problem = run(template).unwrap_err();
        assert!(problem.contains(part), "{template}: {problem}");
    }
}

/// Random input must never panic or loop without end, neither in the parser nor in the interpreter.
#[test]
fn survives_random_templates() {
    let parts = [
        "{{", "}}", "-", " ", ".", "$", "x", "if", "range", "end", "else", "(", ")", "|", ":=", "\"", "`", "'", "1",
        "/*", "*/", ".Match", "define", "template", "block", "`a`", "\\", "\u{e4}", "printf", "%",
    ];
    let mut seed = 7u64;
    for _ in 0..40_000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(parts[(seed >> 33) as usize % parts.len()]);
        }
        let _ = run(&text);
    }
}
