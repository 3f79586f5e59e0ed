//! Parser: builds a tree from tokens.

use std::collections::BTreeMap;

use super::error::{LEVELS_MAX, TEMPLATE_MAX, TemplateError};
use super::functions::Function;
use super::lex::{Segment, Token, TokenKind, segments};
use crate::ParseError;
use crate::value::Value;

/// Nodes to execute in order.
pub(super) type Nodes = Vec<Node>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    /// Prints the value, unless the pipeline assigns it to variables.
    Action(Pipeline),
    If(Block),
    With(Block),
    Range(Block),
    Break,
    Continue,
    /// Executes the named template. Inside, dot is the value of the pipeline, or no value without one.
    Template(String, Option<Pipeline>),
}

/// Template with the templates it defines.
#[derive(Debug)]
pub(super) struct Templates {
    pub(super) root: Nodes,
    pub(super) named: BTreeMap<String, Nodes>,
}

/// Block with a condition and an `else` part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) on: Pipeline,
    pub(super) then: Nodes,
    pub(super) otherwise: Nodes,
}

/// Chain of commands. The value of each command is the last argument of the next.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Pipeline {
    /// Variables that receive the value.
    pub(super) variables: Vec<String>,
    /// True for `=`, which assigns to existing variables; false for `:=`, which declares them.
    pub(super) assigns: bool,
    pub(super) commands: Vec<Vec<Operand>>,
}

/// Operand of a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) base: Base,
    /// Field names after the base.
    pub(super) fields: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Base {
    Dot,
    Constant(Value),
    Variable(String),
    Function(Function),
    Nested(Pipeline),
}

/// Parses a template. `name` is the name under which it can call itself.
///
/// # Errors
/// The first error, with its byte offset.
pub(super) fn parse(name: &str, template: &str) -> Result<Templates, ParseError<TemplateError>> {
    if template.len() > TEMPLATE_MAX {
        return Err(ParseError::at(TEMPLATE_MAX, TemplateError::TooLong));
    }
    let (end, segments) = (template.len(), segments(template)?.into_iter());
    let mut parser = Parser { segments, end, scope: Scope::default(), depth: 0, named: BTreeMap::new() };
    let (root, ending) = parser.nodes()?;
    if let Some(ending) = ending {
        return Err(ParseError::at(ending.at, TemplateError::Unexpected(ending.word.to_owned())));
    }
    parser.define(name.to_owned(), root.clone(), end)?;
    let Parser { mut named, .. } = parser;
    let root = named.get(name).cloned().unwrap_or(root);
    named.insert(name.to_owned(), root.clone());
    Ok(Templates { root, named })
}

struct Parser {
    segments: std::vec::IntoIter<Segment>,
    end: usize,
    scope: Scope,
    depth: usize,
    /// Templates defined so far.
    named: BTreeMap<String, Nodes>,
}

/// Names that are visible at a position of the template.
struct Scope {
    /// Declared variables. The empty name is `$`, the data itself.
    variables: Vec<String>,
    loops: usize,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope { variables: vec![String::new()], loops: 0 }
    }
}

type Outcome<T> = Result<T, ParseError<TemplateError>>;

/// Action that ends a list of nodes: `end`, or `else` with the tokens after it.
struct Ending {
    word: &'static str,
    at: usize,
    rest: Vec<Token>,
}

impl Parser {
    /// Parses nodes up to the end of input, `else` or `end`.
    fn nodes(&mut self) -> Outcome<(Nodes, Option<Ending>)> {
        let mut nodes = Vec::new();
        while let Some(segment) = self.segments.next() {
            let tokens = match segment {
                Segment::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Segment::Action(tokens) => tokens,
            };
            let rest = || tokens.iter().skip(1).cloned().collect();
            match tokens.first() {
                Some(Token { kind: TokenKind::Word(word), at, .. }) if word == "end" => {
                    return Ok((nodes, Some(Ending { word: "end", at: *at, rest: rest() })));
                }
                Some(Token { kind: TokenKind::Word(word), at, .. }) if word == "else" => {
                    return Ok((nodes, Some(Ending { word: "else", at: *at, rest: rest() })));
                }
                Some(Token { kind: TokenKind::Word(word), at, .. }) if word == "define" && self.depth == 0 => {
                    self.definition(&tokens[1..], *at)?;
                }
                _ => nodes.push(self.node(&tokens)?),
            }
        }
        Ok((nodes, None))
    }

