//! Comparison with the deserializers called directly: the same values, errors and places.

use core::fmt::Debug;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::*;

/// Scalars whose type YAML infers from their text, and others that look like them.
const SCALARS: [&str; 42] = [
    "true",
    "True",
    "yes",
    "no",
    "on",
    "y",
    "null",
    "Null",
    "~",
    "''",
    "\"true\"",
    "'1'",
    "0",
    "80",
    "-1",
    "+7",
    "0x10",
    "0o17",
    "017",
    "1_000",
    "1e3",
    "1.5",
    "-0.0",
    ".nan",
    ".inf",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "web",
    "a b",
    "1.2.3",
    "2026-11-27",
    "!!str 1",
    "!!int '7'",
    "!!binary aGk=",
    "!!null x",
    "!custom x",
    "!!float 1",
    "|\n  line\n  next\n",
    ">-\n  folded\n  text\n",
    "é",
];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Settings {
    name: String,
    a_flag: bool,
    port: Option<u16>,
    list: Vec<Level>,
    labels: BTreeMap<String, String>,
    inner: Option<Box<Settings>>,
    level: Level,
    rest: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "printed for the comparison")]
enum Level {
    #[default]
    Low,
    High(u8),
    Pair(u8, String),
    Named {
        text: String,
    },
}

#[derive(Debug, Deserialize)]
struct Required {
    #[expect(dead_code, reason = "printed for the comparison")]
    name: Spanned<String>,
    #[serde(flatten)]
    #[expect(dead_code, reason = "printed for the comparison")]
    other: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "printed for the comparison")]
enum Either {
    Number(u16),
    Text(String),
    All(Vec<Either>),
}

/// YAML texts, valid and invalid.
const TEXTS: &[&str] = &[
    "",
    "# nothing\n",
    "---\n",
    "name: x\n",
    "name: x\nname: y\n",
    "name: {a: b}\n",
    "name: [x]\n",
    "name:\n",
    "aFlag: maybe\n",
    "aFlag: 'true'\n",
    "port: 70000\n",
    "port: x\n",
    "port: '80'\n",
    "list: [low, {high: 7}, {pair: [1, x]}, {named: {text: y}}]\n",
    "list: [low, high]\n",
    "list: [{high: 256}]\n",
    "list: [{pair: [1]}]\n",
    "list: [{named: {}}]\n",
    "list:\n- low\n- middle\n",
    "list: low\n",
    "list: {}\n",
    "labels: {a: 1, b: yes, c: 'x', 7: d, true: e}\n",
    "labels:\n  a:\n",
    "labels: {a: [b]}\n",
    "labels: {a: b, a: c}\n",
    "labels: [a]\n",
    "inner: {inner: {name: {}}}\n",
    "inner:\n  inner:\n    nmae: x\n",
    "inner: 7\n",
    "level: !high 7\n",
    "level: high: 7\n",
    "level: 7\n",
    "rest: {a: [1, .nan, {a: 1, a: 2}]}\n",
    "x: &a {name: y}\ninner: *a\n",
    "rest: &a {name: y}\ninner: *a\n",
    "rest: &a {name: [y]}\ninner: *a\n",
    "rest: &a eighty\nport: *a\n",
    "rest: &a {name: y}\ninner: {<<: *a, aFlag: true}\n",
    "rest: &a [*a]\n",
    "name: *nobody\n",
    "name: x\n---\nname: y\n",
    "name: [\n",
    "name: 'x\n",
    "\tname: x\n",
    "name: x\n  y: z\n",
    "{\"name\": \"x\", \"port\": 53}",
    "- 1\n- x\n- [2, y]\n",
    "7",
    "x",
];

fn shown<T: Debug>(read: Result<T, serde_saphyr::Error>) -> String {
    match read {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{error} at {:?}: {error:?}", error.locations()),
    }
}

fn same_yaml<T: DeserializeOwned + Debug>(text: &str) {
    assert_eq!(shown(yaml::<T>(text)), shown(serde_saphyr::from_str::<T>(text)), "{text}");
    let strict = || serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let direct = serde_saphyr::from_str_with_options::<T>(text, strict());
    assert_eq!(shown(yaml_with::<T>(text, strict())), shown(direct), "{text}");
}

fn same_json<T: DeserializeOwned + Debug>(text: &str) {
    assert_eq!(format!("{:?}", json::<T>(text.as_bytes())), format!("{:?}", serde_json::from_str::<T>(text)), "{text}");
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    assert_eq!(format!("{:?}", from::<T, _>(&value)), format!("{:?}", T::deserialize(&value)), "{text}");
}

fn same<T: DeserializeOwned + Debug>(text: &str) {
    same_yaml::<T>(text);
    same_json::<T>(text);
}

#[test]
fn reads_scalars_as_the_deserializer_does() {
    for text in SCALARS {
        for text in [text.to_owned(), format!("[{text}, {text}]"), format!("a: {text}\n"), format!("{text}: a\n")] {
            same::<String>(&text);
            same::<Option<String>>(&text);
            same::<bool>(&text);
            same::<char>(&text);
            same::<(u8, i8, u16)>(&text);
            same::<u16>(&text);
            same::<i64>(&text);
            same::<f64>(&text);
            same::<()>(&text);
            same::<Value>(&text);
            same::<IgnoredAny>(&text);
            same::<Vec<Value>>(&text);
            same::<Vec<String>>(&text);
            same::<Vec<Option<f32>>>(&text);
            same::<BTreeMap<String, Value>>(&text);
            same::<BTreeMap<String, String>>(&text);
            same::<BTreeMap<bool, Option<u8>>>(&text);
            same::<Spanned<String>>(&text);
        }
    }
}

#[test]
fn reads_types_as_the_deserializer_does() {
    for text in TEXTS {
        same::<Settings>(text);
        same::<Option<Settings>>(text);
        same::<Vec<Settings>>(text);
        same::<Required>(text);
        same::<Either>(text);
        same::<Level>(text);
        same::<Value>(text);
        same::<Spanned<Value>>(text);
        same::<BTreeMap<String, Spanned<Value>>>(text);
    }
}

#[test]
fn reads_json_as_the_deserializer_does() {
    for text in [
        "{\"name\": \"x\",\n \"port\": 1.5}",
        "{\"name\": \"x\",\n \"port\": null,\n \"aFlag\": null}",
        "{\"list\": [\"low\", {\"high\": 7}, {\"pair\": [1, \"x\"]}, {\"named\": {\"text\": \"y\"}}]}",
        "{\"list\": [\"low\",\n {\"high\": -7}]}",
        "{\"name\": \"x\"} {}",
        "{\"name\": \"x\", \"name\": \"y\"}",
        "{\"name\": \"x\",",
        "[1, \"x\", [2, null]]",
        "{\"name\": \"\\u00e9\", \"other\": 1.0}",
    ] {
        same::<Settings>(text);
        same::<Required>(text);
        same::<Either>(text);
        same::<Value>(text);
    }
}

#[test]
fn reads_all_documents() {
    for text in ["", "a: 1\n---\n---\nb: [x]\n", "a: 1\n---\nb: [\n", "a: 1, b: 2\n", "~\n---\n!x 7\n"] {
        assert_eq!(shown(yaml_documents::<Value>(text)), shown(serde_saphyr::from_multiple::<Value>(text)), "{text}");
    }
}
