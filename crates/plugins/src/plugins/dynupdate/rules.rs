//! `allow` lines: who may change which names and types.

use config::options::{Args, Problem};
use wire::{Name, NameRef, Type};
use zone::update::is_grantable;

/// Line `allow KEY NAME TYPE...`.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Name of the key, in lower case.
    key: Name,
    owner: RuleOwner,
    types: RuleTypes,
}

/// Names that a rule covers.
#[derive(Clone, Debug)]
enum RuleOwner {
    All,
    Apex,
    /// This name, with the text of the Corefile for messages.
    Name(Box<Name>, String),
}

/// Types that a rule covers.
#[derive(Clone, Debug)]
enum RuleTypes {
    All,
    These(Vec<Type>),
}

impl Rule {
    /// Reads the words of a line.
    pub(super) fn read(args: &mut Args<'_>) -> Result<Rule, Problem> {
        let [key, owner, types @ ..] = args.take_rest() else { return Err(args.problem(INCOMPLETE)) };
        if types.is_empty() {
            return Err(args.problem(INCOMPLETE));
        }
        let is_symbol = matches!(key.text.trim(), "" | "*" | "@");
        let name = Name::from_text(&key.text).ok().filter(|_| !is_symbol);
        let invalid = || args.problem_at(key.span, format!("invalid TSIG key {:?}", key.text));
        let name = name.ok_or_else(invalid)?.into_lowercase();
        let covered = match owner.text.as_str() {
            "*" => RuleOwner::All,
            "@" => RuleOwner::Apex,
            text => {
                let name = Name::from_text(text).map_err(|_| args.bad(owner, "a name, `@` or `*`"))?;
                RuleOwner::Name(Box::new(name.into_lowercase()), text.to_owned())
            }
        };
        let all = types.iter().find(|word| word.text == "*");
        if let Some(word) = all.filter(|_| types.len() > 1) {
            return Err(args.problem_at(word.span, "wildcard RR type must be the only type in an allow rule"));
        }
        if let (Some(word), RuleOwner::All) = (all, &covered) {
            args.warn(word, format!("the key {} may change every record of the zone", key.text));
        }
        let read = |word: &corefile::Token| {
            let rtype = word.text.parse().ok().filter(|rtype| is_grantable(*rtype));
            rtype.ok_or_else(|| args.problem_at(word.span, format!("invalid RR type {:?} in allow rule", word.text)))
        };
        let types = match all {
            Some(_) => RuleTypes::All,
            None => RuleTypes::These(types.iter().map(read).collect::<Result<_, _>>()?),
        };
        Ok(Rule { key: name, owner: covered, types })
    }

    /// Rule that allows a key everything.
    #[cfg(test)]
    pub(super) fn of_everything(key: &str) -> Rule {
        Rule { key: Name::from_text(key).unwrap(), owner: RuleOwner::All, types: RuleTypes::All }
    }

    /// Name of the key, in lower case.
    pub(super) const fn key(&self) -> &Name {
        &self.key
    }

    /// Returns a message if the name of the rule is not in the zone, and the name that was probably meant.
    pub(super) fn stranger(&self, zone: &Name) -> Option<(String, String)> {
        let RuleOwner::Name(name, text) = &self.owner else { return None };
        let is_in = Name::as_ref(name).is_within(zone.as_ref());
        (!is_in).then(|| {
            let meant = format!("names are absolute; did you mean `{}.{zone}`?", text.trim_end_matches('.'));
            (format!("allow name {text:?} is outside zone \"{zone}\""), meant)
        })
    }

    fn covers(&self, zone: &Name, owner: NameRef<'_>, rtype: Type) -> bool {
        let has_owner = match &self.owner {
            RuleOwner::All => true,
            RuleOwner::Apex => owner.same(zone.as_ref()),
            RuleOwner::Name(name, _) => owner.same(Name::as_ref(name)),
        };
        let has_type = match &self.types {
            RuleTypes::All => true,
            RuleTypes::These(types) => types.contains(&rtype),
        };
        has_owner && has_type
    }
}

/// Rules and limits of a zone. Each generation has its own.
#[derive(Debug)]
pub(super) struct Rules {
    /// Name of the zone, in lower case.
    pub(super) zone: Name,
    pub(super) rules: Vec<Rule>,
    pub(super) limits: zone::update::UpdateLimits,
    /// Maximum number of records in an update.
    pub(super) update_records: usize,
}

impl Rules {
    /// Returns true if a rule has this key, in lower case.
    pub(super) fn knows(&self, key: &Name) -> bool {
        self.rules.iter().any(|rule| rule.key == *key)
    }

    /// Returns true if a rule of the key covers records of this name and type.
    pub(super) fn allow(&self, key: &Name, owner: NameRef<'_>, rtype: Type) -> bool {
        self.rules.iter().any(|rule| rule.key == *key && rule.covers(&self.zone, owner, rtype))
    }
}

const INCOMPLETE: &str = "allow requires KEY NAME and at least one RR type";
