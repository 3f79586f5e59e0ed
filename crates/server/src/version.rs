//! Which build this is.

/// The version, as `-version` shows it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `-version` prints.
#[must_use]
pub fn version_text() -> String {
    let commit = option_env!("PORTOLAN_COMMIT").unwrap_or("unknown");
    format!("Portolan-{}\n{}/{}, {commit}", VERSION, std::env::consts::OS, std::env::consts::ARCH)
}
