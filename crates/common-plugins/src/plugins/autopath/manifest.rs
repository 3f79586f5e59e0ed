//! Options of *autopath*.

use config::options::{Args, DirectiveContext, Effect, Manifest, Problem, Property, Role, Usage};
use wire::Name;

/// Configuration of an `autopath` line.
#[derive(Debug, Default)]
pub struct Config {
    pub(super) zones: Vec<Name>,
    pub(super) source: Source,
    pub(super) clients: Clients,
}

/// Source of the search path.
#[derive(Debug, Default)]
pub(super) enum Source {
    /// Not set yet.
    #[default]
    None,
    /// A file in the format of resolv.conf(5).
    File(String),
    /// A directive of the server block.
    Directive(String),
}

/// Clients whose search path in a cluster is resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Clients {
    /// Pods in the namespace of the query name.
    #[default]
    Pods,
    /// All clients, based on the query name alone.
    Any,
}

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "autopath",
    "resolve the search path of clients on the server",
    Config::default,
    super::build,
)
.repeated()
.arguments("autopath [ZONES...] RESOLV-CONF|@kubernetes|@erratic", read_arguments)
.properties(&[Property {
    usage: Usage("clients pods|any"),
    default: "pods",
    doc: "Clients to search for, with `@kubernetes`: `pods` for pods in the namespace of the query name (requires \
          `pods verified` in *kubernetes*), `any` for all clients, based on the query name alone. Not in CoreDNS.",
    set: |config, args| {
        config.clients = args.choice(&[("pods", Clients::Pods), ("any", Clients::Any)])?;
        Ok(())
    },
}])
.metrics(&[&super::SUCCESSES])
.asks_server()
.check(check)
.role(|line| Role { uses: line.config.uses(), ..Role::new(Effect::Renames, &line.config.zones) });

impl Config {
    /// Returns the directive that the search path comes from.
    fn uses(&self) -> Option<&'static str> {
        matches!(&self.source, Source::Directive(name) if name == KUBERNETES).then_some(KUBERNETES)
    }
}

const KUBERNETES: &str = "kubernetes";

fn read_arguments(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    config.zones = args.zones_but(1)?;
    let source = args.word()?.text.clone();
    config.source = match source.strip_prefix('@') {
        Some(directive) => Source::Directive(directive.to_owned()),
        None => Source::File(source),
    };
    Ok(())
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let config = context.config;
    if config.clients == Clients::Any && matches!(config.source, Source::File(_)) {
        return Err(
            context.problem_with("clients", "clients requires @kubernetes: a file has the same path for all clients")
        );
    }
    match &config.source {
        Source::Directive(name)
            if !["kubernetes", "erratic"].contains(&name.as_str())
                && context.block.directives.contains(&name.as_str()) =>
        {
            Err(context.problem(format!("{name} does not implement the AutoPather interface: it has no search path")))
        }
        _ => Ok(()),
    }
}
