//! Limits connections over HTTPS, and chooses status codes.

use config::options::{Manifest, Property, Usage};
use config::setup::{HttpsSettings, Part, Setup, SetupError};

use common_plugins::shared::option_helpers::{connections_max, max_connections, number_once};

/// Parsed `https` block.
#[derive(Default)]
pub struct Config {
    connections_max: Option<u32>,
    streams_max: Option<u32>,
    is_strict: bool,
    http3_port: Option<u16>,
}

/// Default port of `https3://`.
const HTTP3_PORT: u16 = 443;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "https",
    "limit connections over HTTPS",
    Config::default,
    build,
)
.without_handler()
.repeated()
.properties(&[
    max_connections(|config, args| number_once(&mut config.connections_max, args, 0..)),
    Property {
        usage: Usage("max_streams NUMBER"),
        default: "250",
        doc: "Maximum number of concurrent queries per connection over HTTP/2; 0 for 250. Server blocks that share a \
              listener may not set different numbers.",
        set: |config, args| number_once(&mut config.streams_max, args, 0..),
    },
    Property {
        usage: Usage("strict"),
        default: "",
        doc: "Answers with status 405, 413 and 415 where CoreDNS answers with 400, and requires the content type \
              `application/dns-message` for POST.",
        set: |config, _| {
            config.is_strict = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("alt_svc [PORT]"),
        default: "",
        doc: "Announces DNS over HTTP/3 on this port of the same host, 443 without PORT, in the header field \
              `alt-svc` of every response (RFC 7838).",
        set: |config, args| {
            let has_port = !args.rest().is_empty();
            config.http3_port = Some(if has_port { args.number(1..=u16::MAX)? } else { HTTP3_PORT });
            Ok(())
        },
    },
])
.settings(|config, settings| settings.listening.https = of(config));

fn of(config: &Config) -> HttpsSettings {
    let connections_max = connections_max(config.connections_max, HttpsSettings::default().connections_max);
    let streams_max = config.streams_max.map(|most| if most == 0 { HttpsSettings::STREAMS_MAX } else { most });
    HttpsSettings { connections_max, streams_max, is_strict: config.is_strict, http3_port: config.http3_port }
}

fn build(_: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
