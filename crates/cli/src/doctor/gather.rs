//! Order of the gatherers.

use std::path::PathBuf;

use cluster::Source;
use config::Directives;
use control::doctor::ServerFacts;
use doctor::objects::Objects;
use doctor::{Facts, Known, ServiceAnswers, Unknown};

use super::api::Api;
use super::corefile::{ReadCorefile, corefile};
use super::deadline::Deadline;
use super::kubelets::kubelets;
use super::objects::{api_version, objects};
use super::probes::{
    encrypted_probes, encrypted_upstreams, probes, search_probes, service_answers, upstream_probes, upstreams,
};
use super::replicas::replicas;
use super::resolv_conf::ResolvConf;
use super::returns::{AskWaiting, Returns};
use super::rights::rights;
use super::{certificates, host, location};
use process::local::is_pod;

/// What to gather from.
#[derive(Clone)]
pub(crate) struct Options {
    /// True if the command line names the socket of the server.
    pub(crate) names_socket: bool,
    /// API server; `None` for that of this Pod or of `$KUBECONFIG`.
    pub(crate) source: Option<Source>,
    /// Corefile in place of that of the server.
    pub(crate) conf: Option<PathBuf>,
    /// Namespace and name of the DNS Service.
    pub(crate) service: Option<(String, String)>,
    /// True if the user asks for the mode `every-node`, which the cluster may not have yet.
    pub(crate) plans_every_node: bool,
    /// True to send packets.
    pub(crate) packets: bool,
    /// Asks the server that runs here for queries that wait.
    pub(crate) waiting: AskWaiting,
    /// Directives of this program.
    pub(crate) directives: Directives,
}

/// Answer of the server that runs here.
pub(crate) struct Server {
    pub(crate) facts: Known<ServerFacts>,
    /// True if a server runs on this machine, even if it does not answer this user.
    pub(crate) is_here: bool,
}

/// Facts, and the arguments that could not be used.
pub(crate) struct Gathered {
    pub(crate) facts: Facts,
    /// Options of the command line with the reason why they do not work.
    pub(crate) unusable: Vec<String>,
}

/// Gathers the facts, in less than five seconds. `server` asks the server that runs here.
pub(crate) async fn gather(options: Options, server: impl Future<Output = Server>) -> Gathered {
    let deadline = Deadline::start();
    let settings = ResolvConf::read();
    let mut facts = Facts::unknown("not gathered");
    facts.service.clone_from(&options.service);
    facts.plans_every_node = options.plans_every_node;
    facts.conntrack = host::conntrack();
    facts.interfaces = host::interfaces();
    let asking = deadline.limit("control socket", async { Ok(server.await) });
    let (server, (api, objects)) = tokio::join!(asking, of_api(options.source.clone(), deadline));
    let Server { facts: server, is_here } =
        server.unwrap_or_else(|reason| Server { facts: Err(reason), is_here: false });
    let has_api = options.source.is_some() || usual_source().is_some();
    let no_cluster = if has_api { None } else { of_no_cluster(&server) };
    facts.objects = no_cluster.as_ref().map_or(objects, Objects::unknown);
    let api = api.map_err(|reason| no_cluster.unwrap_or(reason));
    facts.server = server;
    facts.api_clock_ahead = api.as_ref().map_err(Clone::clone).and_then(Api::clock_ahead);
    // The other gatherers need the Corefile. Without a ConfigMap, it is there at once.
    let read = deadline
        .limit("Corefile", corefile(options.conf.as_deref(), &facts, is_here, &api, (&settings, options.directives)))
        .await;
    let requests = read.as_ref().map_err(Clone::clone).and_then(|read| read.requests.clone());
    facts.corefile = read.map(|ReadCorefile { facts, .. }| facts);
    facts.certificates = certificates_of(&facts, options.conf.is_some());
    let inside = if options.packets {
        location::check_inside(&facts, is_here)
    } else {
        Err(Unknown::new("no packets are sent"))
    };
    let asks_upstreams = if options.conf.is_some() && options.packets { Ok(()) } else { inside.clone() };
    let encrypted = encrypted_upstreams(&facts);
    let connects = asks_upstreams.is_ok();
    let ((answers, version), access, kubelets, replicas, probes, upstreams, connections, search) = tokio::join!(
        answers_and_version(&facts, &api, &inside, deadline),
        deadline
            .limit("access reviews", async { rights(api.as_ref().map_err(Clone::clone)?, &facts, &requests).await }),
        deadline.limit("kubelets", kubelets(&api, &facts, &settings)),
        deadline.limit("metrics of the replicas", async { inside.clone().map(|()| replicas(&facts))?.await }),
        deadline.limit("probes", async { inside.clone().map(|()| probes(&facts, &settings))?.await }),
        deadline.limit("upstreams", async {
            asks_upstreams?;
            upstream_probes(upstreams(&facts)?, &Returns::of(&facts, &options.waiting)).await
        }),
        deadline.limit("connections to upstreams", async {
            Ok(encrypted_probes(encrypted.clone(), &facts, connects).await)
        }),
        deadline.limit("search domains", async { inside.clone().map(|()| search_probes(&settings))?.await }),
    );
    (facts.access, facts.kubelets, facts.replicas) = (access, kubelets, replicas);
    (facts.probes, facts.upstreams, facts.search) = (probes, upstreams, search);
    (facts.answers, facts.api_version) = (answers, version);
    facts.encrypted = match connections {
        Ok(connections) => connections,
        Err(_) => encrypted_probes(encrypted, &facts, false).await,
    };
    let unusable = options.unusable(&facts, &api);
    Gathered { facts, unusable }
}

