//! Interpreter for parsed templates.

use std::fmt::Write;

use super::error::{DEPTH_MAX, ExecuteError, OUTPUT_MAX, STEPS_MAX};
use super::functions::Function;
use super::parse::{Base, Block, Node, Operand, Pipeline, Templates};
use crate::value::Value;

/// Data that a template runs on.
pub trait Data {
    /// Value of a top-level field such as `.Name`; `None` if it does not exist.
    fn field(&self, name: &str) -> Option<Value>;

    /// Result of a method call such as `.Meta "label"`; `None` if the method does not exist.
    fn method(&self, name: &str, args: &[Value]) -> Option<Value>;
}

/// Value, or the data itself.
#[derive(Clone)]
enum Datum {
    Root,
    Value(Value),
}

/// Control flow after a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// Executes a template and returns its output.
pub(super) fn run(templates: &Templates, data: &dyn Data) -> Result<String, ExecuteError> {
    let variables = vec![(String::new(), Datum::Root)];
    let mut run = Run { templates, data, output: String::new(), variables, steps: 0, depth: 0 };
    run.nodes(&templates.root, &Datum::Root)?;
    Ok(run.output)
}

struct Run<'d> {
    templates: &'d Templates,
    data: &'d dyn Data,
    output: String,
    variables: Vec<(String, Datum)>,
    steps: usize,
    depth: usize,
}

