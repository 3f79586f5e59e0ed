//! Manifest of a directive, and the parser that it drives.
//!
//! A plugin declares one `static` [`Manifest`] with its configuration type `C`. For each line of the directive, the
//! parser creates a configuration, passes the words of the line and of its properties to the setters, and runs the
//! checks. All lines of a server block are then built into one plugin.
//!
//! ```text
//!   Manifest::new("ttl_cap", "limits TTLs", Config::default, build)
//!       .arguments("ttl_cap SECONDS", |config, args| { config.cap = args.number(0..=86_400)?; Ok(()) })
//!       .metrics(&[&CAPPED])
//! ```

use corefile::{Diagnostic, Span, Token};

use super::args::{Args, Problem};
use super::role::{PlacedRole, Role};
use super::syntax::{Configs, RemovedProperty, Repeat, Syntax, Words};
use super::usage::Usage;
use crate::codes;
use crate::setup::{BlockInfo, BlockSettings, Part, Setup, SetupError};
use metrics::Metric;

/// Setter: stores the words of a line in a configuration.
pub type SetProperty<C> = fn(&mut C, &mut Args<'_>) -> Result<(), Problem>;

/// Declaration of a directive. [`Manifest::new`] sets the required parts and defaults, the builder methods the rest.
pub struct Manifest<C: 'static> {
    /// Name.
    pub name: &'static str,
    summary: &'static str,
    syntax: Syntax,
    start: fn() -> C,
    arguments: SetProperty<C>,
    properties: &'static [Property<C>],
    set_other_line: SetProperty<C>,
    complete: SetProperty<C>,
    metrics: &'static [&'static Metric],
    check: fn(&DirectiveContext<'_, C>) -> Result<(), Problem>,
    settings: Option<fn(&C, &mut BlockSettings)>,
    traits: DirectiveTraits,
    role: fn(&DirectiveContext<'_, C>) -> Role,
    build: Build<C>,
}

impl<C: 'static> Manifest<C> {
    /// Declares a directive that occurs once in a server block and has no arguments or properties.
    ///
    /// `summary` says in one sentence, without a full stop, what the directive does. `start` creates the initial
    /// configuration, and `build` creates the plugin.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, start: fn() -> C, build: Build<C>) -> Manifest<C> {
        Manifest {
            name,
            summary,
            syntax: Syntax {
                name,
                usage: Usage(name),
                repeat: Repeat::Once,
                other_lines: None,
                removed: &[],
                deprecated: &[],
            },
            start,
            arguments: |_, _| Ok(()),
            properties: &[],
            set_other_line: |_, _| Ok(()),
            complete: |_, _| Ok(()),
            metrics: &[],
            check: |_| Ok(()),
            settings: None,
            traits: DirectiveTraits {
                any_class: false,
                takes_updates: false,
                encrypts: false,
                has_no_handler: false,
                asks_server: false,
                sets_labels: false,
            },
            role: |_| Role::default(),
            build,
        }
    }

    /// Allows several lines in a server block.
    #[must_use]
    pub const fn repeated(self) -> Self {
        Manifest { syntax: Syntax { repeat: Repeat::Many, ..self.syntax }, ..self }
    }

    /// Allows several lines in a server block, like CoreDNS, but only the first one has an effect. A warning says so.
    #[must_use]
    pub const fn first_line_wins(self) -> Self {
        Manifest { syntax: Syntax { repeat: Repeat::FirstWins, ..self.syntax }, ..self }
    }

    /// Declares the syntax of the directive's own line, including its name, and its setter.
    #[must_use]
    pub const fn arguments(self, usage: &'static str, set: SetProperty<C>) -> Self {
        Manifest { syntax: Syntax { usage: Usage(usage), ..self.syntax }, arguments: set, ..self }
    }

    /// Declares the properties in its sub-block.
    #[must_use]
    pub const fn properties(self, properties: &'static [Property<C>]) -> Self {
        Manifest { properties, ..self }
    }

    /// Declares the syntax and the setter of lines in its sub-block that do not start with the name of a property.
    #[must_use]
    pub const fn other_lines(self, usage: &'static str, set: SetProperty<C>) -> Self {
        Manifest { syntax: Syntax { other_lines: Some(Usage(usage)), ..self.syntax }, set_other_line: set, ..self }
    }

    /// Sets a function that completes the configuration after all lines. It gets no words.
    #[must_use]
    pub const fn complete(self, set: SetProperty<C>) -> Self {
        Manifest { complete: set, ..self }
    }

    /// Declares the metrics.
    #[must_use]
    pub const fn metrics(self, metrics: &'static [&'static Metric]) -> Self {
        Manifest { metrics, ..self }
    }

    /// Sets a check of the complete configuration, for an error or a warning that no single line shows.
    #[must_use]
    pub const fn check(self, check: fn(&DirectiveContext<'_, C>) -> Result<(), Problem>) -> Self {
        Manifest { check, ..self }
    }

    /// Sets a function that changes settings of the server block, before any plugin is built.
    #[must_use]
    pub const fn settings(self, settings: fn(&C, &mut BlockSettings)) -> Self {
        Manifest { settings: Some(settings), ..self }
    }

    /// Declares that the directive handles classes other than IN. The server refuses other classes without such a
    /// directive.
    #[must_use]
    pub const fn any_class(self) -> Self {
        Manifest { traits: DirectiveTraits { any_class: true, ..self.traits }, ..self }
    }

    /// Declares that the directive applies UPDATE messages. The server answers NOTIMP to them without such a directive.
    #[must_use]
    pub const fn takes_updates(self) -> Self {
        Manifest { traits: DirectiveTraits { takes_updates: true, ..self.traits }, ..self }
    }

    /// Declares that the directive provides the certificates for encrypted transports.
    #[must_use]
    pub const fn encrypts(self) -> Self {
        Manifest { traits: DirectiveTraits { encrypts: true, ..self.traits }, ..self }
    }

    /// Declares that CoreDNS has no handler for the directive, so that metrics do not list it as an enabled plugin.
    #[must_use]
    pub const fn without_handler(self) -> Self {
        Manifest { traits: DirectiveTraits { has_no_handler: true, ..self.traits }, ..self }
    }

    /// Declares that its answers may contain those of other server blocks, because it asks the whole server.
    #[must_use]
    pub const fn asks_server(self) -> Self {
        Manifest { traits: DirectiveTraits { asks_server: true, ..self.traits }, ..self }
    }

    /// Declares that it sets metadata labels, which directives further down may use for their answers.
    #[must_use]
    pub const fn sets_labels(self) -> Self {
        Manifest { traits: DirectiveTraits { sets_labels: true, ..self.traits }, ..self }
    }

    /// Sets the function that describes the effect of a line in the chain, for warnings about the whole Corefile.
    #[must_use]
    pub const fn role(self, role: fn(&DirectiveContext<'_, C>) -> Role) -> Self {
        Manifest { role, ..self }
    }

    /// Declares properties that older versions of CoreDNS had. They are errors.
    #[must_use]
    pub const fn removed(self, removed: &'static [RemovedProperty]) -> Self {
        Manifest { syntax: Syntax { removed, ..self.syntax }, ..self }
    }

    /// Declares which of its properties are accepted without effect. They yield a warning.
    #[must_use]
    pub const fn deprecated(self, deprecated: &'static [RemovedProperty]) -> Self {
        Manifest { syntax: Syntax { deprecated, ..self.syntax }, ..self }
    }
}

/// Properties of a directive that the engine needs before it parses any line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectiveTraits {
    /// True if it handles classes other than IN.
    pub any_class: bool,
    /// True if it applies UPDATE messages.
    pub takes_updates: bool,
    /// True if it provides the certificates for encrypted transports.
    pub encrypts: bool,
    /// True if CoreDNS has no handler for it, because it configures the server.
    pub has_no_handler: bool,
    /// True if it asks other server blocks ([`SubqueryTarget`](engine::SubqueryTarget) other than `Below`) for a part
    /// of its answers.
    pub asks_server: bool,
    /// True if directives further down may answer by metadata labels that it sets.
    pub sets_labels: bool,
}

