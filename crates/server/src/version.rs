//! Which build this is.

/// The version, as `-version` shows it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit that the build was made of, or `unknown`.
pub(crate) const COMMIT: &str = env!("PORTOLAN_COMMIT");

/// What `-version` prints.
#[must_use]
pub fn version_text() -> String {
    let (system, processor, target) = (std::env::consts::OS, std::env::consts::ARCH, env!("PORTOLAN_TARGET"));
    format!("Portolan-{VERSION}\n{system}/{processor}, {target}, {COMMIT}")
}
