//! Expressions on a query, for *view* and *template*: the functions that CoreDNS adds to the expression language.

use core::net::IpAddr;

use engine::{Label, Labels, Query};
use gotext::expression::{self, Environment, Expression, ExpressionError, Function, Parameters, Scope, Type};
use gotext::{ParseError, Value};
use wire::NameRef;

/// Function on a query.
#[derive(Clone, Debug)]
enum QueryFunction {
    Type,
    Name,
    Class,
    Protocol,
    Size,
    ClientIp,
    ClientPort,
    Id,
    Opcode,
    DnssecOk,
    BufferSize,
    ServerIp,
    ServerPort,
    /// `metadata`, with the name of its label. [`QueryExpression::bind`] sets the label.
    Metadata(String, Option<Label>),
    /// `group`: a capture group of a regular expression.
    Group,
}

const fn function(name: &'static str, function: QueryFunction, result: Type) -> Function<QueryFunction> {
    Function { name, parameters: Parameters::Values(&[], function), result }
}

static FUNCTIONS: [Function<QueryFunction>; 14] = [
    function("type", QueryFunction::Type, Type::Text),
    function("name", QueryFunction::Name, Type::Text),
    function("class", QueryFunction::Class, Type::Text),
    function("proto", QueryFunction::Protocol, Type::Text),
    function("size", QueryFunction::Size, Type::Integer),
    function("client_ip", QueryFunction::ClientIp, Type::Text),
    function("port", QueryFunction::ClientPort, Type::Text),
    function("id", QueryFunction::Id, Type::Integer),
    function("opcode", QueryFunction::Opcode, Type::Integer),
    function("do", QueryFunction::DnssecOk, Type::Bool),
    function("bufsize", QueryFunction::BufferSize, Type::Integer),
    function("server_ip", QueryFunction::ServerIp, Type::Text),
    function("server_port", QueryFunction::ServerPort, Type::Text),
    Function {
        name: "metadata",
        parameters: Parameters::Constant {
            description: "a label name",
            bind: |label| QueryFunction::Metadata(label.to_owned(), None),
        },
        result: Type::Text,
    },
];

/// `group(NAME|INDEX)`, which only a plugin with a regular expression has.
static GROUP: Function<QueryFunction> =
    Function { name: "group", parameters: Parameters::Values(&[Type::Any], QueryFunction::Group), result: Type::Text };

/// Names that an expression may use in addition to those of the query.
#[derive(Clone, Copy, Default)]
pub struct Names<'a> {
    /// Variables with the types of their values.
    pub variables: &'a [(&'a str, Type)],
    /// True if `group(NAME|INDEX)` reads the capture groups of a regular expression.
    pub has_groups: bool,
}

/// Values of [`Names`] for one query.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    /// Returns the value of a variable.
    pub variable: &'a dyn Fn(&str) -> Value,
    /// Returns the text of a capture group, by index or name.
    pub group: &'a dyn Fn(&Value) -> String,
}

impl Values<'_> {
    /// Values of no names.
    pub const NONE: Values<'static> = Values { variable: &|_| Value::Nil, group: &|_| String::new() };
}

/// Parsed expression on a query.
#[derive(Debug)]
pub struct QueryExpression(Expression<QueryFunction>);

impl QueryExpression {
    /// Parses an expression that may use `names`.
    ///
    /// # Errors
    /// The first error.
    pub fn parse(text: &str, names: Names<'_>) -> Result<QueryExpression, ParseError<ExpressionError>> {
        let functions: Vec<_> = FUNCTIONS.iter().chain(names.has_groups.then_some(&GROUP)).collect();
        let scope = Scope { variables: names.variables, functions: &functions };
        Expression::parse(text, &scope).map(QueryExpression)
    }

    /// Returns the type of the values.
    pub const fn result(&self) -> Type {
        self.0.result()
    }

    /// Returns the constants that `incidr` cannot read as a network.
    pub fn bad_networks(&self) -> &[String] {
        self.0.bad_networks()
    }

    /// Resolves the labels that the expression reads.
    pub fn bind(&mut self, labels: &Labels) {
        for function in self.0.functions_mut() {
            if let QueryFunction::Metadata(name, label) = function {
                *label = Some(labels.label(name));
            }
        }
    }

    /// Returns true if the value may depend on the client's address: directly, or through a metadata label such as
    /// `kubernetes/client-namespace`.
    pub fn reads_client(&self) -> bool {
        self.0.functions().iter().any(|function| {
            matches!(function, QueryFunction::ClientIp | QueryFunction::ClientPort | QueryFunction::Metadata(..))
        })
    }

    /// Evaluates the expression for a query. Returns `None` if it has no value, for example an index after the end of a
    /// list.
    pub fn evaluate(&self, query: &Query, values: Values<'_>) -> Option<Value> {
        self.0.evaluate(&QueryEnvironment { query, values })
    }

    /// Returns true if the value for a query is the boolean `true`. No other value counts as true.
    pub fn is_true(&self, query: &Query, values: Values<'_>) -> bool {
        self.0.is_true(&QueryEnvironment { query, values })
    }
}

/// Returns true if an expression cannot have a variable of this name.
pub fn is_reserved(name: &str) -> bool {
    expression::is_reserved(name) || FUNCTIONS.iter().chain([&GROUP]).any(|function| function.name == name)
}

