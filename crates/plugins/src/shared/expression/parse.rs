//! Parser: turns tokens into a syntax tree and checks the types.

use ipnet::IpNet;

use super::Scope;
use super::fault::{DEPTH_MAX, Fault, LENGTH_MAX};
use super::lex::{Kind, Token, tokens};
use super::sort::Sort;
use crate::shared::goregexp::Regexp;
use crate::shared::value::Value;

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
const OPERATORS: [(&str, Operator, u8); 20] = [
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
];
const COMPARISON: u8 = 20;

/// Node of the syntax tree.
#[derive(Debug)]
pub(super) enum Node {
    Constant(Value),
    Variable(String),
    /// Metadata label, by index.
    Label(usize),
    Call(Function, Vec<Node>),
    /// Test if an address is in a constant network.
    InNetwork(Box<Node>, IpNet),
    Not(Box<Node>),
    Negative(Box<Node>),
    Two(Operator, Box<Node>, Box<Node>),
    Matches(Box<Node>, Box<Regexp>),
    Conditional(Box<[Node; 3]>),
    List(Vec<Node>),
    Index(Box<Node>, Box<Node>),
    Slice(Box<Node>, Option<Box<Node>>, Option<Box<Node>>),
}

/// Function that an expression can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
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
    InNetwork,
    Metadata,
    Length,
    Lower,
    Upper,
    Trim,
    TrimPrefix,
    TrimSuffix,
    Split,
    Replace,
    HasPrefix,
    HasSuffix,
    Text,
    Integer,
    Group,
}

/// Functions with their parameter types and their result type.
const FUNCTIONS: [(&str, Function, &[Sort], Sort); 28] = [
    ("type", Function::Type, &[], Sort::Text),
    ("name", Function::Name, &[], Sort::Text),
    ("class", Function::Class, &[], Sort::Text),
    ("proto", Function::Protocol, &[], Sort::Text),
    ("size", Function::Size, &[], Sort::Integer),
    ("client_ip", Function::ClientIp, &[], Sort::Text),
    ("port", Function::ClientPort, &[], Sort::Text),
    ("id", Function::Id, &[], Sort::Integer),
    ("opcode", Function::Opcode, &[], Sort::Integer),
    ("do", Function::DnssecOk, &[], Sort::Flag),
    ("bufsize", Function::BufferSize, &[], Sort::Integer),
    ("server_ip", Function::ServerIp, &[], Sort::Text),
    ("server_port", Function::ServerPort, &[], Sort::Text),
    ("incidr", Function::InNetwork, &[Sort::Text, Sort::Text], Sort::Flag),
    ("metadata", Function::Metadata, &[Sort::Text], Sort::Text),
    ("len", Function::Length, &[Sort::Any], Sort::Integer),
    ("lower", Function::Lower, &[Sort::Text], Sort::Text),
    ("upper", Function::Upper, &[Sort::Text], Sort::Text),
    ("trim", Function::Trim, &[Sort::Text], Sort::Text),
    ("trimPrefix", Function::TrimPrefix, &[Sort::Text, Sort::Text], Sort::Text),
    ("trimSuffix", Function::TrimSuffix, &[Sort::Text, Sort::Text], Sort::Text),
    ("split", Function::Split, &[Sort::Text, Sort::Text], Sort::List),
    ("replace", Function::Replace, &[Sort::Text, Sort::Text, Sort::Text], Sort::Text),
    ("hasPrefix", Function::HasPrefix, &[Sort::Text, Sort::Text], Sort::Flag),
    ("hasSuffix", Function::HasSuffix, &[Sort::Text, Sort::Text], Sort::Flag),
    ("string", Function::Text, &[Sort::Any], Sort::Text),
    ("int", Function::Integer, &[Sort::Any], Sort::Integer),
    ("group", Function::Group, &[Sort::Any], Sort::Text),
];

/// Returns true if a function has this name.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|(known, ..)| *known == name)
}

type Outcome<T> = Result<T, (usize, Fault)>;
/// A node with the type of its values.
type Sorted = (Node, Sort);

pub(super) struct Parser<'v> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    end: usize,
    depth: usize,
    scope: Scope<'v>,
    labels: Vec<String>,
}

