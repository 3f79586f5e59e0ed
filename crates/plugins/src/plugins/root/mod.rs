//! Sets the directory for relative file names.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use std::path::PathBuf;

pub static MANIFEST: Manifest<PathBuf> =
    Manifest::new("root", "set the directory for relative file names", PathBuf::new, build)
        .repeated()
        .without_handler()
        .arguments("root PATH", |path, args| {
            let word = args.word()?;
            // No file system has such a path, so each file below it would fail for a reason that is hard to see.
            if word.text.contains('\0') {
                return Err(args.bad(word, "a path without NUL characters"));
            }
            *path = PathBuf::from(&word.text);
            Ok(())
        })
        .settings(|path, settings| settings.root.clone_from(path));

fn build(_: Vec<PathBuf>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
