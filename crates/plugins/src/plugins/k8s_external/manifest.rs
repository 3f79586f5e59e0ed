//! Options of `k8s_external`.

use config::options::{Args, Manifest, Problem, Property, Role, Usage};
use wire::{LABEL_MAX, Name};

use plugin::fallthrough::{DENIED, FallsThrough, fallthrough};

/// Parsed `k8s_external` block.
#[derive(Debug, Default)]
pub struct Config {
    pub(super) zones: Vec<Name>,
    pub(super) apex: Option<Box<[u8]>>,
    pub(super) ttl: Option<u32>,
    pub(super) headless: bool,
    pub(super) fallthrough: Vec<Name>,
}

impl FallsThrough for Config {
    fn fallthrough(&mut self) -> &mut Vec<Name> {
        &mut self.fallthrough
    }
}

pub(super) const APEX: &[u8] = b"dns";
pub(super) const TTL: u32 = 5;
const TTL_MAX: u32 = 3600;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "k8s_external",
    "serve the external addresses of services in a cluster",
    Config::default,
    super::build,
)
.repeated()
.arguments("k8s_external [ZONES...]", |config, args| {
    config.zones = args.zones()?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("apex LABEL [IGNORED...]"),
        default: "dns",
        doc: "Label of the subdomain with the name server, `ns1.LABEL.ZONE`. A namespace with this name is not served.",
        set: read_apex,
    },
    Property {
        usage: Usage("ttl SECONDS [IGNORED...]"),
        default: "5",
        doc: "TTL of the records in seconds, 0 to 3600.",
        set: |config, args| {
            config.ttl = Some(args.number(0..=TTL_MAX)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("headless"),
        default: "off",
        doc: "Serve the addresses of the endpoints for headless services and for services without external addresses.",
        set: |config, _| {
            config.headless = true;
            Ok(())
        },
    },
    fallthrough(DENIED),
])
.asks_server()
.role(|line| {
    let answers = Role::answers(&line.config.zones, &line.config.fallthrough);
    Role { uses: Some("kubernetes"), ..answers }
});

fn read_apex(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let word = args.word()?;
    let label = word.text.as_bytes();
    if label.is_empty() || label.len() > LABEL_MAX || label.contains(&b'.') {
        return Err(args.bad(word, "one label"));
    }
    config.apex = Some(label.to_ascii_lowercase().into());
    Ok(())
}

impl Config {
    /// Combines several blocks. The zones of the last one win; all other options add up.
    pub(super) fn merge(self, later: Config) -> Config {
        Config {
            zones: later.zones,
            apex: later.apex.or(self.apex),
            ttl: later.ttl.or(self.ttl),
            headless: later.headless || self.headless,
            fallthrough: if later.fallthrough.is_empty() { self.fallthrough } else { later.fallthrough },
        }
    }
}
