//! Sets the interval at which the server checks the Corefile for changes. The server does the checking.

use core::time::Duration;

use config::options::{Args, Manifest, Problem};
use config::setup::{Part, Setup, SetupError};
use metrics::{Kind, Metric};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "reload",
    "reload the Corefile when it changes",
    || Config { interval: Duration::from_secs(30), jitter: Duration::from_secs(15) },
    build,
)
.without_handler()
.first_line_wins()
.arguments("reload [INTERVAL] [JITTER]", read)
.metrics(&[&FAILED, &VERSION]);

/// Counter of failed reloads.
pub static FAILED: Metric = Metric {
    name: "coredns_reload_failed_total",
    help: "Counter of the number of failed reload attempts.",
    kind: Kind::Counter,
    labels: &[],
};
/// Hash of the running configuration.
pub static VERSION: Metric = Metric {
    name: "coredns_reload_version_info",
    help: "A metric with a constant '1' value labeled by hash, and value which type of hash generated.",
    kind: Kind::Gauge,
    labels: &["hash", "value"],
};

const INTERVAL_MIN: Duration = Duration::from_secs(2);
const JITTER_MIN: Duration = Duration::from_secs(1);

pub struct Config {
    interval: Duration,
    jitter: Duration,
}

fn read(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let words = args.rest();
    if let Some(word) = words.first() {
        config.interval = args.duration()?;
        if config.interval < INTERVAL_MIN {
            return Err(args.bad(word, "an interval of at least 2s"));
        }
    }
    if let Some(word) = words.get(1) {
        config.jitter = args.duration()?;
        if !config.jitter.is_zero() && config.jitter < JITTER_MIN {
            return Err(args.bad(word, "a jitter of at least 1s, or 0s"));
        }
    }
    config.jitter = config.jitter.min(config.interval / 2);
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    if let Some(Config { interval, jitter }) = configs.into_iter().next() {
        setup.requests.reload = Some((interval, jitter));
    }
    Ok(None)
}
