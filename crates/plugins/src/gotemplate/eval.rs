//! What comes of a template for some data.

use core::fmt;
use std::fmt::Write;

use super::functions::Function;
use super::parse::{Base, Block, Node, Operand, Pipeline};
use crate::value::Value;

/// Octets of the longest text: as long as a message.
const OUTPUT_MAX: usize = 65_535;
/// Things that are done at most, loops included: a template is run while a client waits.
const STEPS_MAX: usize = 10_000;

/// Why a template has no text for some data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunError {
    TooLong,
    TooManySteps,
    NoField(String),
    /// Only functions take arguments.
    NotAFunction,
    BadArguments(&'static str),
    Incomparable(&'static str, &'static str),
    OutOfRange(i64),
    NotAList(&'static str),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::TooLong => write!(f, "the text is longer than {OUTPUT_MAX} octets"),
            RunError::TooManySteps => write!(f, "more than {STEPS_MAX} steps"),
            RunError::NoField(name) => write!(f, "can't evaluate field {name}"),
            RunError::NotAFunction => f.write_str("can't give argument to non-function"),
            RunError::BadArguments(function) => write!(f, "wrong arguments of {function}"),
            RunError::Incomparable(one, other) => write!(f, "incompatible types for comparison: {one} and {other}"),
            RunError::OutOfRange(at) => write!(f, "index out of range: {at}"),
            RunError::NotAList(kind) => write!(f, "range can't iterate over {kind}"),
        }
    }
}

/// The data that a template is run for.
pub(crate) trait Data {
    /// The value of a field of the data as a whole, `.Name`; `None` if there is none.
    fn field(&self, name: &str) -> Option<Value>;

    /// The value of a method with its arguments, `.Meta "label"`; `None` if there is none.
    fn method(&self, name: &str, args: &[Value]) -> Option<Value>;
}

/// A value, or the data as a whole.
#[derive(Clone)]
enum Thing {
    Data,
    Value(Value),
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// Runs a template.
pub(super) fn run(nodes: &[Node], data: &dyn Data) -> Result<String, RunError> {
    let variables = vec![(String::new(), Thing::Data)];
    let mut run = Run { data, output: String::new(), variables, steps: 0 };
    run.nodes(nodes, &Thing::Data)?;
    Ok(run.output)
}

struct Run<'d> {
    data: &'d dyn Data,
    output: String,
    variables: Vec<(String, Thing)>,
    steps: usize,
}

