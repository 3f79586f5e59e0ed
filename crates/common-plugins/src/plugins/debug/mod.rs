//! Lets a panic end the process, so that it leaves a core dump or a stack trace to examine.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};

pub static MANIFEST: Manifest<()> =
    Manifest::new("debug", "end the process on a panic", || (), build).first_line_wins().without_handler();

fn build(_: Vec<()>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    setup.requests.panics_end = true;
    Ok(None)
}