    fn node(&mut self, tokens: &[Token]) -> Outcome<Node> {
        let Some((Token { kind: TokenKind::Word(word), at, .. }, rest)) = tokens.split_first() else {
            return self.pipeline(tokens, 1).map(Node::Action);
        };
        let at = *at;
        Ok(match word.as_str() {
            "if" => Node::If(self.block(rest, at, "if")?),
            "with" => Node::With(self.block(rest, at, "with")?),
            "range" => Node::Range(self.block(rest, at, "range")?),
            "break" | "continue" if self.scope.loops == 0 => {
                return Err(ParseError::at(at, TemplateError::Unexpected(word.clone())));
            }
            "break" | "continue" if !rest.is_empty() => return Err(ParseError::at(rest[0].at, unexpected(&rest[0]))),
            "break" => Node::Break,
            "continue" => Node::Continue,
            "template" => self.template(rest, at)?,
            "block" => {
                let (name, at, rest) = template_name(rest, at)?;
                let on = self.pipeline(rest, 1)?;
                let nodes = self.body(at)?;
                self.define(name.clone(), nodes, at)?;
                Node::Template(name, Some(on))
            }
            "define" => return Err(ParseError::at(at, TemplateError::Unexpected(word.clone()))),
            _ => Node::Action(self.pipeline(tokens, 1)?),
        })
    }

    /// Parses a `define` action: its name, and the nodes up to its `end`.
    fn definition(&mut self, tokens: &[Token], at: usize) -> Outcome<()> {
        let (name, at, rest) = template_name(tokens, at)?;
        if let Some(token) = rest.first() {
            return Err(ParseError::at(token.at, unexpected(token)));
        }
        let nodes = self.body(at)?;
        self.define(name, nodes, at)
    }

    /// Parses the body of a named template. The outer scope is not visible in it.
    fn body(&mut self, at: usize) -> Outcome<Nodes> {
        self.deeper(at)?;
        let outer = core::mem::take(&mut self.scope);
        let nodes = self.last_part()?;
        self.scope = outer;
        self.depth -= 1;
        Ok(nodes)
    }

    /// Stores a named template. As in Go, an empty definition never replaces another one.
    fn define(&mut self, name: String, nodes: Nodes, at: usize) -> Outcome<()> {
        let known = self.named.get(&name).is_some_and(|known| !is_empty(known));
        match (known, is_empty(&nodes)) {
            (true, true) => {}
            (true, false) => return Err(ParseError::at(at, TemplateError::DuplicateTemplate(name))),
            (false, _) => {
                self.named.insert(name, nodes);
            }
        }
        Ok(())
    }

    /// Parses `NAME [PIPELINE]`.
    fn template(&mut self, tokens: &[Token], at: usize) -> Outcome<Node> {
        let (name, _, rest) = template_name(tokens, at)?;
        let on = if rest.is_empty() { None } else { Some(self.pipeline(rest, 1)?) };
        Ok(Node::Template(name, on))
    }

    /// Parses a block up to its `end`. `else if` becomes a nested block in the `else` part.
    fn block(&mut self, tokens: &[Token], at: usize, word: &'static str) -> Outcome<Block> {
        self.deeper(at)?;
        let known = self.scope.variables.len();
        if tokens.is_empty() {
            return Err(ParseError::at(at, TemplateError::Expected("a value")));
        }
        let on = self.pipeline(tokens, if word == "range" { 2 } else { 1 })?;
        self.scope.loops += usize::from(word == "range");
        let (then, ending) = self.nodes()?;
        self.scope.loops -= usize::from(word == "range");
        let ending =
            ending.ok_or(ParseError::at(self.end, TemplateError::Unclosed("a block: `{{ end }}` is missing")))?;
        let otherwise = match (ending.word, ending.rest.split_first()) {
            ("end", None) => Vec::new(),
            ("else", None) => self.last_part()?,
            ("else", Some((Token { kind: TokenKind::Word(next), at, .. }, rest))) if next == "if" && word == "if" => {
                vec![Node::If(self.block(rest, *at, "if")?)]
            }
            ("else", Some((Token { kind: TokenKind::Word(next), at, .. }, rest)))
                if next == "with" && word == "with" =>
            {
                vec![Node::With(self.block(rest, *at, "with")?)]
            }
            (_, Some((token, _))) => {
                return Err(ParseError::at(token.at, TemplateError::Unexpected(token.kind.to_string())));
            }
            (_, None) => return Err(ParseError::at(ending.at, TemplateError::Unexpected(ending.word.to_owned()))),
        };
        self.scope.variables.truncate(known);
        self.depth -= 1;
        Ok(Block { on, then, otherwise })
    }

