//! Field numbers of messages, parsed from `schema.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Fields of a message, in encoding order.
pub(super) type Message = Vec<Field>;

pub(super) struct Field {
    pub(super) name: String,
    pub(super) number: u64,
    pub(super) kind: FieldType,
}

/// Type of a field; see `schema.txt`.
pub(super) enum FieldType {
    Text { always: bool },
    Number { always: bool },
    Map,
    Json,
    Time { always: bool },
    Port,
    Message(String),
}

/// Returns a message by name.
pub(super) fn message(name: &str) -> Option<&'static Message> {
    MESSAGES.get(name)
}

static MESSAGES: LazyLock<BTreeMap<String, Message>> = LazyLock::new(|| parse(include_str!("schema.txt")));

fn parse(text: &str) -> BTreeMap<String, Message> {
    let (mut messages, mut current) = (BTreeMap::<String, Message>::new(), String::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [name] => name.clone_into(&mut current),
            [name, number, kind] => {
                let field = Field { name: name.to_owned(), number: number.parse().unwrap(), kind: kind_of(kind) };
                messages.entry(current.clone()).or_default().push(field);
            }
            _ => panic!("not a field: {line}"),
        }
    }
    messages
}

fn kind_of(word: &str) -> FieldType {
    match word {
        "text" | "text?" => FieldType::Text { always: word == "text" },
        "number" | "number?" => FieldType::Number { always: word == "number" },
        "map" => FieldType::Map,
        "json" => FieldType::Json,
        "Time" | "Time?" => FieldType::Time { always: word == "Time" },
        "Port" => FieldType::Port,
        message => FieldType::Message(message.to_owned()),
    }
}

/// Panics if a field refers to an unknown message, or if the numbers of a message do not increase.
#[cfg(test)]
pub(super) fn check() {
    for (name, message) in &*MESSAGES {
        assert!(message.windows(2).all(|pair| pair[0].number < pair[1].number), "{name}");
        for field in message {
            assert!(
                !matches!(&field.kind, FieldType::Message(of) if !MESSAGES.contains_key(of)),
                "{name}.{}",
                field.name
            );
        }
    }
}
