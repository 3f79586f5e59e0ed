//! Sets the directory for relative file names.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use std::path::PathBuf;

pub static MANIFEST: Manifest<PathBuf> =
    Manifest::new("root", "set the directory for relative file names", include_str!("README.md"), PathBuf::new, build)
        .repeated()
        .without_handler()
        .arguments("root PATH", |path, args| {
            *path = PathBuf::from(&args.word()?.text);
            Ok(())
        })
        .settings(|path, settings| settings.root.clone_from(path));

fn build(_: Vec<PathBuf>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
