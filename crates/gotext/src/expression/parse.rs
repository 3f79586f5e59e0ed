//! Parser: turns tokens into a syntax tree and checks the types.

use ipnet::IpNet;

use super::environment::{Parameters, Scope};
use super::error::{DEPTH_MAX, ExpressionError, LENGTH_MAX};
use super::lex::{Token, TokenKind, tokens};
use super::local_names::{Each, Local};
use super::signatures::{Function, Signature};
use super::types::Type;
use crate::ParseError;
use crate::regexp::Regexp;
use crate::value::Value;

/// Binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    /// `??`: the first operand unless it is `nil`.
    Coalesce,
}

/// Operators with their precedence. A higher number binds tighter.
const OPERATORS: [(&str, Operator, u8); 21] = [
    ("??", Operator::Coalesce, 5),
    ("||", Operator::Or, 10),
    ("&&", Operator::And, 15),
    ("==", Operator::Equal, 20),
    ("!=", Operator::Unequal, 20),
    ("<", Operator::Less, 20),
    ("<=", Operator::LessOrEqual, 20),
    (">", Operator::Greater, 20),
    (">=", Operator::GreaterOrEqual, 20),
    ("in", Operator::In, 20),
    ("contains", Operator::Contains, 20),
    ("startsWith", Operator::StartsWith, 20),
    ("endsWith", Operator::EndsWith, 20),
    ("..", Operator::Range, 25),
    ("+", Operator::Add, 30),
    ("-", Operator::Subtract, 30),
    ("*", Operator::Multiply, 60),
    ("/", Operator::Divide, 60),
    ("%", Operator::Remainder, 60),
    ("**", Operator::Power, 100),
    ("^", Operator::Power, 100),
];
const COMPARISON: u8 = 20;

/// Node of the syntax tree.
#[derive(Debug)]
pub(super) enum Node {
    Constant(Value),
    Variable(String),
    /// Call of a function of the language.
    Call(Function, Vec<Node>),
    /// Call of a function of the environment, by its index in [`Parsed::functions`].
    External(usize, Vec<Node>),
    /// Test if an address is in a constant network.
    InNetwork(Box<Node>, IpNet),
    Not(Box<Node>),
    Negative(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Matches(Box<Node>, Box<Regexp>),
    /// Test with a regular expression that is computed.
    MatchesComputed(Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    List(Vec<Node>),
    /// Expressions of which only the last one counts.
    Sequence(Vec<Node>),
    /// Value of the first for a local name, which the second uses.
    Let(Box<[Node; 2]>),
    /// Value of a local name, by its place on the stack.
    Local(usize),
    /// Function with a predicate: the list, the predicate, and the last argument.
    Each(Each, Vec<Node>),
    /// Map with computed keys.
    Map(Vec<(Node, Node)>),
    /// Value of a map. It is `nil` without a map if it is optional.
    Member(Box<Node>, String, bool),
    Index(Box<Node>, Box<Node>),
    Slice(Box<Node>, Option<Box<Node>>, Option<Box<Node>>),
}

/// Functions of expr that are not supported: they need Go's layouts of dates, a table of time zones and a clock, and an
/// expression depends on the query alone.
const FUNCTIONS_OF_TIME: [&str; 4] = ["date", "duration", "now", "timezone"];

/// Returns true if a function of the language has this name.
pub(super) fn is_function(name: &str) -> bool {
    Signature::of(name).is_some()
}

pub(super) type Outcome<T> = Result<T, ParseError<ExpressionError>>;
/// A node with the type of its values.
pub(super) type Typed = (Node, Type);

/// Parsed expression.
#[derive(Debug)]
pub(super) struct Parsed<F> {
    pub(super) node: Node,
    /// Type of its values.
    pub(super) result: Type,
    /// Functions of the environment that it calls.
    pub(super) functions: Vec<F>,
    /// Constants that are no networks, where a network is meant.
    pub(super) bad_networks: Vec<String>,
}

/// Parses an expression that may use the names in `scope`.
///
/// # Errors
/// The first error.
pub(super) fn parse<F: Clone>(text: &str, scope: &Scope<'_, F>) -> Outcome<Parsed<F>> {
    if text.len() > LENGTH_MAX {
        return Err(ParseError::at(LENGTH_MAX, ExpressionError::TooLong));
    }
    let tokens = tokens(text)?.into_iter().peekable();
    let (functions, bad_networks, locals) = (Vec::new(), Vec::new(), Vec::new());
    let mut parser = Parser { tokens, end: text.len(), depth: 0, scope, functions, bad_networks, locals };
    let (node, result) = parser.sequence()?;
    match parser.tokens.next() {
        None => Ok(Parsed { node, result, functions: parser.functions, bad_networks: parser.bad_networks }),
        Some(token) => Err(ParseError::at(token.at, ExpressionError::Unexpected(token.kind.text()))),
    }
}

pub(super) struct Parser<'s, F> {
    pub(super) tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    end: usize,
    depth: usize,
    pub(super) scope: &'s Scope<'s, F>,
    /// Functions of the environment called so far.
    functions: Vec<F>,
    bad_networks: Vec<String>,
    /// Local names, the innermost last.
    pub(super) locals: Vec<Local>,
}

impl<F: Clone> Parser<'_, F> {
    pub(super) fn at(&mut self) -> usize {
        self.tokens.peek().map_or(self.end, |token| token.at)
    }

