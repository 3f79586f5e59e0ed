//! From tokens to a tree.

use core::fmt;

use super::functions::Function;
use super::lex::{Kind, Piece, Token, pieces};
use crate::value::Value;

/// Octets of the longest template: records are shorter than a message.
const TEMPLATE_MAX: usize = 65_536;
/// Parentheses and blocks that may stand in each other: far more than people write, and no danger to the stack.
const DEPTH_MAX: usize = 100;

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    TooDeep,
    /// It ends inside of this.
    Unclosed(&'static str),
    /// This stands where it means nothing.
    Unexpected(String),
    /// A backslash does not begin an escape.
    BadEscape,
    /// There is no function of this name.
    NoFunction(String),
    /// There is no variable of this name.
    NoVariable(String),
    /// Something is missing that must stand here.
    Expected(&'static str),
    /// Go has it, and this has not.
    NotHere(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "it is longer than {TEMPLATE_MAX} octets"),
            Fault::TooDeep => write!(f, "more than {DEPTH_MAX} levels stand in each other"),
            Fault::Unclosed(what) => write!(f, "it ends inside of {what}"),
            Fault::Unexpected(what) => write!(f, "unexpected `{what}`"),
            Fault::BadEscape => f.write_str("a backslash does not begin an escape"),
            Fault::NoFunction(name) => write!(f, "function \"{name}\" not defined"),
            Fault::NoVariable(name) => write!(f, "undefined variable \"${name}\""),
            Fault::Expected(what) => write!(f, "{what} is missing"),
            Fault::NotHere(what) => write!(f, "`{what}` is not supported here"),
        }
    }
}

/// A list of things to do one after the other.
pub(super) type Nodes = Vec<Node>;

#[derive(Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    /// Prints the value, unless it goes into variables.
    Action(Pipeline),
    If(Block),
    With(Block),
    Range(Block),
    Break,
    Continue,
}

/// A block with a condition, and what holds otherwise.
#[derive(Debug, PartialEq)]
pub(super) struct Block {
    pub(super) on: Pipeline,
    pub(super) then: Nodes,
    pub(super) otherwise: Nodes,
}

/// Commands, each given the value of the one before as its last argument.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Pipeline {
    /// The variables that take the value.
    pub(super) variables: Vec<String>,
    /// They are there already.
    pub(super) assigns: bool,
    pub(super) commands: Vec<Vec<Operand>>,
}

/// A thing with a value.
#[derive(Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) base: Base,
    /// The fields behind it.
    pub(super) fields: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Base {
    Dot,
    Constant(Value),
    Variable(String),
    Function(Function),
    Nested(Pipeline),
}

/// Reads a template.
///
/// # Errors
/// What is wrong with it, and at which octet.
pub(super) fn parse(template: &str) -> Result<Nodes, (usize, Fault)> {
    if template.len() > TEMPLATE_MAX {
        return Err((TEMPLATE_MAX, Fault::TooLong));
    }
    let pieces = pieces(template)?;
    let end = template.len();
    let mut parser = Parser { pieces: pieces.into_iter(), end, variables: vec![String::new()], depth: 0, loops: 0 };
    let (nodes, ending) = parser.nodes()?;
    match ending {
        None => Ok(nodes),
        Some(ending) => Err((ending.at, Fault::Unexpected(ending.word.to_owned()))),
    }
}

struct Parser {
    pieces: std::vec::IntoIter<Piece>,
    end: usize,
    variables: Vec<String>,
    depth: usize,
    loops: usize,
}

type Outcome<T> = Result<T, (usize, Fault)>;

/// The action that ends a list: `end`, or `else` with what follows it.
struct Ending {
    word: &'static str,
    at: usize,
    rest: Vec<Token>,
}

