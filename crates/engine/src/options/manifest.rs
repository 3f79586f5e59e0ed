//! A plugin's manifest, and reading its lines by it.

use corefile::{Diagnostic, Line, Token, did_you_mean};

use super::args::{Args, Problem};
use super::role::{PlacedRole, Role};
use super::usage::Usage;
use crate::codes;
use crate::metrics::Metric;
use crate::setup::{BlockInfo, BlockSettings, Part, Setup, SetupError};

/// Takes the words of a line into a configuration.
pub type Set<C> = fn(&mut C, &mut Args<'_>) -> Result<(), Problem>;

/// What a directive is, written once: begun by [`Manifest::new`], completed by what differs from the usual.
pub struct Manifest<C: 'static> {
    /// The directive.
    pub name: &'static str,
    summary: &'static str,
    readme: &'static str,
    repeat: Repeat,
    start: fn() -> C,
    usage: Usage,
    arguments: Set<C>,
    properties: &'static [Property<C>],
    other_lines: Option<(Usage, Set<C>)>,
    complete: Set<C>,
    metrics: &'static [&'static Metric],
    check: fn(&Writing<'_, C>) -> Result<(), Problem>,
    settings: Option<fn(&C, &mut BlockSettings)>,
    traits: Traits,
    role: fn(&Writing<'_, C>) -> Role,
    removed: &'static [Old],
    deprecated: &'static [Old],
    build: Build<C>,
}

impl<C: 'static> Manifest<C> {
    /// A directive that stands once in a server block, without arguments or properties: its name, what it does in one
    /// sentence without a full stop, its README, its configuration before anything was read, and how it is made to run.
    #[must_use]
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        readme: &'static str,
        start: fn() -> C,
        build: Build<C>,
    ) -> Manifest<C> {
        Manifest {
            name,
            summary,
            readme,
            repeat: Repeat::Once,
            start,
            usage: Usage(name),
            arguments: |_, _| Ok(()),
            properties: &[],
            other_lines: None,
            complete: |_, _| Ok(()),
            metrics: &[],
            check: |_| Ok(()),
            settings: None,
            traits: Traits { any_class: false, encrypts: false },
            role: |_| Role::default(),
            removed: &[],
            deprecated: &[],
            build,
        }
    }

    /// It may stand any number of times.
    #[must_use]
    pub const fn repeated(self) -> Self {
        Manifest { repeat: Repeat::Many, ..self }
    }

    /// It may stand again, as in CoreDNS, but only its first line counts; a warning says so.
    #[must_use]
    pub const fn repeated_in_vain(self) -> Self {
        Manifest { repeat: Repeat::InVain, ..self }
    }

    /// The words on its own line, as they are written (its name included), and what takes them.
    #[must_use]
    pub const fn arguments(self, usage: &'static str, set: Set<C>) -> Self {
        Manifest { usage: Usage(usage), arguments: set, ..self }
    }

    /// The lines of its sub-block.
    #[must_use]
    pub const fn properties(self, properties: &'static [Property<C>]) -> Self {
        Manifest { properties, ..self }
    }

    /// Lines of its sub-block that begin with no property's name have a meaning: how they are written, and what takes them.
    #[must_use]
    pub const fn other_lines(self, usage: &'static str, set: Set<C>) -> Self {
        Manifest { other_lines: Some((Usage(usage), set)), ..self }
    }

    /// What is to be done when all lines have been read; `set` is given no words.
    #[must_use]
    pub const fn complete(self, set: Set<C>) -> Self {
        Manifest { complete: set, ..self }
    }

    /// What it counts.
    #[must_use]
    pub const fn metrics(self, metrics: &'static [&'static Metric]) -> Self {
        Manifest { metrics, ..self }
    }

    /// What no single line shows to be wrong.
    #[must_use]
    pub const fn check(self, check: fn(&Writing<'_, C>) -> Result<(), Problem>) -> Self {
        Manifest { check, ..self }
    }

    /// What it says about its server block as a whole, before anything is made to run.
    #[must_use]
    pub const fn settings(self, settings: fn(&C, &mut BlockSettings)) -> Self {
        Manifest { settings: Some(settings), ..self }
    }

    /// It handles questions of classes other than IN; without such a directive the server refuses them.
    #[must_use]
    pub const fn any_class(self) -> Self {
        Manifest { traits: Traits { any_class: true, ..self.traits }, ..self }
    }

    /// It gives its server block the certificates that encrypted schemes need.
    #[must_use]
    pub const fn encrypts(self) -> Self {
        Manifest { traits: Traits { encrypts: true, ..self.traits }, ..self }
    }

    /// What a line of it does in the chain.
    #[must_use]
    pub const fn role(self, role: fn(&Writing<'_, C>) -> Role) -> Self {
        Manifest { role, ..self }
    }

    /// Properties that CoreDNS had once and refuses today.
    #[must_use]
    pub const fn removed(self, removed: &'static [Old]) -> Self {
        Manifest { removed, ..self }
    }

    /// Properties among its own that are taken and have no effect.
    #[must_use]
    pub const fn deprecated(self, deprecated: &'static [Old]) -> Self {
        Manifest { deprecated, ..self }
    }
}

/// Properties of a directive that the engine acts on, whatever its lines say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It handles questions of classes other than IN.
    pub any_class: bool,
    /// It encrypts the addresses of its server block, if their scheme asks for that.
    pub encrypts: bool,
}

