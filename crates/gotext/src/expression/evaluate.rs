//! Evaluation of an expression in an environment.

use core::cell::{Cell, RefCell};
use core::net::IpAddr;
use std::borrow::Cow;

use super::environment::Environment;
use super::functions;
use super::indexing::{index, slice};
use super::parse::{Node, Operator};
use super::signatures::Function;
use crate::regexp::Regexp;
use crate::value::Value;

/// Maximum number of steps of an evaluation: nodes that are evaluated, elements of lists that are built, and each
/// [`TEXT_STEP`] bytes of texts that are built. They take a few milliseconds, and bound the memory too.
const STEPS_MAX: usize = 50_000;
/// Bytes of a text that count as a step.
const TEXT_STEP: usize = 16;
/// Steps that a computed regular expression takes, so that an evaluation compiles at most nine. Each takes up to a
/// millisecond and 64 KiB.
const COMPILE_STEPS: usize = STEPS_MAX / 10;
/// Maximum number of elements in a range, minus one.
const RANGE_MAX: i64 = 1000;

/// Evaluation of an expression.
pub(super) struct Evaluation<'e, E: Environment> {
    pub(super) environment: &'e E,
    /// Functions of the environment that the expression calls.
    pub(super) functions: &'e [E::Function],
    /// Values of local names, in the order of their declaration.
    locals: RefCell<Vec<Value>>,
    /// Number of steps so far.
    steps: Cell<usize>,
}

