//! Portolan with the plugin *greet*.

use std::process::ExitCode;

use greeting_dns::greet;

#[global_allocator]
static ALLOCATOR: portolan::Jemalloc = portolan::Jemalloc;

fn main() -> ExitCode {
    // Below *cache*, so that its answers are cached like those of other plugins.
    match portolan::DIRECTIVES.with(&greet::MANIFEST, "cache") {
        Ok(directives) => portolan::main(directives),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
