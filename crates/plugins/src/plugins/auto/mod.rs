//! The plugin *auto*: serves a zone from each matching file of a directory.

use core::time::Duration;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use config::SETUP_WARNED;
use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{FileWatch, Files, InspectFiles, Part, Setup, SetupError};
use engine::log::{Level, Notice};
use engine::{Hooks, Refuses, Zones};
use gotext::regexp::{Captures, Regexp};
use wire::Name;

use crate::shared::zone_store::{
    Authority, CodedNotice, Directory, FileZone, Held, ServedZones, SignedFiles, ZONE_KEPT, ZoneMemory, directory,
    offer,
};
use common_plugins::shared::file_problems::FileProblems;
use common_plugins::shared::last_good;
use common_plugins::shared::option_helpers::{FOLLOWED, NO_RELOAD, TRANSFERRED, regular_expression, upstream};

/// Parsed `auto` line.
pub struct Config {
    zones: Vec<Name>,
    directory: String,
    pattern: Option<Regexp>,
    template: String,
    reload: Duration,
}

const RELOAD: Duration = Duration::from_secs(60);
const PATTERN: &str = r"db\.(.*)";
const TEMPLATE: &str = "{1}";

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "auto",
    "serve every zone file in a directory",
    || Config {
        zones: Vec::new(),
        directory: String::new(),
        pattern: Regexp::compile(PATTERN).ok(),
        template: TEMPLATE.to_owned(),
        reload: RELOAD,
    },
    build,
)
.repeated()
.arguments("auto [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("directory DIR [REGEXP ORIGIN_TEMPLATE]"),
        default: r"`db\.(.*)`, `{1}`",
        doc: "Directory with the zone files. A file is a zone if its name, without the directory, matches REGEXP. \
              ORIGIN_TEMPLATE is the name of the zone, where `{1}` is replaced by the first capture group of REGEXP, \
              `{2}` by the second, and so on.",
        set: set_directory,
    },
    Property {
        usage: Usage("reload DURATION"),
        default: "60s",
        doc: "Interval at which the directory is scanned; `0s` scans it only at start.",
        set: |config, args| {
            config.reload = args.duration()?;
            Ok(())
        },
    },
    upstream(),
])
.removed(&[TRANSFERRED, NO_RELOAD])
.deprecated(&[FOLLOWED])
.asks_server()
.role(|line| Role::new(Effect::AnswersSome, &line.config.zones));

fn set_directory(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let directory = args.word()?;
    config.directory = directory.text.clone();
    let Some(word) = args.next_word() else { return Ok(()) };
    let pattern = regular_expression(args, word)?;
    let Some(template) = args.next_word() else {
        return Err(args.problem_at(directory.span, "REGEXP must be followed by an ORIGIN_TEMPLATE"));
    };
    if pattern.groups() == 0 {
        let message = format!("`{}` has no capture group, so no zone name can contain the match", word.text);
        return Err(args.problem_at(word.span, message));
    }
    config.pattern = Some(pattern);
    config.template = template.text.clone();
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let (zones, mut within, mut lines) = (Directory::default(), Zones::default(), Vec::new());
    let all: Lines = Arc::new(Mutex::new(configs.iter().map(|_| FoundZones::default()).collect()));
    setup.for_each_line(configs, |config, setup| {
        let zones_of_line = setup.zones_or_keys(&config.zones);
        within.extend(zones_of_line.names().iter().cloned());
        let is_known = follow(config, zones_of_line.clone(), (&all, lines.len()), &zones, setup);
        lines.push((!is_known).then_some(zones_of_line));
        Ok(())
    });
    refuse_losses(lines, &all, &zones, setup);
    offer(&zones, setup);
    let plugin = Authority::new(MANIFEST.name, zones, setup);
    Ok(Some(Part { zones: Some(within), refuses: Refuses::OwnZones, ..Part::new(plugin, Hooks::DOWN) }))
}

/// Refuses each line with a directory that was not in use before a reload, if it would take down a zone that is served.
/// `lines` has the zones of these lines, and `None` for the others.
fn refuse_losses(lines: Vec<Option<Zones>>, all: &Lines, zones: &Directory, setup: &mut Setup<'_>) {
    let before = ServedZones::before(setup.reload_state);
    let (all, zones) = (all.lock().unwrap_or_else(PoisonError::into_inner), zones.load());
    let mut found = all.iter();
    setup.for_each_line(lines, |within, _| {
        let (Some(found), Some(within)) = (found.next(), within) else { return Ok(()) };
        let is_lost = |directive, held: &Held| {
            let origin = held.origin.as_ref();
            directive == MANIFEST.name && within.contain(origin) && zones.get(origin).is_none()
        };
        let broken = |zone: &&Arc<FileZone>| zone.held.zone().is_none() && before.contain(zone.held.origin.as_ref());
        let lost = match &found.gone {
            Some(gone) => before.any(is_lost).then(|| gone.clone()),
            None => found.zones.values().find(broken).map(|zone| zone.problems().join("; ")),
        };
        lost.map_or(Ok(()), |problem| Err(last_good::not_in_use(problem)))
    });
}

