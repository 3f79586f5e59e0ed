//! Runs the whole server with a sanitizer of LLVM under load, faults and reloads: `cargo xtask sanitize`.
//!
//! The server, its libraries and the C code that they build are instrumented; the assembly code of aws-lc is not. A
//! nightly compiler is necessary, as sanitizers are not stable. `cargo xtask torture` starts the server and its faults.
//! A sanitizer writes its reports to files, so that those of a process are left that was killed later.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::{Failed, fuzzing, programs, root};

/// Sanitizer, by its name in the command line and in the flags of compilers.
#[derive(Clone, Copy)]
struct Sanitizer {
    name: &'static str,
    /// Variable with its options.
    variable: &'static str,
    /// Options besides the path of the reports.
    options: &'static str,
    /// Further arguments of cargo.
    arguments: &'static [&'static str],
    /// Words of its reports of the planted mistakes.
    planted: &'static [&'static str],
}

const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "address",
        variable: "ASAN_OPTIONS",
        options: "detect_stack_use_after_return=1",
        arguments: &[],
        planted: &["heap-use-after-free"],
    },
    // ThreadSanitizer takes a lock of the standard library for a race, unless the library is instrumented, too.
    Sanitizer {
        name: "thread",
        variable: "TSAN_OPTIONS",
        options: "second_deadlock_stack=1:history_size=4",
        arguments: &["-Zbuild-std"],
        planted: &["data race", "heap-use-after-free"],
    },
];
/// The server uses the allocator of the system, which sanitizers replace.
const ALLOCATOR: &str = "--cfg system_allocator";
/// Without optimisation, the server misses the time limits of the faults. Nothing uses the code of k8s-openapi.
const OPTIMISED: [&str; 4] =
    ["--config", "profile.dev.opt-level=1", "--config", "profile.dev.package.k8s-openapi.opt-level=0"];
/// Start of the name of a file with a report.
const REPORT: &str = "report";
/// Number of lines of a report that are printed.
const LINES_MAX: usize = 120;
/// Feature of the server with mistakes that a sanitizer must find.
const PLANTED: &str = "planted";

/// Returns the command line of `sanitize`.
pub(crate) fn command() -> clap::Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(value_parser!(u64)).help(help)
    };
    clap::Command::new("sanitize")
        .about("Run the whole server under faults with a sanitizer; needs a nightly compiler")
        .arg(
            Arg::new("sanitizer")
                .required(true)
                .value_parser(SANITIZERS.map(|one| one.name))
                .help("Find bad accesses to memory, or data races"),
        )
        .arg(number("seconds", "120", "Length of the run"))
        .arg(number("seed", "1", "Seed of the faults and of the questions"))
        .arg(
            Arg::new(PLANTED)
                .long(PLANTED)
                .action(ArgAction::SetTrue)
                .help("Build planted mistakes into the server, and fail unless they are reported"),
        )
}

/// Builds the server with a sanitizer, runs it under faults, and fails if there is a report.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let wanted = options.get_one::<String>("sanitizer").map_or("", String::as_str);
    let sanitizer = SANITIZERS.into_iter().find(|one| one.name == wanted).ok_or("no such sanitizer")?;
    let number = |name: &str| options.get_one::<u64>(name).copied().unwrap_or_default().to_string();
    let is_planted = options.get_flag(PLANTED);
    let server = sanitizer.build(is_planted)?;
    let folder = folder().join("reports").join(sanitizer.name);
    // Reports of an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let words = ["torture", "--sanitized", "--seconds", &number("seconds"), "--seed", &number("seed"), "--server"];
    let words = words.map(Into::into).into_iter().chain([server.into_os_string()]);
    let outcome = programs::run_with("xtask-bench", words, &[(sanitizer.variable, sanitizer.options(&folder))]);
    let reports = reports(&folder)?;
    reports.iter().for_each(|report| print(report));
    if is_planted {
        let texts: Vec<String> = reports.iter().map(|report| text(report)).collect();
        return sanitizer.reports_planted(&texts);
    }
    match reports.len() {
        0 => outcome.map_err(|error| format!("no report, but the run failed: {error}")),
        count => Err(format!("{count} processes with reports: {}", folder.display())),
    }
}