impl<'e, E: Environment> Evaluation<'e, E> {
    pub(super) fn new(environment: &'e E, functions: &'e [E::Function]) -> Evaluation<'e, E> {
        Evaluation { environment, functions, locals: RefCell::default(), steps: Cell::new(0) }
    }

    /// Evaluates a node. Returns `None` if it has no value, or if the evaluation takes too many steps.
    pub(super) fn value(&self, node: &Node) -> Option<Value> {
        let value = self.compute(node)?;
        let cost = match (&value, node) {
            // Constants and variables exist already.
            (_, Node::Constant(_) | Node::Variable(_)) => 0,
            (Value::List(list), _) => list.len(),
            (Value::Map(map), _) => map.len(),
            (Value::Text(text), _) => text.len() / TEXT_STEP,
            _ => 0,
        };
        self.steps.set(self.steps.get() + cost + 1);
        (self.steps.get() <= STEPS_MAX).then_some(value)
    }

    fn compute(&self, node: &Node) -> Option<Value> {
        Some(match node {
            Node::Constant(value) => value.clone(),
            Node::Variable(name) => self.environment.variable(name),
            Node::Call(function, args) => self.call(*function, args)?,
            Node::External(function, args) => self.external(self.functions.get(*function)?, args)?,
            Node::InNetwork(address, network) => Value::Bool(network.contains(&self.address(address)?)),
            Node::Not(inner) => Value::Bool(!self.flag(inner)?),
            Node::Negative(inner) => match self.value(inner)? {
                Value::Integer(number) => Value::Integer(number.checked_neg()?),
                value => Value::Float(-value.number()?),
            },
            Node::Binary(operator, one, other) => self.binary(*operator, one, other)?,
            Node::Matches(text, regex) => Value::Bool(regex.is_match(&self.text(text)?)),
            Node::MatchesComputed(parts) => self.matches_computed(parts)?,
            Node::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                self.value(if self.flag(condition)? { yes } else { no })?
            }
            Node::List(parts) => Value::List(parts.iter().map(|part| self.value(part)).collect::<Option<_>>()?),
            Node::Sequence(parts) => {
                let (last, before) = parts.split_last()?;
                before.iter().try_for_each(|part| self.value(part).map(drop))?;
                self.value(last)?
            }
            Node::Let(parts) => {
                let [value, body] = &**parts;
                let value = self.value(value)?;
                self.with_locals([value], body)?
            }
            Node::Local(at) => self.locals.borrow().get(*at)?.clone(),
            Node::Each(each, parts) => self.each(*each, parts)?,
            Node::Map(pairs) => {
                let pair = |(key, value): &(Node, Node)| match self.value(key)? {
                    key @ (Value::Text(_) | Value::Integer(_)) => Some((key.to_string(), self.value(value)?)),
                    _ => None,
                };
                Value::Map(pairs.iter().map(pair).collect::<Option<_>>()?)
            }
            Node::Member(whole, name, is_optional) => match self.value(whole)? {
                Value::Map(mut map) => map.remove(name).unwrap_or_default(),
                Value::Nil if *is_optional => Value::Nil,
                _ => return None,
            },
            Node::Index(whole, at) => index(&self.value(whole)?, &self.value(at)?)?,
            Node::Slice(whole, from, to) => {
                let place = |node: &Option<Box<Node>>| match node {
                    None => Some(None),
                    Some(node) => self.value(node).map(Some),
                };
                slice(&self.value(whole)?, place(from)?, place(to)?)?
            }
        })
    }

    /// Evaluates a node with further local values.
    fn with_locals(&self, values: impl IntoIterator<Item = Value>, body: &Node) -> Option<Value> {
        let known = self.locals.borrow().len();
        self.locals.borrow_mut().extend(values);
        let value = self.value(body);
        self.locals.borrow_mut().truncate(known);
        value
    }

    /// Evaluates a predicate for an element at an index, and the result so far of `reduce`.
    pub(super) fn with_element(
        &self,
        predicate: &Node,
        element: &Value,
        at: usize,
        result: Option<Value>,
    ) -> Option<Value> {
        let at = Value::Integer(i64::try_from(at).ok()?);
        self.with_locals([element.clone(), at].into_iter().chain(result), predicate)
    }

    /// Evaluates a node without copying constants.
    fn value_ref<'n>(&self, node: &'n Node) -> Option<Cow<'n, Value>> {
        match node {
            Node::Constant(value) => Some(Cow::Borrowed(value)),
            _ => self.value(node).map(Cow::Owned),
        }
    }

    fn flag(&self, node: &Node) -> Option<bool> {
        if let Value::Bool(flag) = self.value(node)? { Some(flag) } else { None }
    }

    fn text(&self, node: &Node) -> Option<String> {
        if let Value::Text(text) = self.value(node)? { Some(text) } else { None }
    }

    /// Evaluates an address.
    fn address(&self, node: &Node) -> Option<IpAddr> {
        let external = match node {
            Node::External(function, _) => self.environment.address(self.functions.get(*function)?),
            _ => None,
        };
        if external.is_some() { external } else { self.text(node)?.parse().ok() }
    }

    /// Calls a function of the environment. Up to one argument needs no allocation for the arguments.
    fn external(&self, function: &E::Function, args: &[Node]) -> Option<Value> {
        match args {
            [] => self.environment.call(function, &[]),
            [only] => self.environment.call(function, &[self.value(only)?]),
            _ => {
                let args: Vec<Value> = args.iter().map(|arg| self.value(arg)).collect::<Option<_>>()?;
                self.environment.call(function, &args)
            }
        }
    }

    /// Tests a text with a computed regular expression. As in expr, `nil` does not match and is not matched.
    fn matches_computed(&self, [text, pattern]: &[Node; 2]) -> Option<Value> {
        let (text, pattern) = match (self.value(text)?, self.value(pattern)?) {
            (Value::Text(text), Value::Text(pattern)) => (text, pattern),
            (Value::Nil, _) | (_, Value::Nil) => return Some(Value::Bool(false)),
            _ => return None,
        };
        self.steps.set(self.steps.get() + COMPILE_STEPS + text.len());
        if self.steps.get() > STEPS_MAX {
            return None;
        }
        let regex = Regexp::compile_computed(&pattern).ok()?;
        Some(Value::Bool(regex.is_match(&text)))
    }

    fn binary(&self, operator: Operator, one: &Node, other: &Node) -> Option<Value> {
        match operator {
            Operator::Or => return Some(Value::Bool(self.flag(one)? || self.flag(other)?)),
            Operator::And => return Some(Value::Bool(self.flag(one)? && self.flag(other)?)),
            Operator::Coalesce => {
                let value = self.value(one)?;
                return if value == Value::Nil { self.value(other) } else { Some(value) };
            }
            _ => {}
        }
        operate(operator, &*self.value_ref(one)?, &*self.value_ref(other)?)
    }

    fn call(&self, function: Function, args: &[Node]) -> Option<Value> {
        if let (Function::InNetwork, [address, network]) = (function, args) {
            let network: ipnet::IpNet = self.text(network)?.parse().ok()?;
            return Some(Value::Bool(network.contains(&self.address(address)?)));
        }
        let args: Vec<Value> = args.iter().map(|arg| self.value(arg)).collect::<Option<_>>()?;
        functions::apply(function, &args)
    }
}