    /// Parses the nodes between `else` and `end`.
    fn last_part(&mut self) -> Outcome<Nodes> {
        let (nodes, ending) = self.nodes()?;
        match ending {
            Some(Ending { word: "end", rest, .. }) if rest.is_empty() => Ok(nodes),
            Some(ending) => Err(ParseError::at(ending.at, TemplateError::Unexpected(ending.word.to_owned()))),
            None => Err(ParseError::at(self.end, TemplateError::Unclosed("a block: `{{ end }}` is missing"))),
        }
    }

    fn deeper(&mut self, at: usize) -> Outcome<()> {
        self.depth += 1;
        if self.depth > LEVELS_MAX { Err(ParseError::at(at, TemplateError::TooDeep)) } else { Ok(()) }
    }

    /// Parses a whole pipeline `[$a[, $b] :=|=] COMMAND | COMMAND …` with at most `variables` variables.
    fn pipeline(&mut self, tokens: &[Token], variables: usize) -> Outcome<Pipeline> {
        let mut rest = Tokens { tokens, end: self.end };
        let pipeline = self.piped(&mut rest, variables)?;
        match rest.tokens.first() {
            Some(token) => Err(ParseError::at(token.at, unexpected(token))),
            None => Ok(pipeline),
        }
    }

    /// Parses a pipeline up to a closing parenthesis or the end.
    fn piped(&mut self, rest: &mut Tokens<'_>, most: usize) -> Outcome<Pipeline> {
        let at = rest.at();
        let (variables, assigns) = declarations(rest)?;
        if variables.len() > most {
            return Err(ParseError::at(at, TemplateError::Unexpected(",".to_owned())));
        }
        let mut commands = vec![self.command(rest)?];
        while rest.take_mark("|") && rest.mark() != Some(")") && !rest.tokens.is_empty() {
            let at = rest.at();
            let command = self.command(rest)?;
            // A command after `|` receives a value as argument, which a constant or dot cannot take.
            let first = command.first();
            if first.is_some_and(|first| first.fields.is_empty() && matches!(first.base, Base::Dot | Base::Constant(_)))
            {
                return Err(ParseError::at(at, TemplateError::Expected("a function or a field after `|`")));
            }
            commands.push(command);
        }
        if let Some(unknown) = variables.iter().find(|name| assigns && !self.scope.variables.contains(name)) {
            return Err(ParseError::at(at, TemplateError::UndefinedVariable(unknown.clone())));
        }
        if !assigns {
            self.scope.variables.extend(variables.iter().cloned());
        }
        Ok(Pipeline { variables, assigns, commands })
    }

    /// Parses operands up to `|`, a closing parenthesis or the end.
    fn command(&mut self, rest: &mut Tokens<'_>) -> Outcome<Vec<Operand>> {
        let at = rest.at();
        let mut operands = Vec::new();
        while !matches!(rest.mark(), Some("|" | ")")) && !rest.tokens.is_empty() {
            let crowded = rest.tokens.first().filter(|token| token.joined && !operands.is_empty());
            if let Some(token) = crowded {
                return Err(ParseError::at(token.at, TemplateError::Unexpected(token.kind.to_string())));
            }
            operands.push(self.operand(rest)?);
        }
        if let [Operand { base: Base::Constant(Value::Nil), .. }] = operands.as_slice() {
            return Err(ParseError::at(at, TemplateError::Unexpected("nil".to_owned())));
        }
        if operands.is_empty() {
            Err(ParseError::at(rest.at(), TemplateError::Expected("a value")))
        } else {
            Ok(operands)
        }
    }

