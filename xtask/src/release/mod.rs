//! `cargo xtask release`: everything that a release consists of, in one directory: binaries with man pages and
//! completions, images, the Helm chart, dashboards, a bill of materials, the section of the changelog, and checksums.
//!
//! The same binaries give the same bytes.

mod chart;
mod notes;
mod sbom;
#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::archive::{self, Entry, gzip};
use crate::image::{self, Binary, Flavor, ImageOptions};
use crate::{Failed, VERSION, binary, programs, read_bytes, root};

/// Files of the project that belong to a binary.
const WITH_BINARY: [&str; 2] = ["LICENSE", "README.md"];
/// Dashboards for Grafana, as ConfigMaps.
const DASHBOARDS: &str = "dashboards.yaml";

/// Returns the definition of the command line.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("release")
        .about("Make all files of a release")
        .arg(
            Arg::new("version")
                .long("version")
                .value_name("VERSION")
                .required(true)
                .help("Version of Cargo.toml; with a suffix (1.2.3-rc.1), the changes are those of `Unreleased`"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Directory for the files [default: target/release-VERSION]"),
        )
        .arg(binary::argument())
        .arg(
            Arg::new("also")
                .long("also")
                .value_name("NAME=FILE")
                .action(ArgAction::Append)
                .help("Further binary, which is not put into images: linux-amd64-musl=FILE"),
        )
        .arg(image::repository_argument())
}

/// Release that is being made.
struct Release<'a> {
    version: &'a str,
    repository: &'a str,
    /// Time of all files in seconds since 1970.
    seconds: u64,
}

/// File of a release.
struct Artifact {
    name: String,
    bytes: Vec<u8>,
}

impl Artifact {
    fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Artifact {
        Artifact { name: name.into(), bytes: bytes.into() }
    }
}

/// Binary with the name of its platform, its keeper, and its debug information if that is beside it.
#[derive(Debug)]
struct Program {
    platform: String,
    bytes: Vec<u8>,
    keeper: Option<Vec<u8>>,
    debug: Option<Vec<u8>>,
}

/// Writes all files of a release.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let text = |name: &str| options.get_one::<String>(name).map_or("", String::as_str);
    let release =
        Release { version: text("version"), repository: text("repository"), seconds: archive::source_date()? };
    check_version(release.version, VERSION)?;
    let paths: Vec<PathBuf> = options.get_many("binary").into_iter().flatten().cloned().collect();
    let paths = if paths.is_empty() { vec![binary::static_binary(None)?.program] } else { paths };
    let also: Vec<&String> = options.get_many("also").into_iter().flatten().collect();
    let (binaries, programs) = read_programs(&paths, &also)?;
    let default = || root().join("target").join(format!("release-{}", release.version));
    let output: PathBuf = options.get_one("output").cloned().unwrap_or_else(default);
    let texts = root().join("target/release-texts");
    // Those of an earlier release may have had other names.
    match std::fs::remove_dir_all(&texts) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(format!("{}: {error}", texts.display())),
        _ => {}
    }
    programs::write_release_texts(&texts)?;
    let artifacts = make(&release, &binaries, &programs, &texts)?;
    write(&output, &artifacts)
}

/// Checks that a version is that of the source, with or without a suffix.
fn check_version(version: &str, source: &str) -> Result<(), Failed> {
    let number = version.split('-').next().unwrap_or_default();
    if number == source {
        return Ok(());
    }
    Err(format!("version `{version}` is not that of the source, `{source}`; change `version` in Cargo.toml first"))
}

/// Reads the binaries for images, and all binaries with their platforms.
fn read_programs(paths: &[PathBuf], also: &[&String]) -> Result<(Vec<Binary>, Vec<Program>), Failed> {
    let (mut binaries, mut programs) = (Vec::new(), Vec::new());
    for path in paths {
        let binary = Binary::read_with_keeper(path)?;
        let platform = format!("linux-{}", binary.architecture);
        let keeper = binary.keeper.clone();
        programs.push(Program { platform, bytes: binary.bytes.clone(), keeper, debug: debug_beside(path) });
        binaries.push(binary);
    }
    for further in also {
        let form = || format!("`{further}` is not of the form NAME=FILE");
        let (platform, path) = further.split_once('=').ok_or_else(form)?;
        let Binary { bytes, keeper, .. } = Binary::read_with_keeper(Path::new(path))?;
        programs.push(Program { platform: platform.to_owned(), bytes, keeper, debug: debug_beside(Path::new(path)) });
    }
    Ok((binaries, programs))
}

