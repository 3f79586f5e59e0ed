//! What the author of a plugin needs, in one crate.
//!
//! A plugin consists of three parts:
//!
//! 1. **Options**: a [`Manifest`](options::Manifest) names the directive, says which lines a Corefile may have, and
//!    documents them. `portolan check`, the README and the man page come from it.
//! 2. **Setup**: the function `build` makes the plugin from the options of a server block. A [`Setup`](setup::Setup)
//!    offers files, metrics, other plugins and the process.
//! 3. **Hooks**: a [`Plugin`] is called on the way of a query [down](Plugin::on_query) the chain, and on the way of the
//!    response [up](Plugin::on_response). Hooks are synchronous, because they run on the thread that received the
//!    query: they take no lock that another thread may hold for long and do not allocate for local answers. To wait
//!    is to return [`Verdict::Wait`].
//!
//! A program with the plugin names it in its `main`:
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     let directives = portolan::DIRECTIVES.with(&greet::MANIFEST, "cache");
//!     portolan::main(directives.expect("the directive `cache` exists"))
//! }
//! ```
//!
//! `examples/plugin-template` is such a program with a complete plugin, and `docs/your-own-plugin.md` the way to it.
//!
//! With the feature `testkit`, the module `testkit` plays scenarios: a Corefile, queries and expected responses, in
//! virtual time.
//!
//! # Stability
//!
//! This crate follows semantic versioning: what it exports changes incompatibly only with a new major version, or a new
//! minor version before 1.0. The other crates of the workspace follow no version.

pub mod fallthrough;
mod per_site;

pub use config::{DirectiveEntry, Directives, PlaceError, options, setup};
pub use engine::{
    Failure, Hooks, LocalFuture, Plugin, Query, Resolved, Response, Verdict, Worker, Zones, log, streams, tls,
};
pub use per_site::PerSite;
#[cfg(feature = "testkit")]
pub use testkit;
pub use {metrics, wire};
