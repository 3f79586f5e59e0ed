//! Limits queries and connections over HTTP/3.

use config::options::{Manifest, Property, Usage};
use config::setup::{Part, QuicLimits, Setup, SetupError};

use common_plugins::shared::option_helpers::{connections_max, max_connections, number_once};

/// Parsed `https3` block.
#[derive(Default)]
pub struct Config {
    streams_max: Option<u32>,
    connections_max: Option<u32>,
}

/// Number of streams for `max_streams 0`, the default of the QUIC library of CoreDNS.
const STREAMS_OF_LIBRARY: u32 = 100;

pub static MANIFEST: Manifest<Config> = Manifest::new("https3", "limit queries over HTTP/3", Config::default, build)
    .without_handler()
    .repeated()
    .properties(&[
        Property {
            usage: Usage("max_streams NUMBER"),
            default: "256",
            doc: "Maximum number of concurrent queries per connection; 0 for 100.",
            set: |config, args| number_once(&mut config.streams_max, args, 0..),
        },
        max_connections(|config, args| number_once(&mut config.connections_max, args, 0..)),
    ])
    .settings(|config, settings| settings.listening.https3 = limits(config));

fn limits(config: &Config) -> QuicLimits {
    let usual = QuicLimits::default();
    let streams_max =
        config.streams_max.map_or(usual.streams_max, |most| if most == 0 { STREAMS_OF_LIBRARY } else { most });
    QuicLimits { streams_max, connections_max: connections_max(config.connections_max, usual.connections_max) }
}

fn build(_: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
