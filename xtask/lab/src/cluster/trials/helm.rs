//! The chart: install with one image, upgrade to another, rollback.

use super::bed::{Bed, Server};
use super::report::{Report, Row};
use super::rollouts::timed;
use super::traffic::during;
use crate::cluster::programs;
use xtask::{Failed, root};

/// Cluster IP of the release, besides that of the installed DNS.
const ADDRESS: &str = "10.96.0.53";
const RELEASE: &str = "trial";

/// Installs, upgrades and rolls back a release under load on its address.
pub(crate) fn run(bed: &Bed<'_>, _rounds: usize, report: &mut Report) -> Result<(), Failed> {
    if programs::find("helm").is_none() {
        report.skip("helm: `helm` is not on the PATH");
        return Ok(());
    }
    let first = bed.servers.last().copied().unwrap_or(Server::Portolan);
    let done = release(bed, first, report);
    let removed = helm(bed, &format!("uninstall {RELEASE} --wait"));
    done.and(removed)
}

fn release(bed: &Bed<'_>, first: Server, report: &mut Report) -> Result<(), Failed> {
    let chart = root().join("deploy/helm/portolan").display().to_string();
    let image = |server: Server| {
        let name = server.image();
        let (repository, tag) = name.rsplit_once(':').unwrap_or((&name, ""));
        format!("--set image.repository={repository},image.tag={tag}")
    };
    let took = timed(|| {
        helm(
            bed,
            &format!(
                "install {RELEASE} {chart} {} --set service.clusterIP={ADDRESS},replicaCount=2,serviceAccount.create=true --wait",
                image(first)
            ),
        )
    })?;
    report.note(format!("helm install with the image of {}: ready after {:.1} s", first.name(), took.as_secs_f64()));
    let changes = [
        (
            "helm upgrade to Portolan",
            format!("upgrade {RELEASE} {chart} --reset-then-reuse-values {} --wait", image(Server::Portolan)),
        ),
        (
            "helm upgrade of a value",
            format!("upgrade {RELEASE} {chart} --reset-then-reuse-values --set-string podAnnotations.trial=1 --wait"),
        ),
        ("helm rollback to the first release", format!("rollback {RELEASE} 1 --wait")),
    ];
    for (name, line) in changes {
        let (outcome, took) = during(bed, ADDRESS, || timed(|| helm(bed, &line)))?;
        report.add(Row { trial: name.to_owned(), server: format!("installed with {}", first.name()), outcome, took });
    }
    Ok(())
}

fn helm(bed: &Bed<'_>, line: &str) -> Result<(), Failed> {
    let words: Vec<&str> = ["-n", "kube-system"].into_iter().chain(line.split_whitespace()).collect();
    bed.inside.output("helm", &words).map(drop)
}
