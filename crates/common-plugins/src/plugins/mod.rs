//! Plugins. Each directory has the code of one directive, its README and its scenarios. Plugins do not use each other.

pub(crate) mod acl;
pub(crate) mod any;
pub(crate) mod autopath;
pub(crate) mod bind;
pub(crate) mod bufsize;
pub(crate) mod cache;
pub(crate) mod debug;
pub(crate) mod errors;
pub(crate) mod forward;
pub(crate) mod header;
pub(crate) mod health;
pub(crate) mod hosts;
pub(crate) mod kubernetes;
pub(crate) mod loadbalance;
pub(crate) mod local;
pub(crate) mod log;
pub(crate) mod r#loop;
pub(crate) mod minimal;
pub(crate) mod nsid;
pub(crate) mod prometheus;
pub(crate) mod ready;
pub(crate) mod reload;
pub(crate) mod rewrite;
pub(crate) mod template;
