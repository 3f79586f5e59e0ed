//! Entry point of the `portolan` binary.

use std::process::ExitCode;

/// Allocator that returns memory to the system within a second after a burst, including that of idle threads. It is
/// configured in `.cargo/config.toml`; `docs/decisions/0006-allocator.md` has the reasons for the choice. A sanitizer
/// watches the allocator of the system alone, so that `cargo xtask sanitize` leaves this one out.
#[cfg(not(system_allocator))]
#[global_allocator]
static ALLOCATOR: portolan::Jemalloc = portolan::Jemalloc;

fn main() -> ExitCode {
    portolan::main(portolan::DIRECTIVES)
}
