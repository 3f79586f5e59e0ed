//! Version, commit, target and date of this build.

/// Version, as `-version` prints it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit of this build, or `unknown`.
pub const COMMIT: &str = env!("PORTOLAN_COMMIT");

/// Date of this build or, if it was not set, nothing: two builds of one commit are equal.
const DATE: Option<&str> = option_env!("PORTOLAN_DATE");

/// Returns the text that `-version` prints.
#[must_use]
pub fn version_text() -> String {
    let (system, processor, target) = (std::env::consts::OS, std::env::consts::ARCH, env!("PORTOLAN_TARGET"));
    let date = DATE.map_or_else(String::new, |date| format!(", {date}"));
    format!("Portolan-{VERSION}\n{system}/{processor}, {target}, {COMMIT}{date}")
}
