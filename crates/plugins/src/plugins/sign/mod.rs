//! Signs zone files: reads a zone and writes a copy with keys, signatures and NSEC records, for *file* or *auto* to
//! serve.
//!
//! Answers no queries. Signing runs beside the queries, because a large zone takes time.

mod validity;
mod write;

use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{FileCheck, FileWatch, Files, Part, Setup, SetupError};
use engine::log::{Level, Notice};
use wire::Name;
use zone::LoadError;

use crate::shared::signing::{Key, ValidityPeriod};
use crate::shared::zone_store::SignedFiles;
use common_plugins::shared::last_good;
use validity::Validity;

/// Parsed `sign` line.
pub struct Config {
    file: String,
    zones: Vec<Name>,
    keys: Vec<String>,
    directory: String,
}

/// Interval at which the file is checked. CoreDNS checks every five hours.
const EVERY: Duration = Duration::from_secs(60);
/// Time in seconds from the inception of signatures to now, plus a zone-specific part of [`SINCE_MORE`].
const SINCE: u64 = 3 * 3600;
const SINCE_MORE: u64 = 12 * 3600;
/// Time in seconds from now to the expiration of signatures, plus a zone-specific part of [`FOR_MORE`], so that zones
/// signed together do not expire together.
const FOR: u64 = 32 * 86_400;
const FOR_MORE: u64 = 5 * 86_400;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "sign",
    "sign zone files with DNSSEC",
    || Config { file: String::new(), zones: Vec::new(), keys: Vec::new(), directory: "/var/lib/coredns".to_owned() },
    build,
)
.without_handler()
.repeated()
.arguments("sign DBFILE [ZONES...]", |config, args| {
    config.file = args.word()?.text.clone();
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("key file|directory KEY..."),
        default: "",
        doc: "Keys to sign with, each a pair of files `KEY.key` and `KEY.private` as written by BIND's dnssec-keygen, \
              with the KSK flag (257). `directory` is not supported by this build.",
        set: set_keys,
    },
    Property {
        usage: Usage("directory DIR"),
        default: "/var/lib/coredns",
        doc: "Directory for the signed copy, `db.ZONEsigned`. ZONE ends with a dot: `db.example.org.signed`.",
        set: |config, args| {
            config.directory = args.word()?.text.clone();
            Ok(())
        },
    },
])
.role(|line| Role::new(Effect::Aside, &line.config.zones));

fn set_keys(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    if args.choice(&[("file", false), ("directory", true)])? {
        args.line_not_here("a directory of keys is not served by this build", "name the keys, `key file KEY...`");
    }
    // A `key` line needs at least one key.
    config.keys.push(args.word()?.text.clone());
    config.keys.extend(args.take_rest().iter().map(|word| word.text.clone()));
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    setup.for_each_line(configs, |config, setup| {
        let zones = setup.zones_or_keys(&config.zones);
        let keys = load(&config, setup)?;
        find_stray(&keys, zones.names())?;
        for origin in zones.names() {
            open(&config, &keys, origin, setup);
        }
        Ok(())
    });
    Ok(None)
}

/// Returns an error if a key belongs to none of the zones.
fn find_stray(keys: &[Arc<Key>], zones: &[Name]) -> Result<(), SetupError> {
    let strays = keys.iter().filter(|key| !zones.contains(&key.zone));
    strays
        .map(|key| format!("key {} (keyid: {}) can not sign any of the zones", key.zone, key.tag))
        .next()
        .map_or(Ok(()), |message| Err(SetupError::new(message)))
}

/// Schedules the checks of a zone.
fn open(config: &Config, keys: &[Arc<Key>], origin: &Name, setup: &mut Setup<'_>) {
    let keys: Vec<Arc<Key>> = keys.iter().filter(|key| key.zone == *origin).cloned().collect();
    if keys.is_empty() {
        setup.warn(format_args!("zone {origin} is not signed: none of the keys belongs to it"));
        return;
    }
    let target = setup.path(&config.directory).join(format!("db.{origin}signed"));
    let source = setup.path(&config.file);
    let signed = SignedFiles::shared(setup.reload_state);
    signed.expect(&target);
    let mut zone = ZoneFile { origin: origin.clone(), source, target, keys, signed, known: None, last_notice: None };
    let check = move |mut context: FileCheck<'_>| zone.check(&mut context);
    setup.requests.file_watches.push(FileWatch { at_once: true, ..FileWatch::new(EVERY, check) });
}

fn load(config: &Config, setup: &mut Setup<'_>) -> Result<Vec<Arc<Key>>, SetupError> {
    let load = |name: &String| {
        let path = setup.path(name);
        let load = |files: &dyn Files| Key::load(files, &path).map_err(SetupError::from_error);
        let key = last_good::load(format!("key/{}", path.display()), setup, load)?;
        if key.is_entry_point {
            return Ok(key);
        }
        Err(SetupError::new(format!("`{name}` is not a key-signing key (flags 257)"))
            .with_help("create it with `dnssec-keygen -f KSK`; one key signs the whole zone"))
    };
    config.keys.iter().map(load).collect()
}

