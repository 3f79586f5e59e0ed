//! What all objects have in common.

/// `metadata` of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta<'a> {
    /// `namespace`; empty for a namespace.
    pub namespace: &'a str,
    /// `name`.
    pub name: &'a str,
    /// `resourceVersion`: an object that is known in this version is not looked at again. Empty if the source has no
    /// versions; then every event counts.
    pub version: &'a str,
}
