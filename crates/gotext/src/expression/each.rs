//! Evaluation of functions with a predicate.

use core::cmp::Ordering;
use std::collections::BTreeMap;

use super::environment::Environment;
use super::evaluate::Evaluation;
use super::functions;
use super::local_names::Each;
use super::parse::Node;
use super::signatures::Function;
use crate::value::Value;

impl<E: Environment> Evaluation<'_, E> {
    /// Evaluates a function with a predicate. `parts` are the list, the predicate and the last argument.
    pub(super) fn each(&self, each: Each, parts: &[Node]) -> Option<Value> {
        let Value::List(list) = self.value(parts.first()?)? else { return None };
        let Some(predicate) = parts.get(1) else { return self.without_predicate(each, list) };
        let holds = |at: usize, element: &Value| match self.with_element(predicate, element, at, None)? {
            Value::Bool(holds) => Some(holds),
            _ => None,
        };
        // Finds the first place, or the last one if `backwards`, at which the predicate is `wanted`.
        let find = |wanted: bool, backwards: bool| {
            let mut places = 0..list.len();
            let next = || if backwards { places.next_back() } else { places.next() };
            for at in core::iter::from_fn(next) {
                if holds(at, list.get(at)?)? == wanted {
                    return Some(Some(at));
                }
            }
            Some(None)
        };
        let element = |at: Option<usize>| at.and_then(|at| list.get(at).cloned()).unwrap_or_default();
        let place = |at: Option<usize>| at.and_then(|at| i64::try_from(at).ok()).map_or(Value::Nil, Value::Integer);
        Some(match each {
            Each::All => Value::Bool(find(false, false)?.is_none()),
            Each::Any => Value::Bool(find(true, false)?.is_some()),
            Each::None => Value::Bool(find(true, false)?.is_none()),
            Each::One => Value::Bool(chosen(&list, holds)?.len() == 1),
            Each::Filter => Value::List(chosen(&list, holds)?),
            Each::Count => Value::Integer(i64::try_from(chosen(&list, holds)?.len()).ok()?),
            Each::Find => element(find(true, false)?),
            Each::FindLast => element(find(true, true)?),
            Each::FindIndex => place(find(true, false)?),
            Each::FindLastIndex => place(find(true, true)?),
            Each::Map => Value::List(self.mapped(&list, predicate)?),
            Each::Sum => functions::apply(Function::Sum, &[Value::List(self.mapped(&list, predicate)?)])?,
            Each::GroupBy => grouped(&list, self.mapped(&list, predicate)?)?,
            Each::SortBy => {
                let order = match parts.get(2) {
                    None => None,
                    Some(order) => Some(self.value(order)?),
                };
                sorted_by(list.clone(), self.mapped(&list, predicate)?, order.as_ref())?
            }
            Each::Reduce => self.reduced(&list, predicate, parts.get(2))?,
        })
    }

    fn without_predicate(&self, each: Each, list: Vec<Value>) -> Option<Value> {
        match each {
            Each::Count => {
                let count = list.iter().filter(|element| **element == Value::Bool(true)).count();
                i64::try_from(count).ok().map(Value::Integer)
            }
            Each::Sum => functions::apply(Function::Sum, &[Value::List(list)]),
            _ => None,
        }
    }

    fn mapped(&self, list: &[Value], predicate: &Node) -> Option<Vec<Value>> {
        let values = list.iter().enumerate().map(|(at, element)| self.with_element(predicate, element, at, None));
        values.collect()
    }

    /// Combines the elements from the first to the last. Without a start value, this is the first element.
    fn reduced(&self, list: &[Value], predicate: &Node, start: Option<&Node>) -> Option<Value> {
        let (mut result, skipped) = match start {
            Some(start) => (self.value(start)?, 0),
            None => (list.first()?.clone(), 1),
        };
        for (at, element) in list.iter().enumerate().skip(skipped) {
            result = self.with_element(predicate, element, at, Some(result))?;
        }
        Some(result)
    }
}

/// Returns the elements for which the predicate holds.
fn chosen(list: &[Value], holds: impl Fn(usize, &Value) -> Option<bool>) -> Option<Vec<Value>> {
    let mut chosen = Vec::new();
    for (at, element) in list.iter().enumerate() {
        if holds(at, element)? {
            chosen.push(element.clone());
        }
    }
    Some(chosen)
}

/// Collects the elements by their keys, which must be texts, numbers or booleans.
fn grouped(list: &[Value], keys: Vec<Value>) -> Option<Value> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (element, key) in list.iter().zip(keys) {
        let is_key = matches!(key, Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Bool(_));
        groups.entry(is_key.then(|| key.to_string())?).or_default().push(element.clone());
    }
    Some(Value::Map(groups.into_iter().map(|(key, group)| (key, Value::List(group))).collect()))
}

fn sorted_by(list: Vec<Value>, keys: Vec<Value>, order: Option<&Value>) -> Option<Value> {
    let descends = functions::descends(order)?;
    if !keys.windows(2).all(|pair| pair[0].order(&pair[1]).is_some()) {
        return None;
    }
    let mut pairs: Vec<(Value, Value)> = keys.into_iter().zip(list).collect();
    pairs.sort_by(|(one, _), (other, _)| {
        let order = one.order(other).unwrap_or(Ordering::Equal);
        if descends { order.reverse() } else { order }
    });
    Some(Value::List(pairs.into_iter().map(|(_, element)| element).collect()))
}
