//! Corefile: that of the command line, the file that the server reads, or the one in the ConfigMap.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use cluster::Request;
use config::Directives;
use corefile::{Corefile, Diagnostic, Loader};
use doctor::objects::Container;
use doctor::{CorefileFacts, DNS_PORT, DnsService, Facts, Known, Problem, Unknown};

use super::api::Api;
use super::objects::config_map;
use super::resolv_conf::{self, ResolvConf};
use process::configuration::{Configuration, Origin, Surroundings};
use process::dry;
use process::local::is_pod;

/// Key of a ConfigMap with a Corefile.
const KEY: &str = "Corefile";
/// Text that the server sends in place of secrets.
const REMOVED: &str = "[removed]";
/// Maximum number of ConfigMaps that are read.
const CONFIG_MAPS_MAX: usize = 4;
/// Problems about files that are not in a ConfigMap, but may be in the container.
const ABOUT_FILES: [&str; 3] =
    ["corefile/import-without-match", "corefile/import-not-found", "corefile/import-unreadable"];

/// Corefile, and what it requests of clusters.
pub(super) struct ReadCorefile {
    pub(super) facts: CorefileFacts,
    /// Requests to clusters, or why they are not known.
    pub(super) requests: Known<Vec<Request>>,
}

/// Reads and compiles the Corefile.
pub(super) async fn corefile(
    conf: Option<&Path>,
    facts: &Facts,
    is_beside_server: bool,
    api: &Known<Api>,
    (settings, directives): (&ResolvConf, Directives),
) -> Known<ReadCorefile> {
    let cannot_open = |path: &Path, error: &io::Error| Unknown::new(host::errors::cannot_open(path, error));
    if let Some(path) = conf {
        let origin =
            Origin::Text { name: path.to_owned(), text: read(path).map_err(|error| cannot_open(path, &error))? };
        // Beside a cluster elsewhere, this machine has other name servers than the server.
        let has_files = facts.server.is_ok() || api.is_err();
        return compiled(&path.display().to_string(), &origin, directives, has_files);
    }
    if let Ok(server) = &facts.server {
        let Some(main) = server.files.first() else { return Err(Unknown::new("the server has no Corefile")) };
        // The file may be that of another container, or have changed.
        return match read(Path::new(&main.name)) {
            Ok(text) if main.name.starts_with('/') => {
                compiled(&main.name, &Origin::Text { name: main.name.clone().into(), text }, directives, true)
            }
            _ => Ok(without_secrets(&main.name, &main.text, directives)),
        };
    }
    // A server that does not answer this user is why its Corefile is not known.
    let of_server = facts.server.as_ref().err().filter(|_| is_beside_server);
    let api = api.as_ref().map_err(|reason| of_server.unwrap_or(reason).clone())?;
    // The name servers of a Pod are those of its node, as for the server, unless it asks the cluster DNS.
    let has_files = is_pod() && settings.cluster_domain().is_none();
    of_config_map(&facts.dns()?, api, directives, has_files).await
}

fn read(path: &Path) -> io::Result<String> {
    Origin::File(path.to_owned()).read(DNS_PORT).map(|(_, text)| text)
}

/// Compiles a Corefile with the files and the environment of this machine.
fn compiled(source: &str, origin: &Origin, directives: Directives, has_files: bool) -> Known<ReadCorefile> {
    let configuration = Configuration::read(origin, DNS_PORT, directives);
    let configuration =
        configuration.map_err(|error| Unknown::new(format!("{source}: {}", host::errors::describe(&error))))?;
    Ok(facts_of(source, configuration, has_files))
}

fn facts_of(source: &str, configuration: Configuration, has_files: bool) -> ReadCorefile {
    let Configuration { plan, problems, written, .. } = configuration;
    let requests = plan.map(dry::requests).ok_or_else(|| Unknown::new(format!("{source} has errors")));
    let problems = problems.iter().map(|problem| described(problem, &written)).collect();
    ReadCorefile { facts: of_written(source, Ok(problems), written, has_files), requests }
}

fn of_written(source: &str, problems: Known<Vec<Problem>>, written: Corefile, has_files: bool) -> CorefileFacts {
    let none = |_: &str| Vec::<IpAddr>::new();
    let name_servers: &dyn Fn(&str) -> Vec<IpAddr> = if has_files { &resolv_conf::name_servers } else { &none };
    let forwarded = CorefileFacts::forwards(&written, name_servers);
    CorefileFacts { source: source.to_owned(), problems, written, forwarded }
}

fn described(problem: &Diagnostic, written: &Corefile) -> Problem {
    let (line, _) = written.sources.position(problem.span);
    Problem {
        is_error: problem.is_error(),
        place: format!("{}:{line}", written.sources.name(problem.span.file).display()),
        message: format!("{} [{}]", problem.message, problem.code.name()),
    }
}

/// Reads the text that the server sends. It lacks secrets, so it may not compile.
fn without_secrets(source: &str, text: &str, directives: Directives) -> ReadCorefile {
    if !text.contains(REMOVED) {
        let origin = Origin::Text { name: source.into(), text: text.to_owned() };
        if let Ok(read) = compiled(source, &origin, directives, true) {
            return read;
        }
    }
    let unknown = Unknown::new(format!("{source} cannot be read here, and the server does not send secrets"));
    let written = corefile::parse(Path::new(source), text.to_owned(), &corefile::NoFiles).corefile;
    ReadCorefile { facts: of_written(source, Err(unknown.clone()), written, true), requests: Err(unknown) }
}

/// Reads the Corefile in the ConfigMap of the DaemonSet or the Deployment.
async fn of_config_map(
    dns: &DnsService<'_>,
    api: &Api,
    directives: Directives,
    has_files: bool,
) -> Known<ReadCorefile> {
    let workload = dns.workload()?;
    let spec = &workload.template.spec;
    let names = spec.volumes.iter().filter_map(|volume| volume.config_map.as_ref()).map(|source| &source.name);
    let namespace = &workload.metadata.namespace;
    for name in names.take(CONFIG_MAPS_MAX) {
        let Some(data) = config_map(api, namespace, name).await? else { continue };
        if let Some(text) = data.get(KEY) {
            let configuration = of_remote(text, &spec.containers, directives)?;
            return Ok(facts_of(&format!("ConfigMap {namespace}/{name}"), configuration, has_files));
        }
    }
    Err(Unknown::new(format!("no ConfigMap of {} has the key `{KEY}`", workload.path())))
}

/// Compiles a Corefile of containers elsewhere.
fn of_remote(text: &str, containers: &[Container], directives: Directives) -> Known<Configuration> {
    let parsed = corefile::parse(Path::new(KEY), text.to_owned(), &Remote(containers));
    // The interfaces of the server are not known here.
    let some_address = |_: &str| Some(vec![IpAddr::from([127, 0, 0, 1])]);
    let configuration =
        Configuration::of_parsed(parsed, &some_address, &Surroundings { port: DNS_PORT, directives, memory: None });
    let mut configuration = configuration.map_err(|error| Unknown::new(host::errors::describe(&error)))?;
    configuration.problems.retain(|problem| !ABOUT_FILES.contains(&problem.code.name()));
    Ok(configuration)
}

/// Files and environment of containers elsewhere: only the variables are known.
struct Remote<'a>(&'a [Container]);

impl Loader for Remote<'_> {
    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn glob(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let mut variables = self.0.iter().flat_map(|container| &container.env);
        variables.find(|variable| variable.name == name).map(|variable| variable.value.clone())
    }
}
