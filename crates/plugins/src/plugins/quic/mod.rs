//! Limits queries over QUIC.

use config::options::{Manifest, Property, Usage};
use config::setup::{Part, QuicLimits, Setup, SetupError};

use common_plugins::shared::option_helpers::{connections_max, max_connections, number_once};

/// Parsed `quic` block.
#[derive(Default)]
pub struct Config {
    streams_max: Option<u32>,
    connections_max: Option<u32>,
    worker_pool_size: Option<u32>,
}

pub static MANIFEST: Manifest<Config> = Manifest::new("quic", "limit queries over QUIC", Config::default, build)
    .without_handler()
    .repeated()
    .properties(&[
        Property {
            usage: Usage("max_streams NUMBER"),
            default: "256",
            doc: "Maximum number of concurrent queries per connection, at least 1.",
            set: |config, args| number_once(&mut config.streams_max, args, 1..),
        },
        max_connections(|config, args| number_once(&mut config.connections_max, args, 0..)),
        Property {
            usage: Usage("worker_pool_size NUMBER"),
            default: "1024",
            doc: "Accepted for compatibility; has no effect. At least 1.",
            set: |config, args| number_once(&mut config.worker_pool_size, args, 1..),
        },
    ])
    .settings(|config, settings| settings.listening.quic = limits(config));

fn limits(config: &Config) -> QuicLimits {
    let usual = QuicLimits::default();
    QuicLimits {
        streams_max: config.streams_max.unwrap_or(usual.streams_max),
        connections_max: connections_max(config.connections_max, usual.connections_max),
    }
}

fn build(_: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
