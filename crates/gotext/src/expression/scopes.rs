//! Parser of what introduces or uses local names: `let`, predicates with `#`, and also `if`, map literals and members.

use super::error::ExpressionError;
use super::lex::{Token, TokenKind};
use super::local_names::{Each, Local};
use super::parse::{Node, Outcome, Parser, Typed};
use super::types::Type;
use crate::ParseError;
use crate::value::Value;

/// Names in a predicate: the element, its index, and in `reduce` the result so far.
const PREDICATE: [&str; 3] = ["#", "#index", "#acc"];

impl<F: Clone> Parser<'_, F> {
    /// Parses `let NAME = VALUE; BODY` or `if CONDITION { A } else { B }`, if the next word begins one.
    pub(super) fn statement(&mut self) -> Outcome<Option<Typed>> {
        if self.take_word("let") {
            self.declaration().map(Some)
        } else if self.take_word("if") {
            self.choice().map(Some)
        } else {
            Ok(None)
        }
    }

    fn declaration(&mut self) -> Outcome<Typed> {
        let at = self.at();
        let name = self.word()?;
        let is_taken = super::is_reserved(&name)
            || self.scope.functions.iter().any(|function| function.name == name)
            || self.scope.variables.iter().any(|(known, _)| *known == name)
            || self.locals.iter().any(|local| local.name == name);
        if is_taken {
            return Err(ParseError::at(at, ExpressionError::Redeclared(name)));
        }
        self.want_mark("=", "a declaration")?;
        let (value, result) = self.expression()?;
        self.want_mark(";", "a declaration")?;
        self.locals.push(Local { name, result });
        let body = self.sequence();
        self.locals.pop();
        let (body, result) = body?;
        Ok((Node::Let(Box::new([value, body])), result))
    }

    fn choice(&mut self) -> Outcome<Typed> {
        let at = self.at();
        let condition = self.expression()?;
        self.want_type(&condition, Type::Bool, "if", at)?;
        let yes = self.block()?;
        if !self.take_word("else") {
            return Err(ParseError::at(self.at(), ExpressionError::Unclosed("a condition without `else`")));
        }
        let no = if self.take_word("if") { self.nested(Self::choice)? } else { self.block()? };
        let result = if yes.1 == no.1 { yes.1 } else { Type::Any };
        Ok((Node::Conditional(Box::new([condition.0, yes.0, no.0])), result))
    }

    fn block(&mut self) -> Outcome<Typed> {
        self.want_mark("{", "a condition")?;
        let body = self.sequence()?;
        self.want_mark("}", "braces")?;
        Ok(body)
    }

    /// Takes a name.
    fn word(&mut self) -> Outcome<String> {
        let at = self.at();
        match self.tokens.next() {
            Some(Token { kind: TokenKind::Word(name), .. }) => Ok(name),
            Some(token) => Err(ParseError::at(at, ExpressionError::Unexpected(token.kind.text()))),
            None => Err(ParseError::at(at, ExpressionError::UnexpectedEnd)),
        }
    }

    /// Returns a local name.
    pub(super) fn local(&self, name: &str) -> Option<Typed> {
        let at = self.locals.iter().rposition(|local| local.name == name)?;
        Some((Node::Local(at), self.locals.get(at)?.result))
    }

    /// Parses the member after a `.` or `?.`.
    pub(super) fn member(&mut self, (node, result): Typed, is_optional: bool, at: usize) -> Outcome<Typed> {
        if result != Type::Any {
            return Err(ParseError::at(at, ExpressionError::Mismatch(".".to_owned(), result, Type::Any)));
        }
        let name = self.word()?;
        Ok((Node::Member(Box::new(node), name, is_optional), Type::Any))
    }

    /// Parses a map after its `{`.
    pub(super) fn map(&mut self) -> Outcome<Typed> {
        let mut pairs = Vec::new();
        while !self.take_mark("}") {
            let at = self.at();
            let key = if self.take_mark("(") {
                let key = self.expression()?.0;
                self.want_mark(")", "parentheses")?;
                key
            } else {
                match self.tokens.next().map(|token| token.kind) {
                    Some(TokenKind::Word(key)) => Node::Constant(Value::Text(key)),
                    Some(TokenKind::Constant(key @ (Value::Text(_) | Value::Integer(_)))) => {
                        Node::Constant(Value::Text(key.to_string()))
                    }
                    Some(other) => return Err(ParseError::at(at, ExpressionError::Unexpected(other.text()))),
                    None => return Err(ParseError::at(at, ExpressionError::Unclosed("a map"))),
                }
            };
            self.want_mark(":", "a map")?;
            pairs.push((key, self.expression()?.0));
            if !self.take_mark(",") {
                self.want_mark("}", "a map")?;
                break;
            }
        }
        Ok((Node::Map(pairs), Type::Any))
    }

    /// Returns the function with a predicate that has this name, unless the environment has one.
    pub(super) fn each(&self, name: &str) -> Option<Each> {
        let is_external = self.scope.functions.iter().any(|function| function.name == name);
        Each::of(name).filter(|_| !is_external)
    }

    /// Parses `NAME(LIST, PREDICATE)` after its opening parenthesis.
    pub(super) fn each_call(&mut self, (each, name): (Each, &str), piped: Option<Typed>, at: usize) -> Outcome<Typed> {
        let bad = || ParseError::at(at, ExpressionError::BadArguments(name.to_owned()));
        let list = match piped {
            Some(list) => {
                Some(list).filter(|_| !matches!(self.peeked(), Some(TokenKind::Mark(")"))) || each.is_alone())
            }
            None if self.take_mark(")") => None,
            None => {
                let list = self.expression()?;
                let goes_on = self.take_mark(",");
                if !goes_on && !each.is_alone() {
                    return Err(bad());
                }
                Some(list)
            }
        };
        let list = list.filter(|(_, result)| result.fits(Type::List)).ok_or_else(bad)?;
        let mut parts = vec![list.0];
        if !matches!(self.peeked(), Some(TokenKind::Mark(")"))) {
            let predicate = self.predicate(each)?;
            if each.is_condition() && !predicate.1.fits(Type::Bool) {
                return Err(bad());
            }
            parts.push(predicate.0);
            let takes_more = matches!(each, Each::Reduce | Each::SortBy);
            if takes_more && self.take_mark(",") {
                parts.push(self.expression()?.0);
            }
        } else if !each.is_alone() {
            return Err(bad());
        }
        self.want_mark(")", "parentheses")?;
        Ok((Node::Each(each, parts), each.result()))
    }

    fn peeked(&mut self) -> Option<&TokenKind> {
        self.tokens.peek().map(|token| &token.kind)
    }

    /// Parses a predicate, with or without braces.
    fn predicate(&mut self, each: Each) -> Outcome<Typed> {
        let names = if each == Each::Reduce { &PREDICATE[..] } else { &PREDICATE[..2] };
        let known = self.locals.len();
        self.locals.extend(names.iter().map(|name| Local {
            name: (*name).to_owned(),
            result: if *name == "#index" { Type::Integer } else { Type::Any },
        }));
        let body = if self.take_mark("{") {
            let body = self.sequence();
            body.and_then(|body| self.want_mark("}", "braces").map(|()| body))
        } else {
            self.expression()
        };
        self.locals.truncate(known);
        body
    }
}

impl Each {
    /// Returns true if the function needs no predicate.
    const fn is_alone(self) -> bool {
        matches!(self, Each::Count | Each::Sum)
    }
}
