//! Entry point of the `portolan-keeper` binary. It is in this package so that its tests find both programs; it links
//! nothing but the crate `keeper`.

use std::process::ExitCode;

fn main() -> ExitCode {
    keeper::main()
}
