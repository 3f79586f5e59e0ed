//! Configuration of a `template` line.

use std::collections::BTreeMap;

use config::options::{Args, Effect, Problem, Property, Role, Usage};
use engine::{Labels, Query};
use gotext::regexp::Regexp;
use gotext::template::Template;
use gotext::{ParseError, Value};
use wire::{Class, EdeCode, Name, NameRef, Rcode, Type};

use crate::plugins::template::data::{CLIENT_FIELDS, FIELDS};
use crate::shared::option_helpers::{expression_of, mnemonic, regular_expression};
use crate::shared::query_expression::{Names, QueryExpression, Values, is_reserved};

/// Parsed `template` line.
#[derive(Default)]
pub struct Config {
    /// `None` for all classes.
    pub(super) class: Option<Class>,
    /// `None` for all types.
    pub(super) rtype: Option<Type>,
    pub(super) zones: Vec<Name>,
    pub(super) matches: Vec<Regexp>,
    pub(super) answers: Vec<Template>,
    pub(super) additionals: Vec<Template>,
    pub(super) authorities: Vec<Template>,
    /// Expressions that must be true.
    pub(super) conditions: Vec<QueryExpression>,
    pub(super) variables: Vec<(String, QueryExpression)>,
    pub(super) rcode: Rcode,
    pub(super) ede: Option<(EdeCode, String)>,
    pub(super) fallthrough: Option<Vec<Name>>,
}

impl Config {
    /// Returns the role of the line in the chain. It answers all names of its zones only if it has no condition.
    pub(super) fn role(&self) -> Role {
        let takes_all = self.class.is_none() && self.rtype.is_none() && self.matches.is_empty();
        match takes_all && self.conditions.is_empty() {
            true => Role::new(Effect::AnswersAll, &self.zones),
            false => Role::new(Effect::AnswersSome, &self.zones),
        }
    }

    /// Returns true if the answer may depend on the client's address: directly, or through a metadata label.
    pub(super) fn reads_client(&self) -> bool {
        let variables = self.variables.iter().map(|(_, expression)| expression);
        let mut templates = self.answers.iter().chain(&self.additionals).chain(&self.authorities);
        variables.chain(&self.conditions).any(QueryExpression::reads_client)
            || templates.any(|template| template.root_fields().iter().any(|field| CLIENT_FIELDS.contains(field)))
    }

    /// Parses an expression that may use the variables so far and the capture groups of `match`.
    fn read_expression(&self, args: &mut Args<'_>) -> Result<QueryExpression, Problem> {
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (name.as_str(), value.result())).collect();
        expression_of(args, Names { variables: &variables, has_groups: true })
    }

    /// Resolves the metadata labels that its expressions read.
    pub(super) fn bind(&mut self, labels: &Labels) {
        let variables = self.variables.iter_mut().map(|(_, expression)| expression);
        variables.chain(&mut self.conditions).for_each(|expression| expression.bind(labels));
    }

    /// Returns the values of its variables for a query, or `None` if one of its conditions is false.
    ///
    /// # Errors
    /// A variable or a condition has no value, for example an index after the end of a list. CoreDNS answers SERVFAIL
    /// in this case.
    pub(super) fn values(
        &self,
        query: &Query,
        group: &dyn Fn(&Value) -> String,
    ) -> Result<Option<BTreeMap<String, Value>>, NoValueError> {
        let mut values = BTreeMap::new();
        for (name, expression) in &self.variables {
            let variable = |name: &str| values.get(name).cloned().unwrap_or_default();
            let value = expression.evaluate(query, Values { variable: &variable, group });
            let value = value.ok_or_else(|| NoValueError::Variable(name.clone()))?;
            values.insert(name.clone(), value);
        }
        let variable = |name: &str| values.get(name).cloned().unwrap_or_default();
        for condition in &self.conditions {
            match condition.evaluate(query, Values { variable: &variable, group }) {
                Some(Value::Bool(true)) => {}
                Some(_) => return Ok(None),
                None => return Err(NoValueError::Condition),
            }
        }
        Ok(Some(values))
    }
}

/// Expression without a value for a query, for example an index after the end of a list.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoValueError {
    /// Expression of the variable with this name.
    #[error("variable `{0}` has no value")]
    Variable(String),
    /// Expression of a condition.
    #[error("a condition has no value")]
    Condition,
}

/// Parses the arguments `CLASS TYPE [ZONES...]`.
pub(super) fn read_arguments(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let class = args.word()?;
    let rtype = args.word()?;
    let known: Class = mnemonic(args, class, "a class in capitals such as `IN`, or `ANY`", Class::mnemonic)?;
    config.class = (known != Class::ANY).then_some(known);
    let known: Type = mnemonic(args, rtype, "a type in capitals such as `A`, or `ANY`", Type::mnemonic)?;
    config.rtype = (known != Type::ANY).then_some(known);
    config.zones = args.zones()?;
    Ok(())
}

/// Returns the error of the record that a template makes of every name. `None` for a valid record, no record, or one
/// that depends on more than the question.
fn record_error(text: &str, rtype: Option<Type>) -> Option<String> {
    let mut line = String::new();
    let mut parts = text.split("{{");
    line.push_str(parts.next()?);
    for part in parts {
        let (field, rest) = part.split_once("}}")?;
        line.push_str(match field.trim() {
            ".Name" | ".Zone" => "example.",
            ".Class" => "IN",
            ".Type" => rtype?.mnemonic()?,
            _ => return None,
        });
        line.push_str(rest);
    }
    let line = super::first_entry(&line);
    let record = (!line.trim().is_empty()).then(|| zone::text::record(line, NameRef::ROOT, super::TTL))?;
    record.err().map(|error| error.to_string())
}