impl Run<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Datum) -> Result<Flow, ExecuteError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ExecuteError::TooDeep);
        }
        let known = self.variables.len();
        let mut flow = Flow::Next;
        for node in nodes {
            flow = self.node(node, dot)?;
            if self.output.len() > OUTPUT_MAX {
                return Err(ExecuteError::TooLong);
            }
            if flow != Flow::Next {
                break;
            }
        }
        self.variables.truncate(known);
        self.depth -= 1;
        Ok(flow)
    }

    fn node(&mut self, node: &Node, dot: &Datum) -> Result<Flow, ExecuteError> {
        self.step(1)?;
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
            Node::Template(name, on) => self.template(name, on.as_ref(), dot)?,
        }
        Ok(Flow::Next)
    }

    fn step(&mut self, count: usize) -> Result<(), ExecuteError> {
        self.steps += count;
        if self.steps > STEPS_MAX { Err(ExecuteError::TooManySteps) } else { Ok(()) }
    }

    /// Executes another template. Inside, dot is the value of the pipeline, and outer variables are not visible.
    fn template(&mut self, name: &str, on: Option<&Pipeline>, dot: &Datum) -> Result<(), ExecuteError> {
        let templates = self.templates;
        let nodes = templates.named.get(name).ok_or_else(|| ExecuteError::UnknownTemplate(name.to_owned()))?;
        let data = match on {
            Some(pipeline) => self.pipeline(pipeline, dot)?,
            None => Datum::Value(Value::Nil),
        };
        let outer = core::mem::replace(&mut self.variables, vec![(String::new(), data.clone())]);
        self.nodes(nodes, &data)?;
        self.variables = outer;
        Ok(())
    }

    fn conditional(&mut self, block: &Block, dot: &Datum, moves_dot: bool) -> Result<Flow, ExecuteError> {
        let known = self.variables.len();
        let value = self.pipeline(&block.on, dot)?;
        let flow = match &value {
            value if !value.is_true() => self.nodes(&block.otherwise, dot)?,
            value => self.nodes(&block.then, if moves_dot { value } else { dot })?,
        };
        self.variables.truncate(known);
        Ok(flow)
    }

    fn range(&mut self, block: &Block, dot: &Datum) -> Result<Flow, ExecuteError> {
        let known = self.variables.len();
        let pipeline = &block.on;
        let value = self.piped(pipeline, dot)?;
        let two = pipeline.variables.len() == 2;
        if !pipeline.assigns {
            // Until the first iteration, and in the `else` part, the variables hold the value of the pipeline, as in
            // Go.
            self.assign(pipeline, &value);
        }
        let mut flow = Flow::Next;
        let pairs = pairs(value.into_value()?, two)?;
        self.step(pairs.len())?;
        if pairs.is_empty() {
            flow = self.nodes(&block.otherwise, dot)?;
        }
        for (key, element) in pairs {
            let element = Datum::Value(element);
            match pipeline.variables.as_slice() {
                [only] => self.set(only, &element),
                [first, second] => {
                    self.set(first, &Datum::Value(key));
                    self.set(second, &element);
                }
                _ => {}
            }
            if self.nodes(&block.then, &element)? == Flow::Break {
                break;
            }
        }
        self.variables.truncate(known);
        Ok(flow)
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Datum) -> Result<Datum, ExecuteError> {
        let value = self.piped(pipeline, dot)?;
        self.assign(pipeline, &value);
        Ok(value)
    }

    /// Assigns a value to the variables of a pipeline.
    fn assign(&mut self, pipeline: &Pipeline, value: &Datum) {
        for name in &pipeline.variables {
            match pipeline.assigns {
                true => self.set(name, value),
                false => self.variables.push((name.clone(), value.clone())),
            }
        }
    }

    fn set(&mut self, name: &str, value: &Datum) {
        if let Some((_, known)) = self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            *known = value.clone();
        }
    }

    fn piped(&mut self, pipeline: &Pipeline, dot: &Datum) -> Result<Datum, ExecuteError> {
        let mut value = None;
        for command in &pipeline.commands {
            value = Some(self.command(command, value, dot)?);
        }
        Ok(value.unwrap_or(Datum::Value(Value::Nil)))
    }

    /// Executes a command. `piped` is the value of the previous command and becomes the last argument.
    fn command(&mut self, command: &[Operand], piped: Option<Datum>, dot: &Datum) -> Result<Datum, ExecuteError> {
        let Some((first, rest)) = command.split_first() else { return Err(ExecuteError::NotAFunction) };
        self.step(command.len())?;
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
            Base::Function(function) => function.call(&args).map(Datum::Value),
            _ if args.is_empty() => self.operand(first, dot),
            _ => self.method(first, &args, dot),
        }
    }

    /// Evaluates `and` or `or`. Stops at the first argument that decides the result, as in Go.
    fn short_circuit(
        &mut self,
        function: Function,
        operands: &[Operand],
        piped: Option<Datum>,
        dot: &Datum,
    ) -> Result<Datum, ExecuteError> {
        let decides = |value: &Datum| value.is_true() == (function == Function::Or);
        let mut last = None;
        for operand in operands {
            let value = self.operand(operand, dot)?;
            if decides(&value) {
                return Ok(value);
            }
            last = Some(value);
        }
        piped.or(last).ok_or(ExecuteError::BadArguments("and, or"))
    }

    fn method(&self, operand: &Operand, args: &[Value], dot: &Datum) -> Result<Datum, ExecuteError> {
        let of_data = match (&operand.base, dot) {
            (Base::Dot, Datum::Root) => true,
            (Base::Variable(name), _) => name.is_empty(),
            _ => false,
        };
        match operand.fields.as_slice() {
            [name] if of_data => {
                self.data.method(name, args).map(Datum::Value).ok_or_else(|| ExecuteError::UnknownField(name.clone()))
            }
            _ => Err(ExecuteError::NotAFunction),
        }
    }

    fn operand(&mut self, operand: &Operand, dot: &Datum) -> Result<Datum, ExecuteError> {
        let base = match &operand.base {
            Base::Dot => dot.clone(),
            Base::Constant(value) => Datum::Value(value.clone()),
            Base::Variable(name) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                found.map_or(Datum::Value(Value::Nil), |(_, value)| value.clone())
            }
            Base::Function(function) => Datum::Value(function.call(&[])?),
            Base::Nested(pipeline) => self.pipeline(pipeline, dot)?,
        };
        operand.fields.iter().try_fold(base, |datum, name| {
            let value = match &datum {
                Datum::Root => self.data.field(name),
                Datum::Value(Value::Map(map)) => Some(map.get(name).cloned().unwrap_or_default()),
                Datum::Value(Value::Struct(fields)) => {
                    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
                }
                Datum::Value(_) => None,
            };
            value.map(Datum::Value).ok_or_else(|| ExecuteError::UnknownField(name.clone()))
        })
    }
}

impl Datum {
    fn is_true(&self) -> bool {
        match self {
            Datum::Root => true,
            Datum::Value(value) => value.is_true(),
        }
    }

    fn into_value(self) -> Result<Value, ExecuteError> {
        match self {
            Datum::Value(value) => Ok(value),
            Datum::Root => Err(ExecuteError::BadArguments("the data as a whole")),
        }
    }
}

/// Pairs of index or key and element that `range` iterates over. With two variables, Go cannot iterate over an integer.
fn pairs(value: Value, two: bool) -> Result<Vec<(Value, Value)>, ExecuteError> {
    let place = |at: usize| Value::Integer(i64::try_from(at).unwrap_or(i64::MAX));
    match value {
        Value::List(list) => Ok(list.into_iter().enumerate().map(|(at, element)| (place(at), element)).collect()),
        Value::Map(map) => Ok(map.into_iter().map(|(key, element)| (Value::Text(key), element)).collect()),
        Value::Integer(count) if !two => {
            let count = usize::try_from(count).unwrap_or(0);
            if count > STEPS_MAX {
                return Err(ExecuteError::TooManySteps);
            }
            Ok((0..count).map(|at| (place(at), place(at))).collect())
        }
        Value::Nil => Ok(Vec::new()),
        other => Err(ExecuteError::NotIterable(other.kind())),
    }
}
