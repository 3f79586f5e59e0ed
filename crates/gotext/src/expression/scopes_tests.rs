//! Local names, predicates and maps. The values are those of expr 1.17.8, which CoreDNS 1.15.0 uses.

use super::*;

fn run(text: &str) -> Result<Option<String>, String> {
    let expression: Expression<core::convert::Infallible> =
        Expression::parse(text, &Scope { variables: &[], functions: &[] }).map_err(|error| error.error.to_string())?;
    Ok(expression.evaluate(&()).map(|value| value.to_string()))
}

#[test]
fn evaluates_as_expr() {
    let cases = [
        ("filter([1, 2, 3], # > 1)", "[2 3]"),
        ("filter([1, 2, 3], {# > 1})", "[2 3]"),
        ("map(1..3, # * 2)", "[2 4 6]"),
        ("map([{a: 1}, {a: 2}], .a)", "[1 2]"),
        ("map([{a: 1}, {'a': 2}], #.a + 1)", "[2 3]"),
        ("all([1, 2], # > 0) && !all([1, 2], # > 1)", "true"),
        ("any([1, 2], # == 2)", "true"),
        ("one([1, 2, 2], # == 2)", "false"),
        ("one([1, 2], # == 2)", "true"),
        ("none([1, 2], # == 3)", "true"),
        ("count([1, 2, 3], # > 1)", "2"),
        ("count([true, false, true])", "2"),
        ("sum([1, 2, 3], # * 2)", "12"),
        ("sum([1, 2])", "3"),
        ("find([1, 2, 3], # > 1)", "2"),
        ("find([1], # > 1) == nil", "true"),
        ("findIndex([1, 2, 3], # > 1)", "1"),
        ("findIndex([1], # > 1) == nil", "true"),
        ("findLast([1, 2, 3], # > 1)", "3"),
        ("findLastIndex([1, 2, 3], # > 1)", "2"),
        ("groupBy(['aa', 'b', 'cc'], string(len(#)))", "map[1:[b] 2:[aa cc]]"),
        ("sortBy(['ccc', 'a', 'bb'], len(#))", "[a bb ccc]"),
        ("sortBy(['ccc', 'a', 'bb'], len(#), 'desc')", "[ccc bb a]"),
        ("reduce([1, 2, 3], #acc + #)", "6"),
        ("reduce([1, 2, 3], #acc + #, 10)", "16"),
        ("reduce(['a', 'b'], #acc + string(#index) + #, '')", "0a1b"),
        ("map(['a', 'b'], string(#index) + #)", "[0a 1b]"),
        ("filter(map([1, 2, 3], # + 1), # > 2)", "[3 4]"),
        ("map([1, 2], map([10, 20], # + 1))", "[[11 21] [11 21]]"),
        ("[1, 2, 3] | filter(# > 1) | map(# * 2)", "[4 6]"),
        ("let x = 2; x * 3", "6"),
        ("let x = 2; let y = x + 1; x * y", "6"),
        ("let list = ['a', 'b']; any(list, # == 'b')", "true"),
        ("map([1, 2], let d = # * 2; d + 1)", "[3 5]"),
        ("map([1, 2], {let d = # * 2; d + 1})", "[3 5]"),
        ("if 1 < 2 { 'yes' } else { 'no' }", "yes"),
        ("if 1 > 2 { 'a' } else if 2 > 1 { 'b' } else { 'c' }", "b"),
        ("(1; 2)", "2"),
        ("{a: 1, 'b': 2}.b", "2"),
        ("{a: {b: 'c'}}.a.b", "c"),
        ("{'a': 1}['a']", "1"),
        ("{(('x') + 'y'): 1}.xy", "1"),
        ("len({a: 1, b: 2})", "2"),
        ("'a' in {a: 1}", "true"),
        ("'b' in {a: 1}", "false"),
        ("keys({a: 1})", "[a]"),
        ("values({a: 1})", "[1]"),
        ("toPairs({a: 1})", "[[a 1]]"),
        ("fromPairs([['a', 1]]).a", "1"),
        ("fromJSON('[1]')[0] + 1", "2"),
        ("{a: nil}.a?.b == nil", "true"),
        ("{a: 1}.missing == nil", "true"),
        ("{a: 1}['missing'] == nil", "true"),
        ("get({a: 1}, 'a')", "1"),
        ("type({a: 1}) + type(filter([], true))", "maparray"),
        ("all([], false) && none([], true) && !any([], true)", "true"),
        ("let x = 1; x | max(5)", "5"),
        ("split('a.b.c.', '.') | filter(# != '') | map(upper(#)) | join('-')", "A-B-C"),
        ("len(filter(split('www.example.org.', '.'), len(#) > 3))", "1"),
        ("map(1..3, {#index})", "[0 1 2]"),
        ("not any([1], # > 1)", "true"),
        ("let x = [1, 2]; x[0] + x[-1]", "3"),
        ("any([[1, 2], [3]], any(#, # == 3))", "true"),
        ("all([1, 'a'], # == 2) || any([1, 'a'], # == 1)", "true"),
        ("all([1, 'a'], # > 1)", "false"),
        ("toJSON({a: [1, 'x']}) == '{\\n  \"a\": [\\n    1,\\n    \"x\"\\n  ]\\n}'", "true"),
        ("toJSON(fromJSON('{\"a\": [1, 2.5, null, true]}').a) == '[\\n  1,\\n  2.5,\\n  null,\\n  true\\n]'", "true"),
    ];
    for (text, value) in cases {
        assert_eq!(run(text), Ok(Some(value.to_owned())), "{text}");
    }
}