/// Zone file and its signed copy.
struct ZoneFile {
    origin: Name,
    source: PathBuf,
    target: PathBuf,
    keys: Vec<Arc<Key>>,
    /// Files that were signed, for the directives that serve them.
    signed: Arc<SignedFiles>,
    /// Validity of the signatures in the signed file, once read.
    known: Option<Validity>,
    /// Last logged message, so that the same message is not logged at every check.
    last_notice: Option<Notice>,
}

impl ZoneFile {
    fn check(&mut self, context: &mut FileCheck<'_>) {
        let now = context.since_1970.as_secs();
        let Some(reason) = self.reason(context.files, now) else {
            return self.report_valid(context.notices);
        };
        let begun = notice(Level::Info, format!("Signing \"{}\" because {reason}", self.origin));
        match self.sign(context.files, now) {
            Ok((done, warnings)) => {
                context.notices.push(begun);
                context.notices.extend(warnings);
                self.report(done, context.notices);
            }
            Err(error) => {
                let text = format!("Error signing \"{}\" ({reason}): {error}", self.origin);
                self.report(notice(Level::Warning, text), context.notices);
            }
        }
    }

    /// Logs once, at the start, that the signatures are valid.
    fn report_valid(&mut self, notices: &mut Vec<Notice>) {
        if self.last_notice.is_none() {
            let (origin, target) = (&self.origin, self.target.display());
            let text = format!("Skipping signing zone \"{origin}\" in \"{target}\": signatures are valid");
            self.report(notice(Level::Info, text), notices);
        }
    }

    fn report(&mut self, notice: Notice, notices: &mut Vec<Notice>) {
        if self.last_notice.as_ref() != Some(&notice) {
            notices.push(notice.clone());
            self.last_notice = Some(notice);
        }
    }

    /// Reason to sign the zone; `None` if its signatures are still good.
    fn reason(&mut self, files: &dyn Files, now: u64) -> Option<String> {
        let validity = match self.known.take().map_or_else(|| Validity::load(files, &self.target), Ok) {
            Ok(validity) => validity,
            Err(unsigned) => return Some(unsigned.to_string()),
        };
        let tags: Vec<u16> = self.keys.iter().map(|key| key.tag).collect();
        let modified = |path: &Path| files.stamp(path).ok().map(|stamp| stamp.modified);
        let reason = validity.reason(now, &tags).or_else(|| {
            let is_newer = modified(&self.source)? > modified(&self.target)?;
            is_newer.then(|| format!("{} has changed", self.source.display()))
        });
        self.known = Some(validity);
        // A missing file needs signing whatever its last known signatures were.
        reason.or_else(|| (!files.is_file(&self.target)).then(|| format!("{} does not exist", self.target.display())))
    }

    /// Signs the zone. Returns the success message and warnings about the zone file.
    fn sign(&mut self, files: &dyn Files, now: u64) -> Result<(Notice, Vec<Notice>), SignError> {
        let mut read = |path: &Path| files.read(path);
        let loaded = zone::load(self.origin.as_ref(), &self.source, &mut read).map_err(SignError::Load)?;
        let (serial, period) = (wrap(now), period(&self.origin, now));
        let signed = write::Signed { zone: &loaded.zone, keys: &self.keys, serial, period };
        let target = &self.target;
        let written = files.replace(target, &mut |out| signed.write(out));
        written.map_err(|error| SignError::Write(target.clone(), error))?;
        if let Ok(stamp) = files.stamp(target) {
            self.signed.add(target, stamp);
        }
        self.known = Some(Validity::of(period, &self.keys));
        let tags: Vec<String> = self.keys.iter().map(|key| key.tag.to_string()).collect();
        let origin = &self.origin;
        let warnings = loaded.warnings.iter().map(|what| notice(Level::Warning, format!("zone {origin}: {what}")));
        let done = format!(
            "Successfully signed zone \"{origin}\" in \"{}\" with key tags \"{}\" and {serial} SOA serial",
            target.display(),
            tags.join(",")
        );
        Ok((notice(Level::Info, done), warnings.collect()))
    }
}

/// Reason why a zone could not be signed. The next check tries again.
#[derive(Debug, thiserror::Error)]
enum SignError {
    /// The zone file cannot be loaded.
    #[error("{0}")]
    Load(#[source] LoadError),
    /// The signed file cannot be written.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, #[source] io::Error),
}

fn notice(level: Level, message: String) -> Notice {
    Notice::new(level, MANIFEST.name, message)
}

/// Validity period of signatures made now.
fn period(origin: &Name, now: u64) -> ValidityPeriod {
    let spread = digest(&SHA256, origin.as_bytes());
    let part = |at: usize, of: u64| u64::from(spread.as_ref().get(at).copied().unwrap_or_default()) * of / 256;
    ValidityPeriod {
        inception: wrap(now.saturating_sub(SINCE + part(0, SINCE_MORE))),
        expiration: wrap(now + FOR + part(1, FOR_MORE)),
    }
}

/// Seconds since the Unix epoch modulo 2^32, as in RRSIG and SOA records.
#[allow(clippy::cast_possible_truncation, reason = "numbers of 32 bits that wrap (RFC 1982)")]
fn wrap(seconds: u64) -> u32 {
    seconds as u32
}