fn read_templates(args: &mut Args<'_>, rtype: Option<Type>) -> Result<Vec<Template>, Problem> {
    let mut templates = Vec::new();
    for word in args.take_rest() {
        let template = Template::parse(&args.name().text, &word.text).map_err(|ParseError { offset, error }| {
            let place = format!("at character {}: {error}", 1 + word.text.get(..offset).map_or(offset, count));
            args.problem_at(word.span, format!("could not compile template: {place}"))
        })?;
        if let Some(field) = template.root_fields().into_iter().find(|field| !FIELDS.contains(field)) {
            let near = match corefile::did_you_mean(field, FIELDS.into_iter()) {
                Some(near) => format!("did you mean `.{near}`?"),
                None => format!("the fields are `.{}`", FIELDS.join("`, `.")),
            };
            args.warn(word, format!("templates have no field `.{field}`, so the answer is SERVFAIL; {near}"));
        } else if let Some(error) = record_error(&word.text, rtype) {
            args.warn(word, format!("the answer is SERVFAIL, because this is not a record: {error}"));
        }
        templates.push(template);
    }
    Ok(templates)
}

fn count(text: &str) -> usize {
    text.chars().count()
}

pub(super) const PROPERTIES: &[Property<Config>] = &[
    Property {
        usage: Usage("match REGEX..."),
        default: ".*",
        doc: "Answer only names that match one of these expressions, in lower case with a trailing dot. Templates can \
              use the capture groups of the first match.",
        set: |config, args| {
            for word in args.take_rest() {
                config.matches.push(regular_expression(args, word)?);
            }
            Ok(())
        },
    },
    Property {
        usage: Usage("var NAME EXPRESSION..."),
        default: "",
        doc: "Variable with the value of an expression in the language of *view*: `.Var.NAME` in templates, `NAME` in \
              later expressions. `group(NAME)` and `group(INDEX)` are the groups of `match`. If it has no value, the \
              answer is SERVFAIL.",
        set: |config, args| {
            let word = args.word()?;
            let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
            let is_name =
                word.text.starts_with(is_start) && word.text.chars().all(|c| is_start(c) || c.is_ascii_digit());
            if !is_name || config.variables.iter().any(|(name, _)| *name == word.text) {
                return Err(args.bad(word, "a new name of letters, digits and `_`"));
            }
            if is_reserved(&word.text) {
                return Err(
                    args.problem_at(word.span, format!("`{}` is reserved in expressions; use another name", word.text))
                );
            }
            let expression = config.read_expression(args)?;
            config.variables.push((word.text.clone(), expression));
            Ok(())
        },
    },
    Property {
        usage: Usage("expr EXPRESSION..."),
        default: "",
        doc: "Answer only queries for which this expression in the language of *view* is true. If `expr` appears more \
              than once, all must be true. `group` is as in `var`. If it has no value, the answer is SERVFAIL.",
        set: |config, args| {
            let expression = config.read_expression(args)?;
            config.conditions.push(expression);
            Ok(())
        },
    },
    Property {
        usage: Usage("answer TEMPLATE..."),
        default: "",
        doc: "Templates for records in the answer section, one record each.",
        set: |config, args| {
            config.answers.extend(read_templates(args, config.rtype)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("additional TEMPLATE..."),
        default: "",
        doc: "Templates for records in the additional section.",
        set: |config, args| {
            config.additionals.extend(read_templates(args, config.rtype)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("authority TEMPLATE..."),
        default: "",
        doc: "Templates for records in the authority section. Without an SOA record here, resolvers do not cache \
              NXDOMAIN and NODATA responses.",
        set: |config, args| {
            config.authorities.extend(read_templates(args, config.rtype)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("rcode CODE"),
        default: "NOERROR",
        doc: "Response code in capitals. With SERVFAIL, REFUSED, FORMERR and NOTIMP, the response has no records.",
        set: |config, args| {
            let word = args.word()?;
            config.rcode = mnemonic(args, word, "a response code in capitals such as `NXDOMAIN`", Rcode::mnemonic)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("ederror CODE [TEXT]"),
        default: "",
        doc: "Extended DNS Error (RFC 8914) in responses to clients that use EDNS.",
        set: |config, args| {
            let code = EdeCode(args.number(0..=u16::MAX)?);
            config.ede = Some((code, args.next_word().map(|word| word.text.clone()).unwrap_or_default()));
            Ok(())
        },
    },
    Property {
        usage: Usage("fallthrough [ZONES...]"),
        default: "",
        doc: "Try the next template, and then the next plugin, if `match` or `expr` does not match: for all names, or \
              only for those in ZONES. Otherwise the query fails with SERVFAIL.",
        set: |config, args| {
            config.fallthrough = Some(args.zones_or_all()?);
            Ok(())
        },
    },
    Property {
        usage: Usage("upstream [WORDS...]"),
        default: "",
        doc: "Accepted for compatibility with CoreDNS. Aliases in answers are always resolved by this server.",
        set: |_, args| {
            args.take_rest();
            Ok(())
        },
    },
];