impl Sanitizer {
    /// Builds the server and its keeper, and returns the path of the server.
    fn build(self, is_planted: bool) -> Result<PathBuf, Failed> {
        let host = host()?;
        let flag = format!("sanitizer={}", self.name);
        let mut cargo = Command::new("cargo");
        cargo.args(["+nightly", "build", "--package", "portolan", "--bins", "--target", &host, "--target-dir"]);
        cargo.arg(folder()).args(OPTIMISED).args(self.arguments).current_dir(root());
        if is_planted {
            cargo.args(["--features", PLANTED]);
        }
        // With a target, these flags are not those of build scripts and macros.
        cargo.env("RUSTFLAGS", format!("-Z{flag} {ALLOCATOR}"));
        cargo.env(
            format!("CFLAGS_{}", host.replace('-', "_")),
            format!("-fsanitize={} -fno-omit-frame-pointer", self.name),
        );
        match cargo.status() {
            Ok(status) if status.success() => Ok(folder().join(host).join("debug").join("portolan")),
            Ok(_) => Err(format!(
                "the server cannot be built with -Z{flag}; `rustup toolchain install nightly --component rust-src` \
                 installs what is necessary"
            )),
            Err(error) => Err(format!("cargo: {error}")),
        }
    }

    /// Fails unless each planted mistake is in a report.
    fn reports_planted(self, reports: &[String]) -> Result<(), Failed> {
        let is_missing = |words: &&&str| !reports.iter().any(|report| report.contains(**words));
        let missing: Vec<&str> = self.planted.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            println!("{} processes reported the planted mistakes: {}", reports.len(), self.planted.join(", "));
            return Ok(());
        }
        Err(format!("not reported: {}", missing.join(", ")))
    }

    /// Returns the value of the variable with its options. A process that has reported ends with an error.
    fn options(self, folder: &Path) -> String {
        format!("log_path={}/{REPORT}:exitcode=66:{}", folder.display(), self.options)
    }
}

fn folder() -> PathBuf {
    fuzzing::target().join("sanitize")
}

/// Returns the target of this machine.
fn host() -> Result<String, Failed> {
    let output = Command::new("rustc").args(["+nightly", "--version", "--verbose"]).output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "no nightly compiler: run `rustup toolchain install nightly`".to_owned())
}

/// Returns the files with reports, one for each process that has some.
fn reports(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        files.push(entry.map_err(fail)?.path());
    }
    files.sort();
    Ok(files)
}

fn print(report: &Path) {
    println!("\n{}:", report.display());
    text(report).lines().take(LINES_MAX).for_each(|line| println!("{line}"));
}

fn text(report: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(report).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_planted_mistake_must_be_reported() {
        let [address, thread] = SANITIZERS;
        let race = "WARNING: ThreadSanitizer: data race (pid=7)".to_owned();
        let freed = |name| format!("{name}Sanitizer: heap-use-after-free on address 0x0");
        assert!(thread.reports_planted(&[race.clone(), freed("Thread")]).is_ok());
        assert_eq!(thread.reports_planted(&[race]), Err("not reported: heap-use-after-free".to_owned()));
        assert!(address.reports_planted(&[freed("Address")]).is_ok());
        assert!(address.reports_planted(&[]).is_err());
    }

    #[test]
    fn each_sanitizer_writes_to_the_folder_that_is_read() {
        let folder = std::env::temp_dir().join(format!("portolan-sanitize-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for sanitizer in SANITIZERS {
            let options = sanitizer.options(&folder);
            let path = options.split(':').find_map(|option| option.strip_prefix("log_path=")).unwrap();
            assert_eq!(reports(&folder).unwrap(), Vec::<PathBuf>::new());
            // The number of the process is appended by the sanitizer.
            let report = PathBuf::from(format!("{path}.123"));
            std::fs::write(&report, "WARNING").unwrap();
            assert_eq!(reports(&folder).unwrap(), std::slice::from_ref(&report));
            std::fs::remove_file(report).unwrap();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