impl Run<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Thing) -> Result<Flow, RunError> {
        let known = self.variables.len();
        let mut flow = Flow::On;
        for node in nodes {
            flow = self.node(node, dot)?;
            if self.output.len() > OUTPUT_MAX {
                return Err(RunError::TooLong);
            }
            if flow != Flow::On {
                break;
            }
        }
        self.variables.truncate(known);
        Ok(flow)
    }

    fn node(&mut self, node: &Node, dot: &Thing) -> Result<Flow, RunError> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(RunError::TooManySteps);
        }
        match node {
            Node::Text(text) => self.output.push_str(text),
            Node::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    let _ = write!(self.output, "{}", value.into_value()?);
                }
            }
            Node::If(block) => return self.conditional(block, dot, false),
            Node::With(block) => return self.conditional(block, dot, true),
            Node::Range(block) => return self.range(block, dot),
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn conditional(&mut self, block: &Block, dot: &Thing, moves_dot: bool) -> Result<Flow, RunError> {
        let known = self.variables.len();
        let value = self.pipeline(&block.on, dot)?;
        let flow = match &value {
            value if !value.is_true() => self.nodes(&block.otherwise, dot)?,
            value => self.nodes(&block.then, if moves_dot { value } else { dot })?,
        };
        self.variables.truncate(known);
        Ok(flow)
    }

    fn range(&mut self, block: &Block, dot: &Thing) -> Result<Flow, RunError> {
        let known = self.variables.len();
        let pairs = pairs(self.pipeline(&block.on, dot)?.into_value()?)?;
        self.variables.truncate(known);
        self.steps += pairs.len();
        if pairs.is_empty() {
            return self.nodes(&block.otherwise, dot);
        }
        for (key, element) in pairs {
            let element = Thing::Value(element);
            match block.on.variables.as_slice() {
                [only] => self.variables.push((only.clone(), element.clone())),
                [first, second] => {
                    self.variables.push((first.clone(), Thing::Value(key)));
                    self.variables.push((second.clone(), element.clone()));
                }
                _ => {}
            }
            let flow = self.nodes(&block.then, &element)?;
            self.variables.truncate(known);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(Flow::On)
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Thing) -> Result<Thing, RunError> {
        let mut value = None;
        for command in &pipeline.commands {
            value = Some(self.command(command, value, dot)?);
        }
        let value = value.unwrap_or(Thing::Value(Value::Missing));
        for name in &pipeline.variables {
            let known = self.variables.iter_mut().rev().find(|(known, _)| known == name);
            match known.filter(|_| pipeline.assigns) {
                Some((_, known)) => *known = value.clone(),
                None => self.variables.push((name.clone(), value.clone())),
            }
        }
        Ok(value)
    }

    /// Runs a command; the value of the one before it is its last argument.
    fn command(&mut self, command: &[Operand], piped: Option<Thing>, dot: &Thing) -> Result<Thing, RunError> {
        let Some((first, rest)) = command.split_first() else { return Err(RunError::NotAFunction) };
        if let Base::Function(function @ (Function::And | Function::Or)) = first.base {
            return self.short_circuit(function, rest, piped, dot);
        }
        let mut args = Vec::with_capacity(rest.len() + 1);
        for operand in rest {
            args.push(self.operand(operand, dot)?.into_value()?);
        }
        if let Some(piped) = piped {
            args.push(piped.into_value()?);
        }
        match &first.base {
            Base::Function(function) => function.call(&args).map(Thing::Value),
            _ if args.is_empty() => self.operand(first, dot),
            _ => self.method(first, &args, dot),
        }
    }

    /// `and` and `or` look at no argument behind the one that decides.
    fn short_circuit(
        &mut self,
        function: Function,
        operands: &[Operand],
        piped: Option<Thing>,
        dot: &Thing,
    ) -> Result<Thing, RunError> {
        let decides = |value: &Thing| value.is_true() == (function == Function::Or);
        let mut last = None;
        for operand in operands {
            let value = self.operand(operand, dot)?;
            if decides(&value) {
                return Ok(value);
            }
            last = Some(value);
        }
        piped.or(last).ok_or(RunError::BadArguments("and, or"))
    }

    fn method(&self, operand: &Operand, args: &[Value], dot: &Thing) -> Result<Thing, RunError> {
        let of_data = match (&operand.base, dot) {
            (Base::Dot, Thing::Data) => true,
            (Base::Variable(name), _) => name.is_empty(),
            _ => false,
        };
        match operand.fields.as_slice() {
            [name] if of_data => {
                self.data.method(name, args).map(Thing::Value).ok_or_else(|| RunError::NoField(name.clone()))
            }
            _ => Err(RunError::NotAFunction),
        }
    }

    fn operand(&mut self, operand: &Operand, dot: &Thing) -> Result<Thing, RunError> {
        let base = match &operand.base {
            Base::Dot => dot.clone(),
            Base::Constant(value) => Thing::Value(value.clone()),
            Base::Variable(name) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                found.map_or(Thing::Value(Value::Missing), |(_, value)| value.clone())
            }
            Base::Function(function) => Thing::Value(function.call(&[])?),
            Base::Nested(pipeline) => self.pipeline(pipeline, dot)?,
        };
        operand.fields.iter().try_fold(base, |thing, name| {
            let value = match &thing {
                Thing::Data => self.data.field(name),
                Thing::Value(Value::Map(map)) => Some(map.get(name).cloned().unwrap_or_default()),
                Thing::Value(_) => None,
            };
            value.map(Thing::Value).ok_or_else(|| RunError::NoField(name.clone()))
        })
    }
}

impl Thing {
    fn is_true(&self) -> bool {
        match self {
            Thing::Data => true,
            Thing::Value(value) => value.is_true(),
        }
    }

    fn into_value(self) -> Result<Value, RunError> {
        match self {
            Thing::Value(value) => Ok(value),
            Thing::Data => Err(RunError::BadArguments("the data as a whole")),
        }
    }
}

/// What a loop goes over: places or keys, and elements.
fn pairs(value: Value) -> Result<Vec<(Value, Value)>, RunError> {
    let place = |at: usize| Value::Integer(i64::try_from(at).unwrap_or(i64::MAX));
    match value {
        Value::List(list) => Ok(list.into_iter().enumerate().map(|(at, element)| (place(at), element)).collect()),
        Value::Map(map) => Ok(map.into_iter().map(|(key, element)| (Value::Text(key), element)).collect()),
        Value::Integer(count) => {
            let count = usize::try_from(count).unwrap_or(0);
            if count > STEPS_MAX {
                return Err(RunError::TooManySteps);
            }
            Ok((0..count).map(|at| (place(at), place(at))).collect())
        }
        Value::Missing => Ok(Vec::new()),
        other => Err(RunError::NotAList(other.kind())),
    }
}