impl Options {
    /// Returns the options that name something which cannot be used, with the reasons.
    fn unusable(&self, facts: &Facts, api: &Known<Api>) -> Vec<String> {
        let server =
            facts.server.as_ref().err().filter(|_| self.names_socket).map(|reason| ("--socket", reason.clone()));
        let source = match self.source {
            Some(Source::InCluster) => "--in-cluster",
            _ => "--kubeconfig",
        };
        let api = api.as_ref().err().filter(|_| self.source.is_some()).map(|reason| (source, reason.clone()));
        let corefile =
            facts.corefile.as_ref().err().filter(|_| self.conf.is_some()).map(|reason| ("--conf", reason.clone()));
        let has_services = self.service.is_some() && facts.objects.services.is_ok();
        let service = facts.dns().err().filter(|_| has_services).map(|reason| ("--service", reason));
        let all = [server, api, corefile, service].into_iter().flatten();
        all.map(|(option, reason)| {
            let reason = reason.to_string();
            // Other commands have no option that says what the file is.
            format!("{option}: {}", reason.strip_prefix("kubeconfig: ").unwrap_or(&reason))
        })
        .collect()
    }
}

/// Connects to the API server and reads the objects of the cluster.
async fn of_api(source: Option<Source>, deadline: Deadline) -> (Known<Api>, Objects) {
    let connecting = async {
        let missing = || Unknown::new("no API server is known: run this in a Pod, or use `--kubeconfig FILE`");
        Api::connect(source.or_else(usual_source).ok_or_else(missing)?).await
    };
    let api = deadline.limit("API server", connecting).await;
    let objects = match &api {
        Ok(api) => objects(api, deadline.each()).await,
        Err(reason) => Objects::unknown(reason),
    };
    (api, objects)
}

/// Asks the DNS Service who answers, and the API server for its version.
async fn answers_and_version(
    facts: &Facts,
    api: &Known<Api>,
    inside: &Known<()>,
    deadline: Deadline,
) -> (Known<Vec<ServiceAnswers>>, Known<String>) {
    tokio::join!(
        deadline.limit("answers of the Service", async { inside.clone().map(|()| service_answers(facts))?.await }),
        deadline.limit("version", async { api_version(api.as_ref().map_err(Clone::clone)?).await }),
    )
}

/// Returns the reason why there are no objects of a cluster, if the server shows that it belongs to none.
fn of_no_cluster(server: &Known<ServerFacts>) -> Option<Unknown> {
    let server = server.as_ref().ok()?;
    let is_alone = server.status.clusters.is_empty() && !server.status.in_pod;
    is_alone
        .then(|| Unknown::inapplicable("the server follows no cluster and is not in a Pod, and no API server is named"))
}

/// Returns the API server of this Pod, or the one of `$KUBECONFIG`.
fn usual_source() -> Option<Source> {
    if is_pod() {
        return Some(Source::InCluster);
    }
    let file = PathBuf::from(std::env::var_os("KUBECONFIG").filter(|file| !file.is_empty())?);
    Some(Source::Kubeconfig { file, context: None })
}

/// Reads certificates, if the files of the Corefile are those of this machine.
fn certificates_of(facts: &Facts, is_own: bool) -> Known<Vec<doctor::Certificate>> {
    let corefile = facts.corefile.as_ref().map_err(Clone::clone)?;
    if facts.server.is_err() && !is_own {
        return Err(Unknown::new("the files of the server are not here; run this in its Pod"));
    }
    certificates::certificates(corefile)
}
