//! Changes the name on the way down and restores it on the way up, in the question and the owner names, as `rewrite
//! name` does.

use config::options::{Manifest, zone_names};
use config::setup::{Part, Setup, SetupError};
use engine::{Failure, Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::{EdeCode, Name, NameError, NameRef, Owner};

/// Two of them in one chain show that each restores its own change.
pub static RENAME: Manifest<Rules> = manifest("rename");
pub static RENAME_AGAIN: Manifest<Rules> = manifest("rename_again");

const fn manifest(name: &'static str) -> Manifest<Rules> {
    Manifest::new(name, "changes suffixes of names", Vec::new, build).other_lines("FROM TO", |rules, args| {
        let [from, to] = [args.name(), args.word()?].map(|word| zone_names(&word.text).pop().unwrap_or_default());
        rules.push(Rule { from, to });
        Ok(())
    })
}

/// Rules that apply in order, each to the result of the previous one.
type Rules = Vec<Rule>;

pub struct Rule {
    from: Name,
    to: Name,
}

fn build(configs: Vec<Rules>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(Some(Part::new(Rename { rules: configs.into_iter().flatten().collect() }, Hooks::BOTH)))
}

struct Rename {
    rules: Rules,
}

/// Original question, and the rules that changed it.
struct Before {
    name: Name,
    applied: Vec<usize>,
}

impl Plugin for Rename {
    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        let before = query.name().to_name();
        let mut applied = Vec::new();
        for (at, rule) in self.rules.iter().enumerate() {
            match swap_suffix(query.name(), rule.from.as_ref(), rule.to.as_ref()) {
                Some(Ok(name)) => {
                    query.set_name(name.as_ref());
                    applied.push(at);
                }
                Some(Err(_)) => return Verdict::Fail(Failure::servfail(EdeCode::OTHER, "invalid name after rewrite")),
                None => {}
            }
        }
        if !applied.is_empty() {
            query.keep(Before { name: before, applied });
        }
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let Some(before) = query.take_kept::<Before>() else { return Verdict::Pass };
        let asked = query.name().to_name();
        query.set_name(before.name.as_ref());
        let rewritten = response.rewrite(query, &mut worker.scratch, |message, old| {
            old.marks().iter().try_for_each(|mark| {
                let record = old.record(*mark);
                let owner = record.owner()?;
                let owner = if owner == asked { before.name.clone() } else { self.back(owner, &before.applied) };
                let owner = Owner::Name(owner.as_ref());
                message.push_record_as(mark.section, owner, record.ttl(), &record).map(drop)
            })
        });
        match rewritten {
            Ok(()) => Verdict::Pass,
            Err(error) => Verdict::Fail(Failure::servfail(EdeCode::INVALID_DATA, error.to_string())),
        }
    }
}

impl Rename {
    /// Returns the name before these rules.
    fn back(&self, name: Name, applied: &[usize]) -> Name {
        applied.iter().rev().fold(name, |name, at| {
            let rule = &self.rules[*at];
            swap_suffix(name.as_ref(), rule.to.as_ref(), rule.from.as_ref()).and_then(Result::ok).unwrap_or(name)
        })
    }
}

/// Replaces the suffix `from` of `name` by `to`, if it has that suffix.
fn swap_suffix(name: NameRef<'_>, from: NameRef<'_>, to: NameRef<'_>) -> Option<Result<Name, NameError>> {
    let labels = name.labels().count().checked_sub(from.labels().count()).filter(|_| name.is_within(from))?;
    let mut changed = Name::root();
    let kept = name.labels().take(labels).try_for_each(|label| changed.push_label(label));
    Some(kept.and_then(|()| changed.append(to)).map(|()| changed))
}