    pub(super) fn take_mark(&mut self, mark: &str) -> bool {
        self.tokens.next_if(|token| matches!(token.kind, TokenKind::Mark(known) if known == mark)).is_some()
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.tokens.next_if(|token| matches!(&token.kind, TokenKind::Word(known) if known == word)).is_some()
    }

    pub(super) fn want_mark(&mut self, mark: &'static str, inside: &'static str) -> Outcome<()> {
        let at = self.at();
        if self.take_mark(mark) {
            return Ok(());
        }
        Err(ParseError::at(
            at,
            self.tokens
                .peek()
                .map_or(ExpressionError::Unclosed(inside), |token| ExpressionError::Unexpected(token.kind.text())),
        ))
    }

    /// Parses expressions with `;` between them. The value is that of the last one.
    pub(super) fn sequence(&mut self) -> Outcome<Typed> {
        let (mut before, mut last) = (Vec::new(), self.expression()?);
        while self.take_mark(";") && !self.is_at_end() {
            before.push(core::mem::replace(&mut last, self.expression()?).0);
        }
        if before.is_empty() {
            return Ok(last);
        }
        before.push(last.0);
        Ok((Node::Sequence(before), last.1))
    }

    /// Returns true at the end of a sequence.
    fn is_at_end(&mut self) -> bool {
        self.tokens.peek().is_none_or(|token| matches!(token.kind, TokenKind::Mark(")" | "}")))
    }

