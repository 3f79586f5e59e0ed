//! Accepted for compatibility. Each worker has its own socket per address anyway.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};

pub static MANIFEST: Manifest<Option<usize>> =
    Manifest::new("multisocket", "accepted for compatibility; has no effect", || None, build)
        .without_handler()
        .arguments("multisocket [NUMBER]", |number, args| {
            if !args.rest().is_empty() {
                *number = Some(args.number(1..=SOCKETS_MAX)?);
            }
            Ok(())
        });

/// Maximum in CoreDNS.
const SOCKETS_MAX: usize = 1024;

fn build(_: Vec<Option<usize>>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