#[test]
fn refuses_what_expr_refuses() {
    for (text, part) in [
        ("let x = 1", "unexpected end inside a declaration"),
        ("let len = 1; len", "cannot redeclare len"),
        ("let x = 1; let x = 2; x", "cannot redeclare x"),
        ("(let x = 1; x) + x", "unknown name x"),
        ("filter([1])", "`filter` does not take these arguments"),
        ("filter()", "`filter` does not take these arguments"),
        ("filter([1], 1)", "`filter` does not take these arguments"),
        ("filter(1, true)", "`filter` does not take these arguments"),
        ("[1] | filter()", "`filter` does not take these arguments"),
        ("if true { 1 }", "unexpected end inside a condition without `else`"),
        ("if 1 { 1 } else { 2 }", "`if` cannot be applied to int"),
        ("#", "unknown name #"),
        ("map([1], #acc)", "unknown name #acc"),
        (".a", "unexpected `.`"),
        ("{a: 1", "unexpected end inside a map"),
        ("map([1], {#)", "unexpected `)`"),
        ("'a'.b", "`.` cannot be applied to string"),
        ("filter([1], # > 1", "unexpected end inside parentheses"),
        ("let 1 = 2; 3", "unexpected `1`"),
    ] {
        let message = run(text).unwrap_err();
        assert!(message.contains(part), "{text}: {message}");
    }
    let deep = format!("{}1{}", "map([1], ".repeat(100), ")".repeat(100));
    assert!(run(&deep).unwrap_err().contains("levels"));
    for part in [".a", "?.a", "[0]", " | len()"] {
        assert!(run(&format!("fromJSON('1'){}", part.repeat(500))).unwrap_err().contains("levels"), "{part}");
    }
    assert!(run(&format!("{}{{1}}", "if true {1} else ".repeat(100))).unwrap_err().contains("levels"));
}

#[test]
fn an_evaluation_has_a_bounded_number_of_steps() {
    for text in [
        "map(1..1000, map(1..1000, #))",
        "all(1..1000, all(1..1000, true))",
        "reduce(1..1000, concat(#acc, #acc), [1])",
        "map(1..1000, repeat('ab', 2000))",
        "reduce(1..100, #acc + #acc, 'abcdefgh')",
        "1.5.x",
        "reduce([], #acc)",
        "map([1], # + 'a')",
        "sortBy([1, 2], [#])",
        "groupBy([1], [#])",
        "fromJSON('{')",
        "[fromJSON('1')][0].x",
    ] {
        assert!(matches!(run(text), Ok(None) | Err(_)), "{text}: {:?}", run(text));
    }
    assert_eq!(run("len(filter(1..1000, # % 2 == 0))"), Ok(Some("500".to_owned())));
}
