//! Plugins that most clusters have in their Corefile, one directory each in `plugins`, and code that several plugins
//! use, in `shared`.
//!
//! Nearly every query passes some of these plugins, so the program that ships optimises this crate for speed, and the
//! crate `plugins`, which has the others and the order of all, for size (docs/decisions/0014).

mod plugins;
pub mod shared;

pub use plugins::cache::MEMORY as CACHE_MEMORY;
pub use plugins::forward::{HostLookup, OVER_TCP};
pub use plugins::kubernetes::LocalAddresses;
pub use plugins::log::QueryFields;
pub use plugins::prometheus::ENABLED_METRICS;
pub use plugins::reload::{FAILED as RELOAD_FAILED, VERSION as RELOAD_VERSION};

use config::DirectiveEntry::{self, Available};
use engine::ReasonCode;

use plugins::{
    acl, any, autopath, bind, bufsize, cache, debug, errors, forward, header, health, hosts, kubernetes, loadbalance,
    local, log, r#loop, minimal, nsid, prometheus, ready, reload, rewrite, template,
};

/// *acl*.
pub const ACL: DirectiveEntry = Available(&acl::MANIFEST);
/// *any*.
pub const ANY: DirectiveEntry = Available(&any::MANIFEST);
/// *autopath*.
pub const AUTOPATH: DirectiveEntry = Available(&autopath::MANIFEST);
/// *bind*.
pub const BIND: DirectiveEntry = Available(&bind::MANIFEST);
/// *bufsize*.
pub const BUFSIZE: DirectiveEntry = Available(&bufsize::MANIFEST);
/// *cache*.
pub const CACHE: DirectiveEntry = Available(&cache::MANIFEST);
/// *debug*.
pub const DEBUG: DirectiveEntry = Available(&debug::MANIFEST);
/// *errors*.
pub const ERRORS: DirectiveEntry = Available(&errors::MANIFEST);
/// *forward*.
pub const FORWARD: DirectiveEntry = Available(&forward::MANIFEST);
/// *header*.
pub const HEADER: DirectiveEntry = Available(&header::MANIFEST);
/// *health*.
pub const HEALTH: DirectiveEntry = Available(&health::MANIFEST);
/// *hosts*.
pub const HOSTS: DirectiveEntry = Available(&hosts::MANIFEST);
/// *kubernetes*.
pub const KUBERNETES: DirectiveEntry = Available(&kubernetes::MANIFEST);
/// *loadbalance*.
pub const LOADBALANCE: DirectiveEntry = Available(&loadbalance::MANIFEST);
/// *local*.
pub const LOCAL: DirectiveEntry = Available(&local::MANIFEST);
/// *log*.
pub const LOG: DirectiveEntry = Available(&log::MANIFEST);
/// *loop*.
pub const LOOP: DirectiveEntry = Available(&r#loop::MANIFEST);
/// *minimal*.
pub const MINIMAL: DirectiveEntry = Available(&minimal::MANIFEST);
/// *nsid*.
pub const NSID: DirectiveEntry = Available(&nsid::MANIFEST);
/// *prometheus*.
pub const PROMETHEUS: DirectiveEntry = Available(&prometheus::MANIFEST);
/// *ready*.
pub const READY: DirectiveEntry = Available(&ready::MANIFEST);
/// *reload*.
pub const RELOAD: DirectiveEntry = Available(&reload::MANIFEST);
/// *rewrite*.
pub const REWRITE: DirectiveEntry = Available(&rewrite::MANIFEST);
/// *template*.
pub const TEMPLATE: DirectiveEntry = Available(&template::MANIFEST);

/// Returns the codes of the reasons that plugins give for their answers.
pub fn reason_codes() -> impl Iterator<Item = &'static ReasonCode> {
    let plugins: [&[&'static ReasonCode]; 7] = [
        &acl::REASONS,
        &kubernetes::REASONS,
        &cache::REASONS,
        &forward::REASONS,
        &hosts::REASONS,
        &r#loop::REASONS,
        &template::REASONS,
    ];
    plugins.into_iter().flatten().copied()
}
