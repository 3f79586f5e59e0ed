//! Protection against more queries than can be answered: accepted, there is no queue here that could grow.

use engine::options::Manifest;
use engine::setup::{Part, Setup, SetupError};

pub static MANIFEST: Manifest<()> =
    Manifest::new("shed", "accepted for compatibility; has no effect", include_str!("README.md"), || (), build);

fn build(_: Vec<()>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