    /// Parses with `parse`, one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ParseError::at(self.at(), ExpressionError::TooDeep));
        }
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    /// Parses `let`, `if`, `A ? B : C`, or an expression that binds tighter.
    pub(super) fn expression(&mut self) -> Outcome<Typed> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ParseError::at(self.at(), ExpressionError::TooDeep));
        }
        if let Some(statement) = self.statement()? {
            self.depth -= 1;
            return Ok(statement);
        }
        let at = self.at();
        let condition = self.binary(0)?;
        let whole = if self.take_mark("?") {
            self.want_type(&condition, Type::Bool, "?", at)?;
            // `A ?: C` means `A ? A : C`, and a condition that holds is `true`.
            let yes =
                if self.take_mark(":") { (Node::Constant(Value::Bool(true)), Type::Bool) } else { self.between()? };
            let no = self.expression()?;
            let result = if yes.1 == no.1 { yes.1 } else { Type::Any };
            (Node::Conditional(Box::new([condition.0, yes.0, no.0])), result)
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    /// Parses the expression between `?` and `:`.
    fn between(&mut self) -> Outcome<Typed> {
        let yes = self.expression()?;
        self.want_mark(":", "a condition")?;
        Ok(yes)
    }

    pub(super) fn want_type(&self, (_, result): &Typed, wanted: Type, operator: &str, at: usize) -> Outcome<()> {
        if result.fits(wanted) {
            Ok(())
        } else {
            Err(ParseError::at(at, ExpressionError::Mismatch(operator.to_owned(), *result, wanted)))
        }
    }

    /// Parses operands and the operators between them whose precedence is at least `least`.
    fn binary(&mut self, least: u8) -> Outcome<Typed> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ParseError::at(self.at(), ExpressionError::TooDeep));
        }
        let mut left = self.unary()?;
        loop {
            let at = self.at();
            let Some(token) = self.tokens.peek() else { break };
            let text = token.kind.text();
            let is_constant = matches!(token.kind, TokenKind::Constant(_));
            let negated = text == "not" && least <= COMPARISON && !is_constant;
            if negated {
                self.tokens.next();
            }
            let text =
                if negated { self.tokens.peek().map(|token| token.kind.text()).unwrap_or_default() } else { text };
            if text == "matches" && least <= COMPARISON && !is_constant {
                left = self.matching(left, at)?;
            } else {
                let known = OPERATORS.iter().find(|(name, ..)| *name == text && !is_constant);
                let Some((name, operator, binding)) = known.filter(|(.., binding)| *binding >= least) else {
                    if negated {
                        return Err(ParseError::at(at, ExpressionError::Unexpected("not".to_owned())));
                    }
                    break;
                };
                self.tokens.next();
                // All operators are left-associative except `**` and `^`.
                let right = self.binary(binding + u8::from(*operator != Operator::Power))?;
                left = binary_node(*operator, name, left, right).map_err(|error| ParseError::at(at, error))?;
            }
            if negated {
                left = (Node::Not(Box::new(left.0)), Type::Bool);
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Parses `TEXT matches REGEX`. A constant regular expression is compiled once.
    fn matching(&mut self, left: Typed, at: usize) -> Outcome<Typed> {
        self.tokens.next();
        self.want_type(&left, Type::Text, "matches", at)?;
        match self.binary(COMPARISON + 1)? {
            (Node::Constant(Value::Text(text)), _) => {
                let regexp = Regexp::compile(&text)
                    .map_err(|error| ParseError::at(at, ExpressionError::BadRegexp(text, error)))?;
                Ok((Node::Matches(Box::new(left.0), Box::new(regexp)), Type::Bool))
            }
            (_, result) if !result.fits(Type::Text) => {
                Err(ParseError::at(at, ExpressionError::Mismatch("matches".to_owned(), left.1, result)))
            }
            (pattern, _) => Ok((Node::MatchesComputed(Box::new([left.0, pattern])), Type::Bool)),
        }
    }

    fn unary(&mut self) -> Outcome<Typed> {
        let at = self.at();
        let not = self.take_mark("!") || self.take_word("not");
        if not || self.take_mark("-") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(ParseError::at(at, ExpressionError::TooDeep));
            }
            let operand = self.unary()?;
            self.depth -= 1;
            let wanted = if not { Type::Bool } else { Type::Float };
            self.want_type(&operand, wanted, if not { "not" } else { "-" }, at)?;
            let node = Box::new(operand.0);
            return Ok(if not { (Node::Not(node), Type::Bool) } else { (Node::Negative(node), operand.1) });
        }
        let mut operand = self.operand()?;
        for _ in 0..DEPTH_MAX {
            let at = self.at();
            if self.take_mark("[") {
                operand = self.part(operand, at)?;
            } else if self.take_mark(".") {
                operand = self.member(operand, false, at)?;
            } else if self.take_mark("?.") {
                operand = self.member(operand, true, at)?;
            } else if self.take_mark("|") {
                // `a | f(b)` means `f(a, b)`.
                operand = self.call(Some(operand))?;
            } else {
                return Ok(operand);
            }
        }
        Err(ParseError::at(self.at(), ExpressionError::TooDeep))
    }

    /// Parses the rest of `LIST[1]`, `TEXT[1:3]` or `TEXT[:3]` after the opening bracket.
    fn part(&mut self, (node, result): Typed, at: usize) -> Outcome<Typed> {
        if !matches!(result, Type::List | Type::Text | Type::Any) {
            return Err(ParseError::at(at, ExpressionError::Mismatch("[]".to_owned(), result, Type::Integer)));
        }
        let node = Box::new(node);
        let from = if self.take_mark(":") {
            None
        } else {
            let from = Box::new(self.expression()?.0);
            if self.take_mark("]") {
                return Ok((Node::Index(node, from), if result == Type::Text { Type::Text } else { Type::Any }));
            }
            self.want_mark(":", "brackets")?;
            Some(from)
        };
        let closed = self.take_mark("]");
        let to = if closed { None } else { Some(Box::new(self.expression()?.0)) };
        if !closed {
            self.want_mark("]", "brackets")?;
        }
        Ok((Node::Slice(node, from, to), result))
    }

    fn operand(&mut self) -> Outcome<Typed> {
        let Some(token) = self.tokens.peek() else {
            return Err(ParseError::at(self.end, ExpressionError::UnexpectedEnd));
        };
        match &token.kind {
            TokenKind::Constant(value) => {
                let typed = (Node::Constant(value.clone()), Type::of(value));
                self.tokens.next();
                Ok(typed)
            }
            TokenKind::Word(_) => self.call(None),
            TokenKind::Mark("(") => {
                self.tokens.next();
                let inner = self.sequence()?;
                self.want_mark(")", "parentheses")?;
                Ok(inner)
            }
            TokenKind::Mark("{") => {
                self.tokens.next();
                self.map()
            }
            // `.name` in a predicate is a member of the element.
            TokenKind::Mark(".") => {
                let at = token.at;
                self.tokens.next();
                let unexpected = || ParseError::at(at, ExpressionError::Unexpected(".".to_owned()));
                let element = self.local("#").ok_or_else(unexpected)?;
                self.member(element, false, at)
            }
            TokenKind::Mark("[") => {
                self.tokens.next();
                let list = self.list("]", "a list")?;
                Ok((list_of(list), Type::List))
            }
            TokenKind::Mark(mark) => Err(ParseError::at(token.at, ExpressionError::Unexpected((*mark).to_owned()))),
        }
    }

    /// Parses expressions separated by commas, up to and including the closing bracket.
    fn list(&mut self, close: &'static str, inside: &'static str) -> Outcome<Vec<Typed>> {
        let mut list = Vec::new();
        while !self.take_mark(close) {
            list.push(self.expression()?);
            if !self.take_mark(",") {
                self.want_mark(close, inside)?;
                break;
            }
        }
        Ok(list)
    }

    /// Parses `NAME(…)`, or a variable.
    fn call(&mut self, piped: Option<Typed>) -> Outcome<Typed> {
        let at = self.at();
        let name = match self.tokens.next() {
            Some(Token { kind: TokenKind::Word(name), .. }) => name,
            Some(token) => return Err(ParseError::at(at, ExpressionError::Unexpected(token.kind.text()))),
            None => return Err(ParseError::at(at, ExpressionError::UnexpectedEnd)),
        };
        if !self.take_mark("(") {
            if let Some(local) = self.local(&name).filter(|_| piped.is_none()) {
                return Ok(local);
            }
            let known = self.scope.variables.iter().find(|(known, _)| *known == name);
            return match known.filter(|_| piped.is_none()) {
                Some((_, result)) => Ok((Node::Variable(name), *result)),
                None => Err(ParseError::at(at, ExpressionError::UnknownName(name))),
            };
        }
        if let Some(each) = self.each(&name) {
            return self.each_call((each, &name), piped, at);
        }
        let mut args: Vec<Typed> = piped.into_iter().collect();
        args.extend(self.list(")", "parentheses")?);
        self.function(&name, args).map_err(|error| ParseError::at(at, error))
    }

    /// Builds the call of a function of the language or of the environment.
    fn function(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed, ExpressionError> {
        let is_external = self.scope.functions.iter().any(|function| function.name == name);
        let Some(Signature { function, result, .. }) = Signature::of(name).filter(|_| !is_external) else {
            return self.external(name, args);
        };
        let types: Vec<Type> = args.iter().map(|(_, known)| *known).collect();
        if !Signature::of(name).is_some_and(|signature| signature.accepts(&types)) {
            return Err(ExpressionError::BadArguments(name.to_owned()));
        }
        let mut nodes: Vec<Node> = args.into_iter().map(|(node, _)| node).collect();
        let node = match (function, nodes.as_slice()) {
            (Function::InNetwork, [_, Node::Constant(Value::Text(network))]) => match network.parse() {
                Ok(network) => Node::InNetwork(Box::new(nodes.swap_remove(0)), network),
                // As in CoreDNS, an invalid network is not an error here. The result has no value, so that no address
                // is in it.
                Err(_) => {
                    self.bad_networks.push(network.clone());
                    Node::Constant(Value::Nil)
                }
            },
            _ => Node::Call(*function, nodes),
        };
        Ok((node, *result))
    }

    /// Builds the call of a function of the environment.
    fn external(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed, ExpressionError> {
        let known = self.scope.functions.iter().find(|function| function.name == name);
        let known = known.ok_or_else(|| unknown(name))?;
        let (function, nodes) = match &known.parameters {
            Parameters::Values(types, function) => (function.clone(), operands(name, args, types)?),
            Parameters::Constant { description, bind } => match operands(name, args, &[Type::Text])?.as_slice() {
                [Node::Constant(Value::Text(text))] => (bind(text), Vec::new()),
                _ => return Err(ExpressionError::NotConstant(name.to_owned(), description)),
            },
        };
        self.functions.push(function);
        Ok((Node::External(self.functions.len() - 1, nodes), known.result))
    }
}

/// Explains why there is no function of this name.
fn unknown(name: &str) -> ExpressionError {
    if FUNCTIONS_OF_TIME.contains(&name) {
        return ExpressionError::UnsupportedFunction(name.to_owned());
    }
    ExpressionError::UnknownName(name.to_owned())
}

/// Checks the number and the types of the arguments of a function.
fn operands(name: &str, args: Vec<Typed>, wanted: &[Type]) -> Result<Vec<Node>, ExpressionError> {
    let fits = args.len() == wanted.len() && args.iter().zip(wanted).all(|((_, known), wanted)| known.fits(*wanted));
    if !fits {
        return Err(ExpressionError::BadArguments(name.to_owned()));
    }
    Ok(args.into_iter().map(|(node, _)| node).collect())
}

/// Builds a list, at parse time if all elements are constant.
fn list_of(parts: Vec<Typed>) -> Node {
    let constants: Option<Vec<Value>> = parts
        .iter()
        .map(|(node, _)| if let Node::Constant(value) = node { Some(value.clone()) } else { None })
        .collect();
    match constants {
        Some(values) => Node::Constant(Value::List(values)),
        None => Node::List(parts.into_iter().map(|(node, _)| node).collect()),
    }
}

/// Builds a binary operation if the types of the operands are valid.
fn binary_node(operator: Operator, name: &str, left: Typed, right: Typed) -> Result<Typed, ExpressionError> {
    use Operator as O;
    let (one, other) = (left.1, right.1);
    let numbers = one.is_number() && other.is_number();
    let texts = one.fits(Type::Text) && other.fits(Type::Text);
    let number = if one == Type::Integer && other == Type::Integer { Type::Integer } else { Type::Float };
    let (fits, result) = match operator {
        O::Or | O::And => (one.fits(Type::Bool) && other.fits(Type::Bool), Type::Bool),
        O::Equal | O::Unequal => (one.fits(other), Type::Bool),
        O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual => (numbers || texts, Type::Bool),
        O::In => (other.fits(Type::List), Type::Bool),
        O::Contains | O::StartsWith | O::EndsWith => (texts, Type::Bool),
        O::Range => (one.fits(Type::Integer) && other.fits(Type::Integer), Type::List),
        O::Add if one == Type::Any || other == Type::Any => (numbers || texts, Type::Any),
        O::Add if texts => (true, Type::Text),
        O::Divide | O::Power => (numbers, Type::Float),
        O::Remainder => (one.fits(Type::Integer) && other.fits(Type::Integer), Type::Integer),
        O::Add | O::Subtract | O::Multiply => (numbers, number),
        O::Coalesce => (true, Type::Any),
    };
    if !fits {
        return Err(ExpressionError::Mismatch(name.to_owned(), one, other));
    }
    Ok((Node::Binary(operator, Box::new(left.0), Box::new(right.0)), result))
}