/// A property of an older version of CoreDNS.
pub struct Old {
    /// Its first word.
    pub name: &'static str,
    /// Since when, and what to do, as a sentence without a full stop.
    pub instead: &'static str,
}

/// Makes the lines of a directive run.
pub type Build<C> = fn(Vec<C>, &mut Setup<'_>) -> Result<Option<Part>, SetupError>;

/// How often a directive may stand in a server block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Once.
    Once,
    /// Any number of times, but only the first line counts.
    InVain,
    /// Any number of times; each line has its own configuration, in order.
    Many,
}

/// A line of a directive's sub-block.
pub struct Property<C> {
    /// How it is written, its name included.
    pub usage: Usage,
    /// What holds without it, as the documentation shows it; empty if nothing does.
    pub default: &'static str,
    /// What it means, in one or two sentences.
    pub doc: &'static str,
    /// Takes its words.
    pub set: Set<C>,
}

/// A directive as it was written, with what it means.
pub struct Writing<'a, C> {
    /// What it means.
    pub config: &'a C,
    /// The line it began on.
    pub written: &'a corefile::Directive,
    /// The server block it stands in.
    pub block: &'a BlockInfo,
}

impl<C> Writing<'_, C> {
    /// A problem with the directive as a whole.
    #[must_use]
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Box::new(Diagnostic::error(codes::VALUE, self.written.name.span, message))
    }

    /// A problem with a property, at its first line.
    #[must_use]
    pub fn problem_with(&self, property: &str, message: impl Into<String>) -> Problem {
        let words = self.written.lines().iter().filter_map(|line| line.words.first());
        let span = words.clone().find(|word| word.text == property).map_or(self.written.name.span, |word| word.span);
        Box::new(Diagnostic::error(codes::VALUE, span, message))
    }
}

/// A manifest, whatever its configuration is.
pub trait Directive: Sync {
    /// The directive.
    fn name(&self) -> &'static str;
    /// What it does.
    fn summary(&self) -> &'static str;
    /// Its README.
    fn readme(&self) -> &'static str;
    /// How its own line is written.
    fn usage(&self) -> Usage;
    /// How its properties are written, with default and meaning.
    fn properties(&self) -> Vec<Listed>;
    /// What it counts.
    fn metrics(&self) -> &'static [&'static Metric];
    /// Whether it says something about its server block as a whole.
    fn speaks_of_block(&self) -> bool;
    /// What the engine must know of it.
    fn traits(&self) -> Traits {
        Traits::default()
    }
    /// Reads all lines of a server block that begin with this directive; `None` if one is wrong.
    fn read(
        &self,
        lines: &[&corefile::Directive],
        block: &BlockInfo,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Box<dyn Meant>>;
}

/// A property, for the documentation.
pub struct Listed {
    /// How it is written.
    pub usage: Usage,
    /// What holds without it.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
}

/// A directive that was read and found right.
pub trait Meant: Send {
    /// What its lines do in the chain, in their order.
    fn roles(&self) -> &[PlacedRole];

    /// What it says about its server block as a whole.
    fn settings(&self, settings: &mut BlockSettings);

    /// Makes it run.
    ///
    /// # Errors
    /// If what it needs of the world is not there.
    fn build(self: Box<Self>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError>;
}

impl<C: Send + 'static> Directive for Manifest<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn readme(&self) -> &'static str {
        self.readme
    }

    fn speaks_of_block(&self) -> bool {
        self.settings.is_some()
    }

