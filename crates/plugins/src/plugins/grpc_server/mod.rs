//! Limits queries and connections over gRPC.

use config::options::{Manifest, Property, Usage};
use config::setup::{CallLimits, Part, Setup, SetupError};

use common_plugins::shared::option_helpers::{connections_max, max_connections, number_once};

/// Parsed `grpc_server` block.
#[derive(Default)]
pub struct Config {
    calls_max: Option<u32>,
    connections_max: Option<u32>,
}

pub static MANIFEST: Manifest<Config> =
    Manifest::new("grpc_server", "limit queries and connections over gRPC", Config::default, build)
        .without_handler()
        .repeated()
        .properties(&[
            Property {
                usage: Usage("max_streams NUMBER"),
                default: "256",
                doc: "Maximum number of concurrent queries per connection; 0 for no limit.",
                set: |config, args| number_once(&mut config.calls_max, args, 0..),
            },
            max_connections(|config, args| number_once(&mut config.connections_max, args, 0..)),
        ])
        .settings(|config, settings| settings.listening.calls = limits(config));

fn limits(config: &Config) -> CallLimits {
    let usual = CallLimits::default();
    CallLimits {
        connections_max: connections_max(config.connections_max, usual.connections_max),
        calls_max: config.calls_max.unwrap_or(usual.calls_max),
    }
}

fn build(_: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