fn debug_beside(program: &Path) -> Option<Vec<u8>> {
    std::fs::read(program.with_extension("debug")).ok()
}

/// Makes all files, with their checksums last. `texts` is the directory of those that are made from the code.
fn make(
    release: &Release<'_>,
    binaries: &[Binary],
    programs: &[Program],
    texts: &Path,
) -> Result<Vec<Artifact>, Failed> {
    let (version, manual) = (release.version, files_in(&texts.join("manual"))?);
    let mut artifacts = Vec::new();
    for program in programs {
        let name = format!("portolan-{version}-{}", program.platform);
        artifacts.push(Artifact::new(format!("{name}.tar.gz"), binary_archive(release, &name, program, &manual)?));
        if let Some(debug) = &program.debug {
            artifacts.push(Artifact::new(format!("{name}.debug.gz"), gzip(debug)?));
        }
    }
    for flavor in [Flavor::Server, Flavor::Node] {
        let options = ImageOptions { flavor, repository: release.repository, version, seconds: release.seconds };
        artifacts.push(Artifact::new(format!("{}-{version}.tar", flavor.file()), image::make(&options, binaries)?));
    }
    artifacts.push(Artifact::new(format!("portolan-{version}.tgz"), chart::package(version, release.seconds)?));
    artifacts.push(Artifact::new(DASHBOARDS, read_bytes(&texts.join(DASHBOARDS))?));
    artifacts.push(Artifact::new(format!("portolan-{version}.cdx.json"), sbom::document(version)?));
    let changelog = String::from_utf8_lossy(&read_bytes(Path::new("CHANGELOG.md"))?).into_owned();
    artifacts.push(Artifact::new("CHANGES.md", notes::section(&changelog, version)?));
    artifacts.push(checksums(&artifacts));
    Ok(artifacts)
}

/// Packs a binary with its man pages, completions and licence.
fn binary_archive(
    release: &Release<'_>,
    name: &str,
    program: &Program,
    manual: &[(String, Vec<u8>)],
) -> Result<Vec<u8>, Failed> {
    let mut entries =
        vec![Entry::directory(name), Entry::program(format!("{name}/portolan"), program.bytes.as_slice())];
    if let Some(keeper) = &program.keeper {
        entries.push(Entry::program(format!("{name}/{}", binary::KEEPER), keeper.as_slice()));
    }
    for file in WITH_BINARY {
        entries.push(Entry::file(format!("{name}/{file}"), read_bytes(Path::new(file))?));
    }
    let mut folder = "";
    for (path, text) in manual {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if parent != folder {
            folder = parent;
            entries.push(Entry::directory(&format!("{name}/{folder}")));
        }
        entries.push(Entry::file(format!("{name}/{path}"), text.as_slice()));
    }
    gzip(&archive::tar(entries, release.seconds)?)
}

/// Returns all files below a directory of the project, with their paths in it, sorted.
fn files_in(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(next) = folders.pop() {
        let fail = |error: std::io::Error| format!("{}: {error}", next.display());
        for entry in std::fs::read_dir(&next).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root().join(folder)).map_err(|error| error.to_string())?;
            files.push((name.display().to_string(), std::fs::read(&path).map_err(fail)?));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the digests of all files in the form that `sha256sum --check` reads.
fn checksums(artifacts: &[Artifact]) -> Artifact {
    let line = |artifact: &Artifact| format!("{}  {}\n", archive::sha256(&artifact.bytes), artifact.name);
    Artifact::new("SHA256SUMS", artifacts.iter().map(line).collect::<String>())
}

fn write(output: &Path, artifacts: &[Artifact]) -> Result<(), Failed> {
    std::fs::create_dir_all(output).map_err(|error| format!("{}: {error}", output.display()))?;
    for Artifact { name, bytes } in artifacts {
        let path = output.join(name);
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{}: {} bytes", path.display(), bytes.len());
    }
    Ok(())
}