    fn traits(&self) -> Traits {
        self.traits
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn properties(&self) -> Vec<Listed> {
        let list =
            |property: &Property<C>| Listed { usage: property.usage, default: property.default, doc: property.doc };
        self.properties.iter().map(list).collect()
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        self.metrics
    }

    fn read(
        &self,
        lines: &[&corefile::Directive],
        block: &BlockInfo,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Box<dyn Meant>> {
        let before = problems.len();
        problems.extend(lines.get(1).and_then(|second| self.refuse_repeated(second)));
        let counting = if self.repeat == Repeat::InVain { lines.len().min(1) } else { lines.len() };
        let configs: Vec<C> = lines[..counting].iter().map(|line| self.read_line(line, block, problems)).collect();
        if problems[before..].iter().any(codes::is_mistake) {
            return None;
        }
        let place = |(config, written): (&C, &&corefile::Directive)| {
            PlacedRole::new((self.role)(&Writing { config, written, block }), written)
        };
        let roles = configs.iter().zip(lines).map(place).collect();
        Some(Box::new(ReadLines { configs, roles, settings: self.settings, build: self.build }))
    }
}

impl<C: 'static> Manifest<C> {
    /// What is wrong with a second line.
    fn refuse_repeated(&self, second: &corefile::Directive) -> Option<Diagnostic> {
        let (name, span) = (self.name, second.name.span);
        match self.repeat {
            Repeat::Many => None,
            Repeat::Once => {
                let message = format!("`{name}` can only be used once in a server block");
                Some(Diagnostic::error(codes::REPEATED, span, message))
            }
            Repeat::InVain => {
                let message =
                    format!("`{name}` stands more than once in this server block: only its first line counts");
                Some(Diagnostic::warning(codes::REPEATED, span, message))
            }
        }
    }

    fn read_line(&self, written: &corefile::Directive, block: &BlockInfo, problems: &mut Vec<Diagnostic>) -> C {
        let before = problems.len();
        let mut config = (self.start)();
        take(problems, &mut config, Args::new(&written.name, &written.args, self.usage), self.arguments);
        for line in written.lines() {
            self.read_property(&mut config, line, problems);
        }
        if !problems[before..].iter().any(codes::is_mistake) {
            take(problems, &mut config, Ok(Args::none(&written.name, self.usage)), self.complete);
        }
        if !problems[before..].iter().any(codes::is_mistake) {
            let writing = Writing { config: &config, written, block };
            problems.extend((self.check)(&writing).err().map(|problem| *problem));
        }
        config
    }

    fn read_property(&self, config: &mut C, line: &Line, problems: &mut Vec<Diagnostic>) {
        let Some((name, words)) = line.words.split_first() else { return };
        let old = |known: &'static [Old]| known.iter().find(|old| old.name == name.text);
        if let Some(old) = old(self.removed) {
            let message = format!("`{}` has no property `{}` any more", self.name, name.text);
            problems.push(Diagnostic::error(codes::REMOVED_PROPERTY, name.span, message).with_help(old.instead));
            return;
        }
        if let Some(old) = old(self.deprecated) {
            let message = format!("`{}` of `{}` has no effect any more", name.text, self.name);
            problems.push(Diagnostic::warning(codes::DEPRECATED_PROPERTY, name.span, message).with_help(old.instead));
        }
        match (self.properties.iter().find(|property| property.usage.name() == name.text), self.other_lines) {
            (Some(property), _) => take(problems, config, Args::new(name, words, property.usage), property.set),
            (None, Some((usage, set))) => take(problems, config, Args::new(name, words, usage), set),
            (None, None) => problems.push(*self.unknown_property(name)),
        }
    }

    fn unknown_property(&self, name: &Token) -> Problem {
        let message = format!("unknown property `{}` of `{}`", name.text, self.name);
        let problem = Diagnostic::error(codes::UNKNOWN_PROPERTY, name.span, message);
        let names = self.properties.iter().map(|property| property.usage.name());
        Box::new(match did_you_mean(&name.text, names.clone()) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None if self.properties.is_empty() => problem.with_help(format!("`{}` has no properties", self.name)),
            None => problem.with_help(format!("its properties are: {}", names.collect::<Vec<_>>().join(", "))),
        })
    }
}

/// Takes the words of a line into a configuration, and notes what is wrong with them.
fn take<C>(problems: &mut Vec<Diagnostic>, config: &mut C, args: Result<Args<'_>, Problem>, set: Set<C>) {
    let taken = args.and_then(|mut args| set(config, &mut args).map(|()| args.into_warnings()));
    match taken {
        Ok(warnings) => problems.extend(warnings),
        Err(problem) => problems.push(*problem),
    }
}

struct ReadLines<C> {
    configs: Vec<C>,
    roles: Vec<PlacedRole>,
    settings: Option<fn(&C, &mut BlockSettings)>,
    build: Build<C>,
}

impl<C: Send> Meant for ReadLines<C> {
    fn roles(&self) -> &[PlacedRole] {
        &self.roles
    }

    fn settings(&self, settings: &mut BlockSettings) {
        for config in &self.configs {
            self.settings.iter().for_each(|say| say(config, settings));
        }
    }

    fn build(self: Box<Self>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
        (self.build)(self.configs, setup)
    }
}