/// Builds a plugin from the configurations of all lines. `None` if the directive adds no step to the chain.
pub type Build<C> = fn(Vec<C>, &mut Setup<'_>) -> Result<Option<Part>, SetupError>;

/// Property: a line in the sub-block of a directive.
pub struct Property<C> {
    /// Syntax, including the name.
    pub usage: Usage,
    /// Default for the documentation; may be empty. The `start` of [`Manifest::new`] sets the value itself.
    pub default: &'static str,
    /// Documentation, in one or two sentences.
    pub doc: &'static str,
    /// Setter.
    pub set: SetProperty<C>,
}

/// Parsed line of a directive, with its source.
pub struct DirectiveContext<'a, C> {
    /// Configuration.
    pub config: &'a C,
    /// Source line.
    pub written: &'a corefile::Directive,
    /// Server block that contains it.
    pub block: &'a BlockInfo,
}

impl<C> DirectiveContext<'_, C> {
    /// Returns an error at the name of the directive.
    #[must_use]
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Box::new(Diagnostic::error(codes::VALUE, self.written.name.span, message))
    }

    /// Returns an error at the first line of a property.
    #[must_use]
    pub fn problem_with(&self, property: &str, message: impl Into<String>) -> Problem {
        Box::new(Diagnostic::error(codes::VALUE, self.span_of(property), message))
    }

    /// Returns a warning at the first line of a property.
    #[must_use]
    pub fn warning_with(&self, property: &str, message: impl Into<String>) -> Problem {
        Box::new(Diagnostic::warning(codes::VALUE, self.span_of(property), message))
    }

    /// Returns a warning at a word, with help.
    #[must_use]
    pub fn warning_at(&self, word: &Token, message: impl Into<String>, help: impl Into<String>) -> Problem {
        Box::new(Diagnostic::warning(codes::VALUE, word.span, message).with_help(help))
    }

    /// Returns an error at the first argument, with help.
    #[must_use]
    pub fn problem_at_argument(&self, message: impl Into<String>, help: impl Into<String>) -> Problem {
        let word = self.written.args.first().unwrap_or(&self.written.name);
        Box::new(Diagnostic::error(codes::VALUE, word.span, message).with_help(help))
    }

    /// Returns the source line of a property, if it is written.
    #[must_use]
    pub fn word_of(&self, property: &str) -> Option<&Token> {
        let mut words = self.written.lines().iter().filter_map(|line| line.words.first());
        words.find(|word| word.text == property)
    }

    fn span_of(&self, property: &str) -> Span {
        self.word_of(property).map_or(self.written.name.span, |word| word.span)
    }
}