impl<'v> Parser<'v> {
    pub(super) fn new(text: &str, scope: Scope<'v>) -> Outcome<Parser<'v>> {
        if text.len() > LENGTH_MAX {
            return Err((LENGTH_MAX, Fault::TooLong));
        }
        let tokens = tokens(text)?.into_iter().peekable();
        Ok(Parser { tokens, end: text.len(), depth: 0, scope, labels: Vec::new() })
    }

    /// Parses the whole text. Returns the expression and the labels that it reads.
    pub(super) fn read(mut self) -> Outcome<(Sorted, Vec<String>)> {
        let sorted = self.expression()?;
        match self.tokens.next() {
            None => Ok((sorted, self.labels)),
            Some(token) => Err((token.at, Fault::Unexpected(token.kind.text()))),
        }
    }

    fn at(&mut self) -> usize {
        self.tokens.peek().map_or(self.end, |token| token.at)
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        self.tokens.next_if(|token| matches!(token.kind, Kind::Mark(known) if known == mark)).is_some()
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.tokens.next_if(|token| matches!(&token.kind, Kind::Word(known) if known == word)).is_some()
    }

    fn want_mark(&mut self, mark: &'static str, inside: &'static str) -> Outcome<()> {
        let at = self.at();
        if self.take_mark(mark) {
            return Ok(());
        }
        Err((at, self.tokens.peek().map_or(Fault::Unclosed(inside), |token| Fault::Unexpected(token.kind.text()))))
    }

    /// Parses `A ? B : C`, or an expression that binds tighter.
    fn expression(&mut self) -> Outcome<Sorted> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err((self.at(), Fault::TooDeep));
        }
        let at = self.at();
        let condition = self.binary(0)?;
        let whole = if self.take_mark("?") {
            self.want_sort(&condition, Sort::Flag, "?", at)?;
            let yes = self.expression()?;
            self.want_mark(":", "a condition")?;
            let no = self.expression()?;
            let sort = if yes.1 == no.1 { yes.1 } else { Sort::Any };
            (Node::Conditional(Box::new([condition.0, yes.0, no.0])), sort)
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    fn want_sort(&self, (_, sort): &Sorted, wanted: Sort, operator: &str, at: usize) -> Outcome<()> {
        if sort.fits(wanted) { Ok(()) } else { Err((at, Fault::Mismatch(operator.to_owned(), *sort, wanted))) }
    }

    /// Parses operands and the operators between them whose precedence is at least `least`.
    fn binary(&mut self, least: u8) -> Outcome<Sorted> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err((self.at(), Fault::TooDeep));
        }
        let mut left = self.unary()?;
        loop {
            let at = self.at();
            let Some(token) = self.tokens.peek() else { break };
            let text = token.kind.text();
            let is_constant = matches!(token.kind, Kind::Constant(_));
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
                        return Err((at, Fault::Unexpected("not".to_owned())));
                    }
                    break;
                };
                self.tokens.next();
                // All operators are left-associative except `**`.
                let right = self.binary(binding + u8::from(*operator != Operator::Power))?;
                left = two(*operator, name, left, right).map_err(|fault| (at, fault))?;
            }
            if negated {
                left = (Node::Not(Box::new(left.0)), Sort::Flag);
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Parses `TEXT matches REGEX`. The regular expression must be constant, so that it is compiled once.
    fn matching(&mut self, left: Sorted, at: usize) -> Outcome<Sorted> {
        self.tokens.next();
        self.want_sort(&left, Sort::Text, "matches", at)?;
        match self.binary(COMPARISON + 1)? {
            (Node::Constant(Value::Text(text)), _) => {
                let regex = Regexp::read(&text).map_err(|fault| (at, Fault::BadRegex(text, fault)))?;
                Ok((Node::Matches(Box::new(left.0), Box::new(regex)), Sort::Flag))
            }
            (_, sort) if !sort.fits(Sort::Text) => Err((at, Fault::Mismatch("matches".to_owned(), left.1, sort))),
            _ => Err((at, Fault::NotHere("`matches` with a regular expression that is not constant"))),
        }
    }

    fn unary(&mut self) -> Outcome<Sorted> {
        let at = self.at();
        let not = self.take_mark("!") || self.take_word("not");
        if not || self.take_mark("-") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err((at, Fault::TooDeep));
            }
            let operand = self.unary()?;
            self.depth -= 1;
            let wanted = if not { Sort::Flag } else { Sort::Float };
            self.want_sort(&operand, wanted, if not { "not" } else { "-" }, at)?;
            let node = Box::new(operand.0);
            return Ok(if not { (Node::Not(node), Sort::Flag) } else { (Node::Negative(node), operand.1) });
        }
        let mut operand = self.operand()?;
        loop {
            let at = self.at();
            if self.take_mark("[") {
                operand = self.part(operand, at)?;
            } else if self.take_mark("|") {
                // `a | f(b)` means `f(a, b)`.
                operand = self.call(Some(operand))?;
            } else {
                return Ok(operand);
            }
        }
    }

    /// Parses the rest of `LIST[1]`, `TEXT[1:3]` or `TEXT[:3]` after the opening bracket.
    fn part(&mut self, (node, sort): Sorted, at: usize) -> Outcome<Sorted> {
        if !matches!(sort, Sort::List | Sort::Text | Sort::Any) {
            return Err((at, Fault::Mismatch("[]".to_owned(), sort, Sort::Integer)));
        }
        let node = Box::new(node);
        let from = if self.take_mark(":") {
            None
        } else {
            let from = Box::new(self.expression()?.0);
            if self.take_mark("]") {
                return Ok((Node::Index(node, from), if sort == Sort::Text { Sort::Text } else { Sort::Any }));
            }
            self.want_mark(":", "brackets")?;
            Some(from)
        };
        let closed = self.take_mark("]");
        let to = if closed { None } else { Some(Box::new(self.expression()?.0)) };
        if !closed {
            self.want_mark("]", "brackets")?;
        }
        Ok((Node::Slice(node, from, to), sort))
    }

    fn operand(&mut self) -> Outcome<Sorted> {
        let Some(token) = self.tokens.peek() else { return Err((self.end, Fault::Ends)) };
        match &token.kind {
            Kind::Constant(value) => {
                let sorted = (Node::Constant(value.clone()), Sort::of(value));
                self.tokens.next();
                Ok(sorted)
            }
            Kind::Word(_) => self.call(None),
            Kind::Mark("(") => {
                self.tokens.next();
                let inner = self.expression()?;
                self.want_mark(")", "parentheses")?;
                Ok(inner)
            }
            Kind::Mark("[") => {
                self.tokens.next();
                let list = self.list("]", "a list")?;
                Ok((list_of(list), Sort::List))
            }
            Kind::Mark(mark) => Err((token.at, Fault::Unexpected((*mark).to_owned()))),
        }
    }

    /// Parses expressions separated by commas, up to and including the closing bracket.
    fn list(&mut self, close: &'static str, inside: &'static str) -> Outcome<Vec<Sorted>> {
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
    fn call(&mut self, piped: Option<Sorted>) -> Outcome<Sorted> {
        let at = self.at();
        let name = match self.tokens.next() {
            Some(Token { kind: Kind::Word(name), .. }) => name,
            Some(token) => return Err((at, Fault::Unexpected(token.kind.text()))),
            None => return Err((at, Fault::Ends)),
        };
        if !self.take_mark("(") {
            let known = self.scope.variables.iter().find(|(known, _)| *known == name);
            return match known.filter(|_| piped.is_none()) {
                Some((_, sort)) => Ok((Node::Variable(name), *sort)),
                None => Err((at, Fault::UnknownName(name))),
            };
        }
        let mut args: Vec<Sorted> = piped.into_iter().collect();
        args.extend(self.list(")", "parentheses")?);
        self.function(&name, args).map_err(|fault| (at, fault))
    }

    fn function(&mut self, name: &str, args: Vec<Sorted>) -> Result<Sorted, Fault> {
        let known = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let known = known.filter(|(_, function, ..)| *function != Function::Group || self.scope.has_groups);
        let (_, function, wanted, sort) = known.ok_or_else(|| Fault::UnknownName(name.to_owned()))?;
        let fits = args.len() == wanted.len() && args.iter().zip(*wanted).all(|((_, sort), wanted)| sort.fits(*wanted));
        let bad = || Fault::BadArguments(name.to_owned());
        if !fits {
            return Err(bad());
        }
        let mut nodes: Vec<Node> = args.into_iter().map(|(node, _)| node).collect();
        let node = match (function, nodes.as_slice()) {
            (Function::InNetwork, [_, Node::Constant(Value::Text(network))]) => match network.parse() {
                Ok(network) => Node::InNetwork(Box::new(nodes.swap_remove(0)), network),
                // As in CoreDNS, an invalid network is not an error here. The result has no value, so that no address
                // is in it.
                Err(_) => Node::Constant(Value::Missing),
            },
            (Function::Metadata, [Node::Constant(Value::Text(label))]) => {
                self.labels.push(label.clone());
                Node::Label(self.labels.len() - 1)
            }
            (Function::Metadata, _) => return Err(Fault::NotHere("`metadata` with a label name that is not constant")),
            _ => Node::Call(*function, nodes),
        };
        Ok((node, *sort))
    }
}

