//! Liveness endpoint over HTTP.

use core::time::Duration;
use std::rc::Rc;

use config::options::{Manifest, Property, Usage};
use config::setup::{Page, PageContent, Part, Setup, SetupError};
use engine::log::{Level, Source};
use engine::{Fetch, Io};

use crate::shared::option_helpers::listen_address;
use metrics::{Counter, Histogram, Kind, Metric, SLIM_TIME};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "health",
    "serve a liveness endpoint over HTTP",
    || Config { address: ":8080".to_owned(), lameduck: Duration::ZERO },
    build,
)
.without_handler()
.repeated()
.arguments("health [ADDRESS]", |config, args| {
    if let Some(address) = listen_address(args)? {
        config.address = address;
    }
    Ok(())
})
.properties(&[Property {
    usage: Usage("lameduck DURATION"),
    default: "0s",
    doc: "Time to keep serving after the signal to shut down.",
    set: |config, args| {
        config.lameduck = args.duration()?;
        Ok(())
    },
}])
.metrics(&[&DURATION, &FAILURES]);

static DURATION: Metric = Metric {
    name: "coredns_health_request_duration_seconds",
    help: "Histogram of the time (in seconds) each request took.",
    kind: Kind::Histogram(&SLIM_TIME),
    labels: &[],
};
static FAILURES: Metric = Metric {
    name: "coredns_health_request_failures_total",
    help: "The number of times the health check failed.",
    kind: Kind::Counter,
    labels: &[],
};

/// Interval of the requests to its own endpoint.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Response time above which a request is logged.
const SLOW: Duration = Duration::from_secs(1);
/// Response time above which a request fails.
const TIMEOUT: Duration = Duration::from_secs(3);

pub struct Config {
    address: String,
    lameduck: Duration,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    for Config { address, lameduck } in configs {
        setup.requests.lameduck = setup.requests.lameduck.max(lameduck);
        setup.requests.pages.push(Page::new(address.clone(), "/health", || PageContent::text(200, "OK")));
        let check = SelfCheck {
            address,
            duration: setup.registry.histogram(&DURATION, &[]),
            failures: setup.registry.counter(&FAILURES, &[]),
        };
        // Only tests use port 0. The chosen port is not known here, so there is nothing to query.
        if !check.address.ends_with(":0") {
            setup.requests.jobs.push(Box::new(move |io| Box::pin(check.run(io))));
        }
    }
    Ok(None)
}

/// Requests its own endpoint periodically. The response time shows how loaded the machine is.
struct SelfCheck {
    address: String,
    duration: Option<Histogram>,
    failures: Counter,
}

impl SelfCheck {
    async fn run(self, io: Rc<dyn Io>) {
        loop {
            io.sleep_until(io.now() + CHECK_EVERY).await;
            let start = io.now();
            let fetch =
                Fetch { address: &self.address, tls: None, path: "/health", post: None, until: start + TIMEOUT };
            let status = io.fetch(fetch).await;
            let taken = io.now().since(start);
            if let Some(duration) = self.duration {
                io.counters().observe(duration, u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
            }
            let url = format!("http://{}/health", self.address);
            if let Err(error) = status {
                io.counters().count(self.failures);
                let message = format_args!("Local health request to \"{url}\" failed: {error}");
                io.log(Level::Warning, Source::Plugin("health"), message);
            } else if taken > SLOW {
                let taken = gotext::format_duration(taken);
                let message = format_args!("Local health request to \"{url}\" took more than 1s: {taken}");
                io.log(Level::Warning, Source::Plugin("health"), message);
            }
        }
    }
}
