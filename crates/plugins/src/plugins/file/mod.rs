//! Authoritative zones from zone files.

use core::time::Duration;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use config::SETUP_WARNED;
use config::options::{Manifest, Property, Role, Usage};
use config::setup::{FileWatch, Part, Setup, SetupError};
use engine::{Hooks, Refuses, Zones};
use gotext::format_duration;
use wire::Name;
use zone::LoadErrorKind;

use crate::shared::zone_store::{Authority, FileZone, ServedZones, SignedFiles, ZONE_KEPT, directory, offer};
use common_plugins::shared::last_good;
use common_plugins::shared::option_helpers::{FOLLOWED, NO_RELOAD, TRANSFERRED, upstream};

/// Configuration of a `file` line.
pub struct Config {
    file: String,
    zones: Vec<Name>,
    reload: Option<Duration>,
    by_time: bool,
    fallthrough: Option<Vec<Name>>,
}

const RELOAD: Duration = Duration::from_secs(60);

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "file",
    "serve zones from zone files",
    || Config { file: String::new(), zones: Vec::new(), reload: None, by_time: false, fallthrough: None },
    build,
)
.repeated()
.arguments("file DBFILE [ZONES...]", |config, args| {
    config.file = args.word()?.text.clone();
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("reload DURATION"),
        default: "1m",
        doc: "Interval at which the file is checked for changes; `0s` disables checking. Also applies to the `file` \
              lines after this one in the server block, unless they set their own.",
        set: |config, args| {
            config.reload = Some(args.duration()?);
            Ok(())
        },
    },
    Property {
        usage: Usage("reload_by_mtime"),
        default: "off",
        doc: "Serve a changed file even if its serial is the same.",
        set: |config, _| {
            config.by_time = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("fallthrough [ZONES...]"),
        default: "off",
        doc: "Pass queries for names without records (missing names, empty non-terminals, and an apex with only SOA \
              and NS records) to the next plugin: in all zones, or only in ZONES. Applies to all `file` lines of the \
              server block; the last one wins.",
        set: |config, args| {
            config.fallthrough = Some(args.zones_or_all()?);
            Ok(())
        },
    },
    upstream(),
])
.removed(&[TRANSFERRED, NO_RELOAD])
.deprecated(&[FOLLOWED])
.asks_server()
.role(|line| {
    let fallthrough = line.config.fallthrough.as_deref().unwrap_or_default();
    Role { longest_zone: true, ..Role::answers(&line.config.zones, fallthrough) }
});

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let (mut every, mut fallthrough, mut all) = (RELOAD, Vec::new(), Vec::new());
    setup.for_each_line(configs, |config, setup| {
        every = config.reload.unwrap_or(every);
        if let Some(zones) = &config.fallthrough {
            fallthrough.clone_from(zones);
        }
        let origins = setup.zones_or_keys(&config.zones);
        for origin in origins.names() {
            let zone = open(&config, origin, every, setup)?;
            all.push(Arc::clone(&zone.held));
            setup.follow_files(Arc::clone(&zone) as _);
            setup.requests.file_watches.push(watch(zone, every, config.by_time));
        }
        Ok(())
    });
    let zones: Zones = all.iter().map(|held| held.origin.clone()).collect();
    let held = Arc::new(ArcSwap::from_pointee(directory(all)));
    offer(&held, setup);
    let plugin = Authority::new(MANIFEST.name, held, setup);
    let fallthrough = fallthrough.into_iter().collect();
    Ok(Some(Part { zones: Some(zones), fallthrough, refuses: Refuses::OtherZones, ..Part::new(plugin, Hooks::DOWN) }))
}

/// Loads a zone from its file. A zone that was loaded before a reload is kept if it is what its file says. Otherwise
/// the file is read again, whatever its serial: a reload asks for what it contains. If that fails, the zone keeps its
/// content, as it does while the server runs: one file must not keep all other changes away. A file that was not in
/// use before the reload must not take down a zone that is served, so it is an error then.
fn open(config: &Config, origin: &Name, every: Duration, setup: &mut Setup<'_>) -> Result<Arc<FileZone>, SetupError> {
    let path = setup.path(&config.file);
    let key = format!("file/{}/{origin}", path.display());
    let known = setup.reload_state.known::<FileZone>(&key);
    if let Some(known) = known.clone().filter(|known| known.held.zone().is_some() && known.is_current(setup.files)) {
        setup.reload_state.renew(key, &known);
        return Ok(known);
    }
    // The running generation keeps its zone until this one replaces it.
    let memory = setup.process.find().unwrap_or_default();
    let signed = SignedFiles::shared(setup.reload_state);
    let is_replaced = known.is_none() && ServedZones::before(setup.reload_state).contain(origin.as_ref());
    let is_refused = is_replaced && !signed.is_expected(&path);
    let zone = Arc::new(FileZone::new(origin.as_ref(), path, memory, signed));
    let looked = zone.look(setup.files, config.by_time);
    setup.reload_state.renew(key, &zone);
    match looked {
        Err(error) if known.is_some_and(|known| zone.serve_previous(&known)) => {
            setup.warn_of_followed(SETUP_WARNED, format_args!("{}{ZONE_KEPT}", zone.describe(&error)));
        }
        Err(error) if is_refused => return Err(last_good::not_in_use(zone.describe(&error))),
        Err(error) if may_come(&error.kind) && !every.is_zero() => {
            let again = format_args!("{}: trying again in {}", zone.describe(&error), format_duration(every));
            setup.warn_of_followed(SETUP_WARNED, again);
        }
        Err(error) if !is_elsewhere(&error.kind) => return Err(SetupError::new(zone.describe(&error))),
        looked => zone.messages(&looked).for_each(|(code, message)| setup.warn_of_followed(code, message)),
    }
    Ok(zone)
}

/// Returns true if a retry can help: the file does not exist yet.
fn may_come(kind: &LoadErrorKind) -> bool {
    matches!(kind, LoadErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Returns true if no record of the file is in the zone. A line can list several zones, and the others must not suffer.
const fn is_elsewhere(kind: &LoadErrorKind) -> bool {
    matches!(kind, LoadErrorKind::OtherZone(_))
}

/// Returns the check of a zone.
fn watch(zone: Arc<FileZone>, every: Duration, by_time: bool) -> FileWatch {
    FileWatch::new(every, move |looking| {
        let notices = zone.follow(looking.files, by_time, MANIFEST.name);
        looking.notices.extend(notices.into_iter().map(|(_, notice)| notice));
    })
}