/// A [`Manifest`] without its configuration type.
pub trait Directive: Sync {
    /// Name.
    fn name(&self) -> &'static str;
    /// Summary.
    fn summary(&self) -> &'static str;
    /// Syntax of its own line.
    fn usage(&self) -> Usage;
    /// Properties, for the documentation.
    fn properties(&self) -> Vec<PropertyDoc>;
    /// Metrics.
    fn metrics(&self) -> &'static [&'static Metric];
    /// Returns true if it changes settings of the server block.
    fn changes_block_settings(&self) -> bool;
    /// Properties that the engine needs.
    fn traits(&self) -> DirectiveTraits {
        DirectiveTraits::default()
    }
    /// Parses all lines of the directive in a server block. `None` if there is an error, which is added to `problems`.
    fn read(
        &self,
        lines: &[&corefile::Directive],
        block: &BlockInfo,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Box<dyn ParsedDirective>>;
}

/// Property, for the documentation.
pub struct PropertyDoc {
    /// Syntax.
    pub usage: Usage,
    /// Default.
    pub default: &'static str,
    /// Documentation.
    pub doc: &'static str,
}

/// Parsed directive without errors.
pub trait ParsedDirective: Send {
    /// Roles of its lines in the chain, in order.
    fn roles(&self) -> &[PlacedRole];

    /// Applies its settings to the server block.
    fn settings(&self, settings: &mut BlockSettings);

    /// Builds the plugin.
    ///
    /// # Errors
    /// A resource is missing or unusable, for example a file.
    fn build(self: Box<Self>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError>;
}

impl<C: Send + 'static> Directive for Manifest<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn changes_block_settings(&self) -> bool {
        self.settings.is_some()
    }

    fn traits(&self) -> DirectiveTraits {
        self.traits
    }

    fn usage(&self) -> Usage {
        self.syntax.usage
    }

    fn properties(&self) -> Vec<PropertyDoc> {
        let list = |property: &Property<C>| PropertyDoc {
            usage: property.usage,
            default: property.default,
            doc: property.doc,
        };
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
    ) -> Option<Box<dyn ParsedDirective>> {
        let mut configs = ManifestConfigs { manifest: self, configs: Vec::new() };
        let roles = self.syntax.read(lines, block, &mut configs, problems)?;
        let configs = configs.configs;
        Some(Box::new(ReadLines { configs, roles, settings: self.settings, build: self.build }))
    }
}

/// Configurations of the lines that were read so far.
struct ManifestConfigs<'a, C: 'static> {
    manifest: &'a Manifest<C>,
    configs: Vec<C>,
}

impl<C> Configs for ManifestConfigs<'_, C> {
    fn start(&mut self) {
        self.configs.push((self.manifest.start)());
    }

    fn property(&self, index: usize) -> Option<Usage> {
        self.manifest.properties.get(index).map(|property| property.usage)
    }

    fn set(&mut self, words: Words, args: &mut Args<'_>) -> Result<(), Problem> {
        let set = match words {
            Words::Arguments => self.manifest.arguments,
            Words::Property(index) => self.manifest.properties[index].set,
            Words::OtherLine => self.manifest.set_other_line,
            Words::Complete => self.manifest.complete,
        };
        self.configs.last_mut().map_or(Ok(()), |config| set(config, args))
    }

    fn check(&self, written: &corefile::Directive, block: &BlockInfo) -> Result<(), Problem> {
        let last = self.configs.last();
        last.map_or(Ok(()), |config| (self.manifest.check)(&DirectiveContext { config, written, block }))
    }

    fn role(&self, line: usize, written: &corefile::Directive, block: &BlockInfo) -> Role {
        (self.manifest.role)(&DirectiveContext { config: &self.configs[line], written, block })
    }
}

struct ReadLines<C> {
    configs: Vec<C>,
    roles: Vec<PlacedRole>,
    settings: Option<fn(&C, &mut BlockSettings)>,
    build: Build<C>,
}

impl<C: Send> ParsedDirective for ReadLines<C> {
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
