//! Data of a query that a template can read.

use engine::{Label, Query};
use gotext::Value;
use gotext::regexp::{Captures, Regexp};
use gotext::template::Data;
use std::collections::BTreeMap;
use wire::NameRef;

/// Query that a template answers: the data on which the template runs.
pub(super) struct TemplateData<'a> {
    pub(super) query: &'a Query,
    /// Queried name, in presentation format and lower case.
    pub(super) name: &'a str,
    /// Longest zone of the template that contains the name.
    pub(super) zone: NameRef<'a>,
    /// Regular expression that matched, and its match; `None` if the block has none and every name matches.
    pub(super) matched: Option<(&'a Regexp, Captures<'a>)>,
    /// Looks up a metadata label by name.
    pub(super) label: &'a dyn Fn(&str) -> Option<Label>,
    pub(super) variables: BTreeMap<String, Value>,
}

/// Names of the fields and methods of the data of a template.
pub(super) const FIELDS: [&str; 11] =
    ["Zone", "Name", "Class", "Type", "Match", "Group", "Remote", "Question", "Message", "Var", "Meta"];

/// Fields that may depend on the client's address.
pub(super) const CLIENT_FIELDS: [&str; 2] = ["Remote", "Meta"];

impl Data for TemplateData<'_> {
    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Zone" => Value::text(self.zone.to_string()),
            "Name" => Value::text(self.name),
            "Class" => Value::text(self.query.qclass.to_string()),
            "Type" => Value::text(self.query.qtype.to_string()),
            "Match" => self.parts(),
            "Group" => self.groups(),
            "Remote" => Value::text(self.query.peer.address.ip().to_canonical().to_string()),
            "Question" => self.question(),
            "Message" => self.message(),
            "Var" => Value::Map(self.variables.clone()),
            _ => return None,
        })
    }

    fn method(&self, name: &str, args: &[Value]) -> Option<Value> {
        match (name, args) {
            ("Meta", [Value::Text(label)]) => {
                let value = (self.label)(label).and_then(|label| label.value(self.query));
                Some(Value::Text(value.unwrap_or_default()))
            }
            _ => None,
        }
    }
}

impl TemplateData<'_> {
    fn parts(&self) -> Value {
        let Some((_, found)) = &self.matched else { return Value::List(vec![Value::text(self.name)]) };
        Value::List(found.iter().map(|part| Value::text(part.map_or("", |part| part.as_str()))).collect())
    }

    /// Returns the text of a group, by index or name; empty if the group does not exist.
    pub(super) fn group(&self, group: &Value) -> String {
        let (Value::Map(groups), Value::Integer(_) | Value::Text(_)) = (self.groups(), group) else {
            return String::new();
        };
        groups.get(&group.to_string()).map(Value::to_string).unwrap_or_default()
    }

    /// Returns the capture groups by number and by name.
    fn groups(&self) -> Value {
        let Some((regexp, found)) = &self.matched else {
            return Value::Map([("0".to_owned(), Value::text(self.name))].into());
        };
        let text = |at: usize| Value::text(found.get(at).map_or("", |part| part.as_str()));
        let named = regexp.names().iter().enumerate();
        let named = named.filter_map(|(at, name)| Some((name.clone()?, text(at))));
        Value::Map((0..found.len()).map(|at| (at.to_string(), text(at))).chain(named).collect())
    }

    fn question(&self) -> Value {
        let number = |number: u16| Value::Integer(i64::from(number));
        object([
            ("Name", Value::text(self.query.name().to_string())),
            ("Qtype", number(self.query.qtype.0)),
            ("Qclass", number(self.query.qclass.0)),
            ("String", Value::Text(format!(";{}\t{}\t {}", self.query.name(), self.query.qclass, self.query.qtype))),
        ])
    }

    fn message(&self) -> Value {
        let header = self.query.header();
        let flags = header.flags;
        let fields = [
            ("Id", Value::Integer(i64::from(header.id))),
            ("Response", Value::Bool(flags.is_response())),
            ("Opcode", Value::Integer(i64::from(flags.opcode().0))),
            ("Authoritative", Value::Bool(flags.authoritative())),
            ("Truncated", Value::Bool(flags.truncated())),
            ("RecursionDesired", Value::Bool(flags.recursion_desired())),
            ("RecursionAvailable", Value::Bool(flags.recursion_available())),
            ("Zero", Value::Bool(flags.reserved())),
            ("AuthenticatedData", Value::Bool(flags.authentic_data())),
            ("CheckingDisabled", Value::Bool(flags.checking_disabled())),
            ("Rcode", Value::Integer(i64::from(flags.rcode().0))),
        ];
        // As in Go's struct embedding, the fields of the header are also fields of the message.
        // A query has no other record than OPT. Only the number of its records can be read.
        let additional = self.query.request.opt.iter().map(|_| Value::Nil).collect();
        let own = [
            ("MsgHdr", object(fields.clone())),
            ("Question", Value::List(vec![self.question()])),
            ("Answer", Value::List(Vec::new())),
            ("Ns", Value::List(Vec::new())),
            ("Extra", Value::List(additional)),
        ];
        Value::Struct(fields.into_iter().chain(own).collect())
    }
}

fn object<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
    Value::Struct(fields.into())
}
