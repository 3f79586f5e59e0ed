//! Overload protection, accepted for compatibility. No queue here can grow.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use metrics::{Kind, Metric};

pub static MANIFEST: Manifest<()> =
    Manifest::new("shed", "accepted for compatibility; has no effect", || (), build).metrics(&[&DROPPED]);

static DROPPED: Metric = Metric {
    name: "coredns_shed_dropped_total",
    help: "Counter of dropped queries and responses; always 0, as nothing is dropped here.",
    kind: Kind::Counter,
    labels: &["server", "reason"],
};

fn build(_: Vec<()>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    // Registers the series so that CoreDNS alerts and dashboards find them.
    for site in &setup.block.sites {
        for reason in ["query", "response"] {
            setup.registry.counter(&DROPPED, &[&site.server, reason]);
        }
    }
    Ok(None)
}
