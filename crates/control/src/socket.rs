//! Where a server listens for commands of the same machine, and who may send them.

/// Default path of the socket.
pub const PATH: &str = "/run/portolan/control.sock";
/// Default abstract name, without the leading `@`.
pub const ABSTRACT: &str = "portolan-control";
/// Maximum size of a response in bytes. Only a report of a server with very many metrics comes near it.
pub const RESPONSE_MAX: usize = 16 << 20;

/// Returns the reason why a user may not use the socket of a server that runs as `own`; `None` for the same user and
/// for root.
#[must_use]
pub fn refusal_of_user(peer: u32, own: u32) -> Option<String> {
    (peer != own && peer != 0).then(|| {
        format!(
            "user {peer} may not use the control socket of user {own}; run the command as user {own} or as root, for \
             example with `kubectl exec`"
        )
    })
}
