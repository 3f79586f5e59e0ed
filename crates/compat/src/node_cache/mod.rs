//! NodeLocal DNSCache: node-cache's flags ([`Settings`]), and the Corefile from its template and the
//! ConfigMap of kube-dns ([`corefile()`]).
//!
//! Other crates set up the interface and the packet filter, watch files and serve.

mod flags;
mod settings;
mod template;

pub use flags::FLAGS;
pub use settings::{Backend, InterfaceKind, Settings, service_variable};
pub use template::{TemplateInputs, corefile, with_examples};