/// Builds a list, at parse time if all elements are constant.
fn list_of(parts: Vec<Sorted>) -> Node {
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
fn two(operator: Operator, name: &str, left: Sorted, right: Sorted) -> Result<Sorted, Fault> {
    use Operator as O;
    let (one, other) = (left.1, right.1);
    let numbers = one.is_number() && other.is_number();
    let texts = one.fits(Sort::Text) && other.fits(Sort::Text);
    let number = if one == Sort::Integer && other == Sort::Integer { Sort::Integer } else { Sort::Float };
    let (fits, sort) = match operator {
        O::Or | O::And => (one.fits(Sort::Flag) && other.fits(Sort::Flag), Sort::Flag),
        O::Equal | O::Unequal => (one.fits(other), Sort::Flag),
        O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual => (numbers || texts, Sort::Flag),
        O::In => (other.fits(Sort::List), Sort::Flag),
        O::Contains | O::StartsWith | O::EndsWith => (texts, Sort::Flag),
        O::Range => (one.fits(Sort::Integer) && other.fits(Sort::Integer), Sort::List),
        O::Add if one == Sort::Any || other == Sort::Any => (numbers || texts, Sort::Any),
        O::Add if texts => (true, Sort::Text),
        O::Divide | O::Power => (numbers, Sort::Float),
        O::Remainder => (one.fits(Sort::Integer) && other.fits(Sort::Integer), Sort::Integer),
        O::Add | O::Subtract | O::Multiply => (numbers, number),
        O::Coalesce => (true, Sort::Any),
    };
    if !fits {
        return Err(Fault::Mismatch(name.to_owned(), one, other));
    }
    Ok((Node::Two(operator, Box::new(left.0), Box::new(right.0)), sort))
}