/// Query with the values of the names that its plugin adds.
struct QueryEnvironment<'a> {
    query: &'a Query,
    values: Values<'a>,
}

impl Environment for QueryEnvironment<'_> {
    type Function = QueryFunction;

    fn variable(&self, name: &str) -> Value {
        (self.values.variable)(name)
    }

    fn call(&self, function: &QueryFunction, args: &[Value]) -> Option<Value> {
        let Query { peer, qtype, qclass, .. } = self.query;
        let integer = |number: usize| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        Some(match function {
            QueryFunction::Type => Value::Text(qtype.to_string()),
            QueryFunction::Name => Value::Text(NameRef::to_string(&self.query.key())),
            QueryFunction::Class => Value::Text(qclass.to_string()),
            QueryFunction::Protocol => Value::text(peer.transport.label()),
            QueryFunction::Size => integer(self.query.packet.len()),
            QueryFunction::ClientIp | QueryFunction::ServerIp => Value::Text(self.address(function)?.to_string()),
            QueryFunction::ClientPort => Value::Text(peer.address.port().to_string()),
            QueryFunction::Id => integer(usize::from(self.query.header().id)),
            QueryFunction::Opcode => integer(usize::from(self.query.flags().opcode().0)),
            QueryFunction::DnssecOk => Value::Bool(self.query.dnssec_ok),
            QueryFunction::BufferSize => integer(usize::from(self.query.client_size_max())),
            QueryFunction::ServerPort => Value::Text(peer.local.port().to_string()),
            QueryFunction::Metadata(_, label) => {
                let value = label.as_ref().and_then(|label| label.value(self.query));
                // A label without a value is an empty text, as in CoreDNS.
                Value::Text(value.unwrap_or_default())
            }
            QueryFunction::Group => Value::Text((self.values.group)(args.first()?)),
        })
    }

    fn address(&self, function: &QueryFunction) -> Option<IpAddr> {
        match function {
            QueryFunction::ClientIp => Some(self.query.peer.address.ip().to_canonical()),
            QueryFunction::ServerIp => Some(self.query.peer.local.ip().to_canonical()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::Zones;
    use wire::{Name, Type as RecordType};

    use super::*;

    fn query() -> Query {
        let mut query = Query::default();
        query.qclass = wire::Class::IN;
        query.qtype = RecordType::AAAA;
        query.set_name(Name::from_text("Www.Example.").unwrap().as_ref());
        query.peer.address = "[::ffff:10.1.2.3]:5353".parse().unwrap();
        query.peer.local = "192.0.2.1:53".parse().unwrap();
        query.udp_size = 1232;
        query
    }

    fn evaluate(text: &str) -> Result<Option<String>, String> {
        let labels = Labels::default();
        labels.publish("a/b", |_| Some("label".to_owned()));
        labels.switch_on(Zones::all());
        let names = Names { variables: &[("x", Type::Any)], has_groups: true };
        let mut expression = QueryExpression::parse(text, names).map_err(|error| error.error.to_string())?;
        expression.bind(&labels);
        let values = Values { variable: &|_| Value::Integer(7), group: &|at| format!("<{at}>") };
        Ok(expression.evaluate(&query(), values).map(|value| value.to_string()))
    }

    #[test]
    fn reads_the_properties_of_a_query() {
        let cases = [
            ("name()", "www.example."),
            ("type() + class() + proto()", "AAAAINudp"),
            ("client_ip() + ' ' + port() + ' ' + server_ip() + ' ' + server_port()", "10.1.2.3 5353 192.0.2.1 53"),
            ("bufsize() > 1000 && size() == 0 && id() == 0 && opcode() == 0 && !do()", "true"),
            ("type() in ['A', 'AAAA']", "true"),
            ("incidr(client_ip(), '10.0.0.0/8') && !incidr(client_ip(), '192.0.2.0/24')", "true"),
            ("incidr(server_ip(), '192.0.2.0/24') && !incidr(server_ip(), '10.0.0.0/8')", "true"),
            ("incidr(client_ip(), '10.0' + '.0.0/8')", "true"),
            ("metadata('a/b') == 'label' && metadata('no/body') == ''", "true"),
            ("x + len(name())", "19"),
            ("group(1) + group('host')", "<1><host>"),
        ];
        for (text, value) in cases {
            assert_eq!(evaluate(text), Ok(Some(value.to_owned())), "{text}");
        }
        assert_eq!(evaluate("incidr(port(), '10.0.0.0/8')"), Ok(None));
    }

    #[test]
    fn explains_why_an_expression_is_invalid() {
        let cases = [
            ("port() == 53", "`==` cannot be applied to string and int"),
            ("metadata(name())", "`metadata` with a label name that is not constant is not supported here"),
            ("metadata(1)", "`metadata` does not take these arguments"),
            ("group()", "`group` does not take these arguments"),
        ];
        for (text, message) in cases {
            assert_eq!(evaluate(text), Err(message.to_owned()), "{text}");
        }
        assert!(QueryExpression::parse("group(1)", Names::default()).is_err());
    }

    #[test]
    fn reserves_the_names_of_functions() {
        for name in ["group", "client_ip", "metadata", "incidr", "first"] {
            assert!(is_reserved(name), "{name}");
        }
        assert!(!is_reserved("host"));
    }
}