fn operate(operator: Operator, one: &Value, other: &Value) -> Option<Value> {
    use Operator as O;
    let texts = || match (one, other) {
        (Value::Text(one), Value::Text(other)) => Some((one, other)),
        _ => None,
    };
    Some(match operator {
        O::Equal => Value::Bool(equal(one, other)),
        O::Unequal => Value::Bool(!equal(one, other)),
        O::Less => Value::Bool(one.order(other)?.is_lt()),
        O::LessOrEqual => Value::Bool(one.order(other)?.is_le()),
        O::Greater => Value::Bool(one.order(other)?.is_gt()),
        O::GreaterOrEqual => Value::Bool(one.order(other)?.is_ge()),
        O::In => match other {
            Value::List(list) => Value::Bool(list.iter().any(|element| equal(one, element))),
            Value::Map(map) => Value::Bool(matches!(one, Value::Text(key) if map.contains_key(key))),
            _ => return None,
        },
        O::Contains => texts().map(|(one, other)| Value::Bool(one.contains(other.as_str())))?,
        O::StartsWith => texts().map(|(one, other)| Value::Bool(one.starts_with(other.as_str())))?,
        O::EndsWith => texts().map(|(one, other)| Value::Bool(one.ends_with(other.as_str())))?,
        O::Add if texts().is_some() => texts().map(|(one, other)| Value::Text(format!("{one}{other}")))?,
        O::Range => range(one, other)?,
        _ => arithmetic(operator, one, other)?,
    })
}

/// Returns true if two values are equal. Numbers are compared by value, independent of their types.
fn equal(one: &Value, other: &Value) -> bool {
    one == other || one.number().is_some_and(|number| other.number() == Some(number))
}

fn range(one: &Value, other: &Value) -> Option<Value> {
    let (Value::Integer(first), Value::Integer(last)) = (one, other) else { return None };
    if last.checked_sub(*first)? > RANGE_MAX {
        return None;
    }
    Some(Value::List((*first..=*last).map(Value::Integer).collect()))
}

fn arithmetic(operator: Operator, one: &Value, other: &Value) -> Option<Value> {
    use Operator as O;
    if let (Value::Integer(one), Value::Integer(other)) = (one, other) {
        match operator {
            O::Add => return one.checked_add(*other).map(Value::Integer),
            O::Subtract => return one.checked_sub(*other).map(Value::Integer),
            O::Multiply => return one.checked_mul(*other).map(Value::Integer),
            O::Remainder => return one.checked_rem(*other).map(Value::Integer),
            _ => {}
        }
    }
    let (one, other) = (one.number()?, other.number()?);
    Some(Value::Float(match operator {
        O::Add => one + other,
        O::Subtract => one - other,
        O::Multiply => one * other,
        O::Divide => one / other,
        O::Power => one.powf(other),
        _ => return None,
    }))
}
