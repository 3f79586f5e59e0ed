//! Version, commit and target of this build.

/// Version, as `-version` prints it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit of this build, or `unknown`.
pub(crate) const COMMIT: &str = env!("PORTOLAN_COMMIT");

/// Returns the text that `-version` prints.
#[must_use]
pub fn version_text() -> String {
    let (system, processor, target) = (std::env::consts::OS, std::env::consts::ARCH, env!("PORTOLAN_TARGET"));
    format!("Portolan-{VERSION}\n{system}/{processor}, {target}, {COMMIT}")
}
