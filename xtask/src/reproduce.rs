//! `cargo xtask reproduce`: builds the static binary of a commit twice, in two folders with their own target folders,
//! and compares all bytes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Arg, ArgMatches, value_parser};

use crate::archive::{sha256, source_date};
use crate::binary::{Built, PROFILE, Source, static_binary_of};
use crate::{Failed, root};

/// Names of the two folders. They have different lengths, so that a path in the binary moves what follows.
const PLACES: [&str; 2] = ["one", "another/and-longer"];
/// Number of bytes that are shown around the first difference.
const SHOWN: usize = 48;

/// Returns the definition of the command line.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("reproduce")
        .about("Build the static binary of HEAD in two folders and compare the bytes; takes twice the time of `binary`")
        .arg(
            Arg::new("folder")
                .long("folder")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Folder for both builds, which must not exist [default: target/reproduce]"),
        )
        .arg(
            Arg::new("profile")
                .long("profile")
                .value_name("NAME")
                .default_value(PROFILE)
                .help("Profile of Cargo; that of releases takes longest"),
        )
}

/// Builds twice and fails if a file differs.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let profile = options.get_one::<String>("profile").map_or(PROFILE, String::as_str);
    let folder = options.get_one::<PathBuf>("folder").cloned().unwrap_or_else(|| root().join("target/reproduce"));
    if folder.exists() {
        return Err(format!("{} exists; remove it, or name another folder", folder.display()));
    }
    // The date is that of the commit in both.
    let date = source_date()?;
    println!("date of the commit: {date}");
    let built = PLACES.map(|place| {
        let place = folder.join(place);
        check_out(&place.join("source"))?;
        let source = Source { root: place.join("source"), folder: place.join("target"), profile: profile.to_owned() };
        static_binary_of(&source, None)
    });
    let [one, other] = built;
    let (one, other) = (files(&one?), files(&other?));
    let mut differ = Vec::new();
    for (one, other) in one.iter().zip(&other) {
        let name = one.file_name().unwrap_or_default().to_string_lossy();
        let [first, second] = [one, other].map(|file| read(file));
        let (first, second) = (first?, second?);
        println!("{name}: {} bytes, SHA-256 {}", first.len(), sha256(&first));
        differ.extend(difference(&first, &second).map(|what| format!("{name}: {what}")));
    }
    if differ.is_empty() { Ok(()) } else { Err(differ.join("\n")) }
}

fn files(built: &Built) -> [PathBuf; 3] {
    [built.program.clone(), built.debug.clone(), built.keeper.clone()]
}

fn read(file: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Writes the files of HEAD into a folder.
fn check_out(folder: &Path) -> Result<(), Failed> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut git = Command::new("git");
    let git = git.args(["archive", "--format=tar", "HEAD"]).current_dir(root()).stdout(Stdio::piped());
    let mut packing = git.spawn().map_err(|error| format!("git: {error}"))?;
    let mut archive = tar::Archive::new(packing.stdout.take().ok_or("git has no output")?);
    archive.unpack(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    match packing.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("git archive: {status}")),
        Err(error) => Err(format!("git archive: {error}")),
    }
}

/// Says how two files differ; `None` if they are equal.
fn difference(one: &[u8], other: &[u8]) -> Option<String> {
    if one == other {
        return None;
    }
    let count = one.iter().zip(other).filter(|(one, other)| one != other).count();
    let first = one.iter().zip(other).position(|(one, other)| one != other).unwrap_or(one.len().min(other.len()));
    let around = |bytes: &[u8]| {
        let start = first.saturating_sub(SHOWN / 2).min(bytes.len());
        let part = &bytes[start..bytes.len().min(start + SHOWN)];
        part.escape_ascii().to_string()
    };
    Some(format!(
        "{} and {} bytes, {count} of the common ones differ, the first at {first:#x}: `{}` and `{}`",
        one.len(),
        other.len(),
        around(one),
        around(other)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_first_difference() {
        assert_eq!(difference(b"same", b"same"), None);
        let shown = difference(b"path /one/a", b"path /two/a").unwrap();
        assert_eq!(
            shown,
            "11 and 11 bytes, 3 of the common ones differ, the first at 0x6: `path /one/a` and `path /two/a`"
        );
        assert!(difference(b"longer", b"long").unwrap().contains("0 of the common ones differ, the first at 0x4"));
    }

    #[test]
    fn a_checkout_has_the_files_of_the_commit_and_no_history() {
        let folder = std::env::temp_dir().join(format!("portolan-reproduce-{}", std::process::id()));
        check_out(&folder).unwrap();
        let has = |name: &str| folder.join(name).exists();
        assert!(has("Cargo.lock") && has("crates/portolan/src/main.rs") && !has(".git"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
