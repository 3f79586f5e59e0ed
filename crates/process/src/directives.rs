//! Directives of this build.

/// Returns the names of the directives in this build, sorted.
pub fn plugin_names() -> impl Iterator<Item = &'static str> {
    let here = plugins::DIRECTIVES.iter().filter(|entry| matches!(entry, config::DirectiveEntry::Available(_)));
    let mut names: Vec<_> = here.map(config::DirectiveEntry::name).collect();
    names.sort_unstable();
    names.into_iter()
}