/// Scans the directory of a line now, and whenever it is due. `within` are the zones of the line. Returns true if the
/// directory was in use before a reload.
fn follow(
    config: Config,
    within: Zones,
    (all, index): (&Lines, usize),
    served: &Directory,
    setup: &mut Setup<'_>,
) -> bool {
    let (path, every) = (setup.path(&config.directory), config.reload);
    let (before, now) = setup.reload_state.successive::<KeptLines>(format!("auto/{}", path.display()));
    now.add(all, index);
    let is_known = before.is_some();
    let (memory, signed) = (setup.process.find().unwrap_or_default(), SignedFiles::shared(setup.reload_state));
    let scan = Scan { path, pattern: config.pattern, template: config.template, within, memory, signed };
    let (all, served) = (Arc::clone(all), Arc::clone(served));
    let problems = Arc::<FileProblems>::default();
    setup.follow_files(Arc::clone(&problems) as _);
    let look = move |files: &dyn Files, before: &Before, notices: &mut Vec<CodedNotice>| {
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get_mut(index) {
            scan.run(files, before, found, notices);
            problems.set(found.problems());
        }
        let held = all.iter().flat_map(|found| found.zones.values()).map(|zone| Arc::clone(&zone.held));
        served.store(Arc::new(directory(held)));
    };
    let mut notices = Vec::new();
    look(setup.files, &before.map(|before| before.zones()).unwrap_or_default(), &mut notices);
    let (warnings, mut infos): (Vec<_>, Vec<_>) =
        notices.into_iter().partition(|(_, notice)| notice.level <= Level::Warning);
    warnings.iter().for_each(|(code, notice)| setup.warn_of_followed(*code, &notice.message));
    // The first check logs which files are served, because a generation that is only built logs nothing.
    let at_once = !infos.is_empty();
    let watch = FileWatch::new(every, move |looking| {
        let mut notices = core::mem::take(&mut infos);
        look(looking.files, &Before::default(), &mut notices);
        looking.notices.extend(notices.into_iter().map(|(_, notice)| notice));
    });
    setup.requests.file_watches.push(FileWatch { at_once, ..watch });
    is_known
}

/// Zones that the lines of a server block have found.
type Lines = Arc<Mutex<Vec<FoundZones>>>;

/// Zones of a directory that were served before a reload, by their files.
type Before = BTreeMap<PathBuf, Vec<Arc<FileZone>>>;

/// Lines of a generation that scan one directory, for the next generation: each with the lines of its server block.
#[derive(Default)]
struct KeptLines(Mutex<Vec<(Lines, usize)>>);

impl KeptLines {
    fn add(&self, lines: &Lines, index: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((Arc::clone(lines), index));
    }

    /// Returns the zones that these lines serve.
    fn zones(&self) -> Before {
        let mut zones = Before::new();
        for (lines, index) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            for zone in lines.get(*index).iter().flat_map(|found| found.zones.values()) {
                zones.entry(zone.path.clone()).or_default().push(Arc::clone(zone));
            }
        }
        zones
    }
}

/// Zones that one line has found, by name.
#[derive(Default)]
struct FoundZones {
    zones: BTreeMap<String, Arc<FileZone>>,
    /// Reason why the directory cannot be read, which has been logged.
    gone: Option<String>,
    /// Files of zones that another file serves, with the message that has been logged.
    ignored: BTreeMap<PathBuf, String>,
}

impl FoundZones {
    /// Returns what is wrong with the directory and its files.
    fn problems(&self) -> Vec<String> {
        let of_zones = self.zones.values().flat_map(|zone| zone.problems());
        self.gone.iter().cloned().chain(self.ignored.values().cloned()).chain(of_zones).collect()
    }
}

/// Directory that one line scans, and the files that it accepts.
struct Scan {
    path: PathBuf,
    pattern: Option<Regexp>,
    template: String,
    within: Zones,
    memory: ZoneMemory,
    signed: Arc<SignedFiles>,
}

