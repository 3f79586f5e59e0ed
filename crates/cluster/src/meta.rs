//! Object metadata.

/// `metadata` of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta<'a> {
    /// `namespace`; empty for a namespace.
    pub namespace: &'a str,
    /// `name`.
    pub name: &'a str,
    /// `resourceVersion`. An object already known in this version is skipped. Empty if the source has no versions;
    /// then every event is applied.
    pub version: &'a str,
}