    fn operand(&mut self, rest: &mut Tokens<'_>) -> Outcome<Operand> {
        let token = rest.take()?;
        let mut fields = Vec::new();
        let base = match &token.kind {
            TokenKind::Dot => Base::Dot,
            TokenKind::Constant(value) => Base::Constant(value.clone()),
            TokenKind::Field(name) => {
                fields.push(name.clone());
                Base::Dot
            }
            TokenKind::Variable(name) if self.scope.variables.contains(name) => Base::Variable(name.clone()),
            TokenKind::Variable(name) => {
                return Err(ParseError::at(token.at, TemplateError::UndefinedVariable(name.clone())));
            }
            TokenKind::Word(name) => {
                let known = if is_keyword(name) { Err(unexpected(token)) } else { Function::of(name) };
                Base::Function(known.map_err(|error| ParseError::at(token.at, error))?)
            }
            TokenKind::Mark("(") => self.nested(rest, token.at)?,
            TokenKind::Mark(_) => return Err(ParseError::at(token.at, unexpected(token))),
        };
        let has_fields = !matches!(token.kind, TokenKind::Dot | TokenKind::Constant(_) | TokenKind::Word(_));
        while let Some(Token { kind: TokenKind::Field(name), joined: true, .. }) = rest.tokens.first() {
            if !has_fields {
                return Err(ParseError::at(rest.at(), TemplateError::Unexpected(format!(".{name}"))));
            }
            fields.push(name.clone());
            rest.tokens = &rest.tokens[1..];
        }
        Ok(Operand { base, fields })
    }

    /// Parses a pipeline in parentheses. The caller has taken the opening one.
    fn nested(&mut self, rest: &mut Tokens<'_>, at: usize) -> Outcome<Base> {
        self.deeper(at)?;
        let pipeline = self.piped(rest, 1)?;
        if !rest.take_mark(")") {
            return Err(ParseError::at(at, TemplateError::Unclosed("parentheses")));
        }
        self.depth -= 1;
        Ok(Base::Nested(pipeline))
    }
}

fn unexpected(token: &Token) -> TemplateError {
    TemplateError::Unexpected(token.kind.to_string())
}

/// Returns true for keywords, which are never functions.
fn is_keyword(word: &str) -> bool {
    let words = ["if", "else", "end", "with", "range", "break", "continue", "define", "template", "block"];
    words.contains(&word)
}

/// Returns true if a template consists only of whitespace.
fn is_empty(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
}

/// Takes the name of a template. Returns it with its offset and the remaining tokens.
fn template_name(tokens: &[Token], at: usize) -> Outcome<(String, usize, &[Token])> {
    match tokens.split_first() {
        Some((Token { kind: TokenKind::Constant(Value::Text(name)), at, .. }, rest)) => Ok((name.clone(), *at, rest)),
        Some((token, _)) => Err(ParseError::at(token.at, unexpected(token))),
        None => Err(ParseError::at(at, TemplateError::Expected("the name of a template"))),
    }
}

/// Takes the variables at the start of a pipeline. Returns true with them if `=` assigns to existing ones.
fn declarations(rest: &mut Tokens<'_>) -> Outcome<(Vec<String>, bool)> {
    let name = |at: usize| match rest.tokens.get(at).map(|token| &token.kind) {
        Some(TokenKind::Variable(name)) => Some(name.clone()),
        _ => None,
    };
    let mark = |at: usize| match rest.tokens.get(at).map(|token| &token.kind) {
        Some(TokenKind::Mark(mark)) => *mark,
        _ => "",
    };
    let (variables, at) = match (name(0), mark(1), name(2)) {
        (Some(one), ",", Some(two)) => (vec![one, two], 3),
        (Some(one), ":=" | "=", _) => (vec![one], 1),
        _ => return Ok((Vec::new(), false)),
    };
    let assigns = match mark(at) {
        ":=" => false,
        "=" => true,
        _ => return Err(ParseError::at(rest.tokens[at - 1].at, TemplateError::Expected("`:=`"))),
    };
    rest.tokens = &rest.tokens[at + 1..];
    Ok((variables, assigns))
}

/// Remaining tokens of an action.
struct Tokens<'t> {
    tokens: &'t [Token],
    end: usize,
}

impl<'t> Tokens<'t> {
    fn at(&self) -> usize {
        self.tokens.first().map_or(self.end, |token| token.at)
    }

    fn mark(&self) -> Option<&'static str> {
        match self.tokens.first()?.kind {
            TokenKind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    fn take(&mut self) -> Outcome<&'t Token> {
        let (first, rest) =
            self.tokens.split_first().ok_or(ParseError::at(self.end, TemplateError::Expected("a value")))?;
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