impl Scan {
    /// Loads new and changed files and drops the zones of removed ones. If the directory cannot be read, all zones are
    /// kept: a lost mount or missing permissions do not mean that the operator removed them. `before` has the zones
    /// from before a reload, for files that cannot be read now.
    fn run(&self, files: &dyn Files, before: &Before, found: &mut FoundZones, notices: &mut Vec<CodedNotice>) {
        let listed = files.list(&self.path);
        let listed = match listed {
            Ok(listed) => listed,
            Err(_) if found.gone.is_some() => return,
            Err(error) => {
                self.keep(before, found);
                let kept = if found.zones.is_empty() { "" } else { "; its zones stay as they were" };
                let message = format!("{}{kept}", host::errors::cannot_open(&self.path, &error));
                found.gone = Some(message.clone());
                notices.push(notice(Level::Warning, message));
                return;
            }
        };
        found.gone = None;
        let now = self.choose(listed, found, notices);
        let gone = |zone: &FileZone, origin: &String| now.get(origin).is_none_or(|(_, path)| *path != zone.path);
        for (origin, zone) in found.zones.extract_if(.., |origin, zone| gone(zone, origin)) {
            let message = format!("Deleting zone `{origin}' from {}", zone.path.display());
            notices.push(notice(Level::Info, message));
        }
        for (text, (origin, path)) in now {
            let (before, is_new) = (served_before(before, &path, &origin), !found.zones.contains_key(&text));
            let inserted = is_new.then(|| format!("Inserting zone `{origin}' from: {}", path.display()));
            let zone = found.zones.entry(text).or_insert_with(|| self.zone(&origin, path));
            for (code, mut notice) in zone.follow(files, false, MANIFEST.name) {
                if let Some(inserted) = inserted.as_ref().filter(|_| notice.level == Level::Info) {
                    notice.message.clone_from(inserted);
                }
                if notice.level == Level::Error && before.is_some_and(|before| zone.serve_previous(before)) {
                    notice.message.push_str(ZONE_KEPT);
                }
                notices.push((code, notice));
            }
        }
    }

    /// Chooses the file of each zone: the first one by path.
    fn choose(
        &self,
        listed: Vec<PathBuf>,
        found: &mut FoundZones,
        notices: &mut Vec<CodedNotice>,
    ) -> BTreeMap<String, (Name, PathBuf)> {
        let mut now: BTreeMap<String, (Name, PathBuf)> = BTreeMap::new();
        let mut ignored = BTreeMap::new();
        for path in listed {
            let Some(origin) = self.origin(&path) else { continue };
            match now.entry(origin.to_string()) {
                Entry::Vacant(free) => drop(free.insert((origin, path))),
                Entry::Occupied(taken) => {
                    let message = several_files(&origin, &taken.get().1, &path);
                    if !found.ignored.contains_key(&path) {
                        notices.push(notice(Level::Warning, message.clone()));
                    }
                    ignored.insert(path, message);
                }
            }
        }
        found.ignored = ignored;
        now
    }

    /// Keeps the zones from before a reload that this line accepts.
    fn keep(&self, before: &Before, found: &mut FoundZones) {
        for path in before.keys() {
            let Some(origin) = self.origin(path) else { continue };
            let Some(before) = served_before(before, path, &origin) else { continue };
            let zone = self.zone(&origin, path.clone());
            if zone.serve_previous(before) {
                found.zones.entry(origin.to_string()).or_insert(zone);
            }
        }
    }

    fn zone(&self, origin: &Name, path: PathBuf) -> Arc<FileZone> {
        Arc::new(FileZone::new(origin.as_ref(), path, self.memory, Arc::clone(&self.signed)))
    }

    /// Returns the zone name of a file, or `None` if the file is not a zone of this line.
    fn origin(&self, path: &Path) -> Option<Name> {
        let name = path.file_name()?.to_str()?;
        let captures = self.pattern.as_ref()?.captures(name)?;
        let origin = Name::from_text(&fill(&self.template, &captures)).ok()?.into_lowercase();
        self.within.contain(origin.as_ref()).then_some(origin)
    }
}

/// Returns the zone that a file had before a reload.
fn served_before<'b>(before: &'b Before, path: &Path, origin: &Name) -> Option<&'b FileZone> {
    before.get(path)?.iter().find(|zone| zone.held.origin == *origin).map(|zone| &**zone)
}

/// Returns the warning about a file that is not served, because another one has the same zone.
fn several_files(origin: &Name, served: &Path, ignored: &Path) -> String {
    let (served, ignored) = (served.display(), ignored.display());
    let files = format!("{served} is served, {ignored} is ignored; rename or remove one of them");
    format!("Multiple zone files match origin `{origin}': {files}")
}

fn notice(level: Level, message: String) -> CodedNotice {
    (SETUP_WARNED, Notice::new(level, MANIFEST.name, message))
}

/// Returns the template with the capture groups of a match filled in.
fn fill(template: &str, captures: &Captures<'_>) -> String {
    let groups = captures.iter().enumerate().skip(1);
    groups.fold(template.to_owned(), |text, (number, group)| {
        text.replace(&format!("{{{number}}}"), group.map_or("", |group| group.as_str()))
    })
}
