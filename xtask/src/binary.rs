//! `cargo xtask binary`: the static binary, with its debug information in a file of its own, and its keeper. Both list
//! their crates.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::archive::source_date;
use crate::server::profile_folder;
use crate::{Failed, auditable, root};

/// Name of the keeper, in the folder of the server.
pub const KEEPER: &str = "portolan-keeper";
/// Profile of Cargo for what ships.
pub const PROFILE: &str = "dist";
/// Options for LLD, which is rustc's linker for x86_64: equal functions are linked once, and the addresses that a
/// position-independent program corrects at its start take 10 KB in place of 1.3 MB. The C library of the machine that
/// builds must be able to correct them (glibc 2.36).
const LINKER_FLAGS: [&str; 2] = ["-Clink-arg=-Wl,--icf=all", "-Clink-arg=-Wl,-z,pack-relative-relocs"];
/// Leaves AES-GCM with AVX-512 out of aws-lc: 0.7 MB of code. Without it, encrypting an answer of 200 bytes takes
/// 130 ns in place of 90 ns on CPUs that have these instructions.
const NO_AVX512: &str = "-DMY_ASSEMBLER_IS_TOO_OLD_FOR_512AVX=1";

/// Static binary and its debug information.
pub struct Built {
    /// Binary without debug information.
    pub program: PathBuf,
    /// Its debug information.
    pub debug: PathBuf,
    /// Static binary of the keeper, beside the program.
    pub keeper: PathBuf,
}

/// Returns the definition of the command line.
pub fn command() -> clap::Command {
    clap::Command::new("binary").about("Build a static binary for images and releases; takes minutes").arg(
        Arg::new("target")
            .long("target")
            .value_name("TRIPLE")
            .help("Target, whose standard library must be installed [default: this machine]"),
    )
}

/// Returns the option for static binaries that were built before.
pub fn argument() -> Arg {
    Arg::new("binary")
        .long("binary")
        .value_name("FILE")
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .help("Static binary, once per architecture [default: build one for this machine]")
}

/// Builds the binary and prints where it is.
pub fn run(options: &ArgMatches) -> Result<(), Failed> {
    let built = static_binary(options.get_one::<String>("target").map(String::as_str))?;
    println!("{}\n{}\n{}", built.program.display(), built.debug.display(), built.keeper.display());
    Ok(())
}

/// Builds the binary for a target, or for this machine. It links the C library statically, and no path of this machine
/// is in it. Needs `objcopy` of the binutils for the same target.
pub fn static_binary(target: Option<&str>) -> Result<Built, Failed> {
    static_binary_of(&Source { root: root(), folder: target_folder(), profile: PROFILE.to_owned() }, target)
}

/// Folders of a build, and its profile of Cargo.
pub struct Source {
    /// Checkout.
    pub root: PathBuf,
    /// Target folder.
    pub folder: PathBuf,
    /// Profile.
    pub profile: String,
}

/// Builds the binary from a checkout.
pub fn static_binary_of(source: &Source, target: Option<&str>) -> Result<Built, Failed> {
    let is_host = target.is_none();
    let target = target.map_or_else(host, |target| Ok(target.to_owned()))?;
    let folder = &source.folder;
    build(source, &target)?;
    let linked = folder.join(&target).join(profile_folder(&source.profile));
    let output = folder.join(&target).join("static");
    std::fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let keeper = output.join(KEEPER);
    // Its crashes have no backtrace: it is a few hundred lines, and a small file is the aim.
    objcopy(&["--strip-all", &crates_of("portolan-keeper", folder)?], &linked.join(KEEPER), &keeper)?;
    let linked = linked.join("portolan");
    let built = Built { program: output.join("portolan"), debug: output.join("portolan.debug"), keeper };
    objcopy(&["--only-keep-debug", "--compress-debug-sections=zlib"], &linked, &built.debug)?;
    // The symbols stay: CPU profiles and the backtrace of a panic name functions by them.
    let link = format!("--add-gnu-debuglink={}", built.debug.display());
    objcopy(&["--strip-debug", &link, &crates_of("portolan", folder)?], &linked, &built.program)?;
    if is_host {
        // A C library that cannot correct packed addresses ends the program before its first line.
        succeed(Command::new(&built.program).arg("-version").stdout(Stdio::null()))?;
        succeed(Command::new(&built.keeper).arg("-version").stdout(Stdio::null()))?;
    }
    Ok(built)
}

