//! Capability to bind ports below 1024 (capabilities(7)).
//!
//! The binary in the image has `CAP_NET_BIND_SERVICE` as a permitted file capability, without the effective bit. With
//! that bit, the kernel would refuse to start the binary wherever the capability is dropped, even if all ports are
//! high. So the process raises the capability itself, if it was permitted.

use rustix::io::Result;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Makes the permitted capability to bind low ports effective. Capabilities belong to threads, so this must run before
/// other threads start.
pub(crate) fn raise_bind_capability() {
    // An error leaves the process without the capability. If it needs one, binding fails with its own message.
    let _ = raise(CapabilitySet::NET_BIND_SERVICE);
}

fn raise(capability: CapabilitySet) -> Result<()> {
    let mut sets = capabilities(None)?;
    if !sets.permitted.contains(capability) || sets.effective.contains(capability) {
        return Ok(());
    }
    sets.effective |= capability;
    set_capabilities(None, sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raises_only_what_is_permitted() {
        // Capabilities belong to this thread, so the test needs no process of its own.
        let before = capabilities(None).unwrap();
        raise(CapabilitySet::NET_BIND_SERVICE).unwrap();
        let after = capabilities(None).unwrap();
        assert_eq!(after.permitted, before.permitted);
        assert_eq!(after.effective, before.effective | (before.permitted & CapabilitySet::NET_BIND_SERVICE));
        if before.permitted.contains(CapabilitySet::NET_BIND_SERVICE) {
            let lowered = before.effective - CapabilitySet::NET_BIND_SERVICE;
            set_capabilities(None, rustix::thread::CapabilitySets { effective: lowered, ..before }).unwrap();
            raise(CapabilitySet::NET_BIND_SERVICE).unwrap();
            assert!(capabilities(None).unwrap().effective.contains(CapabilitySet::NET_BIND_SERVICE));
        }
    }
}
