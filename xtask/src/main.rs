//! `cargo xtask`: the development tasks of the project.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::exit_code(xtask::run(&xtask::command().get_matches()))
}