/// Writes the list of the crates in a package, and returns the option of objcopy that adds it to a binary.
fn crates_of(package: &str, folder: &Path) -> Result<String, Failed> {
    let file = folder.join(format!("{package}.crates"));
    std::fs::write(&file, auditable::section(package)?).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(format!("--add-section={}={}", auditable::SECTION, file.display()))
}

fn build(source: &Source, target: &str) -> Result<(), Failed> {
    let Source { root, folder, profile } = source;
    let moved = moved_paths(root, folder, &registry());
    // Separated by the unit separator, a path may contain spaces.
    // The crate getrandom looks its system call up in a shared object, which a static binary does not have, and falls
    // back to /dev/urandom, which an empty root does not have. All supported kernels have the system call.
    let mut flags =
        ["-Ctarget-feature=+crt-static", "--cfg=getrandom_backend=\"linux_getrandom\""].map(str::to_owned).to_vec();
    if target.starts_with("x86_64") {
        flags.extend(LINKER_FLAGS.map(str::to_owned));
    }
    flags.extend(moved.iter().map(|(path, name)| format!("--remap-path-prefix={path}={name}")));
    let mut c_flags: Vec<String> =
        moved.iter().map(|(path, name)| format!("-ffile-prefix-map={path}={name}")).collect();
    c_flags.push(NO_AVX512.to_owned());
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.args(["build", "--profile", profile, "--locked", "--package", "portolan", "--target", target]);
    cargo.current_dir(root).env("CARGO_TARGET_DIR", folder).env("CARGO_INCREMENTAL", "0");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env("CFLAGS", c_flags.join(" "));
    cargo.env("SOURCE_DATE_EPOCH", source_date()?.to_string());
    if target.starts_with("aarch64") {
        // The allocator assumes a page size, and some of these kernels have pages of 64 KiB.
        cargo.env("JEMALLOC_SYS_WITH_LG_PAGE", "16");
    }
    succeed(&mut cargo)
}

/// Returns the folders of this machine with their names in the binary. If a path is in several of them, rustc and the C
/// compilers take the last one: the target folder and the registry may be inside of the root.
fn moved_paths(root: &Path, folder: &Path, registry: &Path) -> [(String, &'static str); 3] {
    [(root, "."), (folder, "target"), (registry, "registry")].map(|(path, name)| (path.display().to_string(), name))
}

fn target_folder() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(given.unwrap_or_else(|| "target".into()))
}

/// Returns the folder with the sources of crates, whose last part differs between machines.
fn registry() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"))).unwrap_or_default();
    let sources = home.join("registry/src");
    let first = std::fs::read_dir(&sources).ok().and_then(|mut entries| Some(entries.next()?.ok()?.path()));
    first.unwrap_or(sources)
}

/// Returns the target of this machine.
fn host() -> Result<String, Failed> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

fn objcopy(options: &[&str], from: &Path, to: &Path) -> Result<(), Failed> {
    succeed(Command::new("objcopy").args(options).arg(from).arg(to))
}

fn succeed(command: &mut Command) -> Result<(), Failed> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path that a compiler writes into the binary: the last folder that contains a path replaces its beginning.
    fn written(path: &str, root: &str, folder: &str) -> String {
        let moved = moved_paths(Path::new(root), Path::new(folder), Path::new("/builder/.cargo/registry/src/index"));
        let found = moved.iter().rev().find_map(|(from, name)| Some(format!("{name}{}", path.strip_prefix(from)?)));
        found.unwrap_or_else(|| path.to_owned())
    }

    #[test]
    fn paths_in_the_binary_do_not_depend_on_the_place_of_the_target_folder() {
        for (root, folder) in
            [("/source", "/source/target"), ("/source", "/tmp/t"), ("/builder/p", "/builder/p/target")]
        {
            assert_eq!(
                written(&format!("{folder}/release/build/x/out/a.c"), root, folder),
                "target/release/build/x/out/a.c"
            );
            assert_eq!(written(&format!("{root}/crates/a.rs"), root, folder), "./crates/a.rs");
            assert_eq!(written("/builder/.cargo/registry/src/index/x/a.rs", root, folder), "registry/x/a.rs");
        }
    }
}