impl Parser {
    /// Reads up to the end, or up to an `else` or `end`.
    fn nodes(&mut self) -> Outcome<(Nodes, Option<Ending>)> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let tokens = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action(tokens) => tokens,
            };
            let Some(Token { kind: Kind::Word(word), at, .. }) = tokens.first() else {
                nodes.push(Node::Action(self.pipeline(&tokens)?));
                continue;
            };
            let at = *at;
            match word.as_str() {
                "end" => return Ok((nodes, Some(Ending { word: "end", at, rest: tokens[1..].to_vec() }))),
                "else" => return Ok((nodes, Some(Ending { word: "else", at, rest: tokens[1..].to_vec() }))),
                "if" => nodes.push(Node::If(self.block(&tokens[1..], at, "if")?)),
                "with" => nodes.push(Node::With(self.block(&tokens[1..], at, "with")?)),
                "range" => nodes.push(Node::Range(self.block(&tokens[1..], at, "range")?)),
                "break" if self.loops > 0 => nodes.push(Node::Break),
                "continue" if self.loops > 0 => nodes.push(Node::Continue),
                "template" | "define" | "block" => return Err((at, Fault::NotHere(word.clone()))),
                _ => nodes.push(Node::Action(self.pipeline(&tokens)?)),
            }
        }
        Ok((nodes, None))
    }

    /// Reads a block up to its `end`; `else if` is a block in the place of the rest.
    fn block(&mut self, tokens: &[Token], at: usize, word: &'static str) -> Outcome<Block> {
        self.deeper(at)?;
        let known = self.variables.len();
        let on = self.pipeline(tokens)?;
        if on.commands.is_empty() {
            return Err((at, Fault::Expected("a value")));
        }
        self.loops += usize::from(word == "range");
        let (then, ending) = self.nodes()?;
        self.loops -= usize::from(word == "range");
        let ending = ending.ok_or((self.end, Fault::Unclosed("a block: `{{ end }}` is missing")))?;
        let otherwise = match (ending.word, ending.rest.split_first()) {
            ("end", None) => Vec::new(),
            ("else", None) => self.last_part()?,
            ("else", Some((Token { kind: Kind::Word(next), at, .. }, rest))) if next == "if" && word == "if" => {
                vec![Node::If(self.block(rest, *at, "if")?)]
            }
            ("else", Some((Token { kind: Kind::Word(next), at, .. }, rest))) if next == "with" && word == "with" => {
                vec![Node::With(self.block(rest, *at, "with")?)]
            }
            (_, Some((token, _))) => return Err((token.at, Fault::Unexpected(token.kind.to_string()))),
            (_, None) => return Err((ending.at, Fault::Unexpected(ending.word.to_owned()))),
        };
        self.variables.truncate(known);
        self.depth -= 1;
        Ok(Block { on, then, otherwise })
    }

    /// Reads what stands between `else` and `end`.
    fn last_part(&mut self) -> Outcome<Nodes> {
        let (nodes, ending) = self.nodes()?;
        match ending {
            Some(Ending { word: "end", rest, .. }) if rest.is_empty() => Ok(nodes),
            Some(ending) => Err((ending.at, Fault::Unexpected(ending.word.to_owned()))),
            None => Err((self.end, Fault::Unclosed("a block: `{{ end }}` is missing"))),
        }
    }

    fn deeper(&mut self, at: usize) -> Outcome<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err((at, Fault::TooDeep)) } else { Ok(()) }
    }

    /// Reads `[$a[, $b] :=|=] COMMAND | COMMAND …`.
    fn pipeline(&mut self, tokens: &[Token]) -> Outcome<Pipeline> {
        let (variables, assigns, rest) = self.declarations(tokens)?;
        let mut commands = Vec::new();
        let mut rest = Cursor { tokens: rest, end: self.end };
        while !rest.tokens.is_empty() {
            commands.push(self.command(&mut rest)?);
            if rest.take_mark("|") && rest.tokens.is_empty() {
                return Err((rest.at(), Fault::Expected("a command behind `|`")));
            }
        }
        if commands.is_empty() {
            return Err((rest.at(), Fault::Expected("a value")));
        }
        for variable in &variables {
            if assigns && !self.variables.contains(variable) {
                return Err((rest.at(), Fault::NoVariable(variable.clone())));
            }
        }
        if !assigns {
            self.variables.extend(variables.iter().cloned());
        }
        Ok(Pipeline { variables, assigns, commands })
    }

    /// Takes the variables in front of a pipeline.
    fn declarations<'t>(&self, tokens: &'t [Token]) -> Outcome<(Vec<String>, bool, &'t [Token])> {
        let name = |at: usize| match tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Variable(name)) => Some(name.clone()),
            _ => None,
        };
        let mark = |at: usize| match tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Mark(mark)) => *mark,
            _ => "",
        };
        let (variables, at) = match (name(0), mark(1), name(2)) {
            (Some(one), ",", Some(two)) => (vec![one, two], 3),
            (Some(one), ":=" | "=", _) => (vec![one], 1),
            _ => return Ok((Vec::new(), false, tokens)),
        };
        match mark(at) {
            ":=" => Ok((variables, false, &tokens[at + 1..])),
            "=" => Ok((variables, true, &tokens[at + 1..])),
            _ => Err((tokens[at - 1].at, Fault::Expected("`:=`"))),
        }
    }

    /// Reads operands up to `|`, a closing parenthesis or the end.
    fn command(&mut self, rest: &mut Cursor<'_>) -> Outcome<Vec<Operand>> {
        let mut operands = Vec::new();
        while !matches!(rest.mark(), Some("|" | ")")) && !rest.tokens.is_empty() {
            let crowded = rest.tokens.first().filter(|token| token.joined && !operands.is_empty());
            if let Some(token) = crowded {
                return Err((token.at, Fault::Unexpected(token.kind.to_string())));
            }
            let operand = self.operand(rest, operands.is_empty())?;
            operands.push(operand);
        }
        if operands.is_empty() { Err((rest.at(), Fault::Expected("a value"))) } else { Ok(operands) }
    }

    fn operand(&mut self, rest: &mut Cursor<'_>, is_first: bool) -> Outcome<Operand> {
        let token = rest.take()?;
        let unexpected = || (token.at, Fault::Unexpected(token.kind.to_string()));
        let mut fields = Vec::new();
        let base = match &token.kind {
            Kind::Dot => Base::Dot,
            Kind::Constant(value) => Base::Constant(value.clone()),
            Kind::Field(name) => {
                fields.push(name.clone());
                Base::Dot
            }
            Kind::Variable(name) if self.variables.contains(name) => Base::Variable(name.clone()),
            Kind::Variable(name) => return Err((token.at, Fault::NoVariable(name.clone()))),
            Kind::Word(name) => {
                let function = Function::of(name).map_err(|fault| (token.at, fault))?;
                return if is_first {
                    Ok(Operand { base: Base::Function(function), fields })
                } else {
                    Err(unexpected())
                };
            }
            Kind::Mark("(") => self.nested(rest, token.at)?,
            Kind::Mark(_) => return Err(unexpected()),
        };
        while let Some(Token { kind: Kind::Field(name), joined: true, .. }) = rest.tokens.first() {
            fields.push(name.clone());
            rest.tokens = &rest.tokens[1..];
        }
        Ok(Operand { base, fields })
    }

    /// Reads what stands in parentheses, the first of them taken already.
    fn nested(&mut self, rest: &mut Cursor<'_>, at: usize) -> Outcome<Base> {
        self.deeper(at)?;
        let mut commands = vec![self.command(rest)?];
        while rest.take_mark("|") {
            commands.push(self.command(rest)?);
        }
        if !rest.take_mark(")") {
            return Err((at, Fault::Unclosed("parentheses")));
        }
        self.depth -= 1;
        Ok(Base::Nested(Pipeline { commands, ..Pipeline::default() }))
    }
}

/// The tokens of an action that are left.
struct Cursor<'t> {
    tokens: &'t [Token],
    end: usize,
}

impl<'t> Cursor<'t> {
    fn at(&self) -> usize {
        self.tokens.first().map_or(self.end, |token| token.at)
    }

    fn mark(&self) -> Option<&'static str> {
        match self.tokens.first()?.kind {
            Kind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    fn take(&mut self) -> Outcome<&'t Token> {
        let (first, rest) = self.tokens.split_first().ok_or((self.end, Fault::Expected("a value")))?;
        self.tokens = rest;
        Ok(first)
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let is_there = self.mark() == Some(mark);
        if is_there {
            self.tokens = &self.tokens[1..];
        }
        is_there
    }
}
