//! Explanations without a server: a generation from a Corefile and manifests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use cluster::{ClusterHandle, Clusters, Request, Source};
use config::setup::{Capabilities, ReloadState};
use config::{BuildContext, Built, Directives};
use control::explain::Explained;
use corefile::Style;
use engine::Generation;
use host::FollowError;
use metrics::Registry;
use tokio::task::LocalSet;

use super::{Asked, ExplainError, Explainer, Outline};
use crate::dns_service;
use process::capabilities::capabilities;
use process::clusters::Followed;
use process::configuration::{Configuration, Origin};
use process::files::Disk;
use process::secrets::Secrets;
use process::{clusters, dry, startup_gates};

/// Default port of keys.
const DNS_PORT: u16 = 53;

/// Files to explain from.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Corefile.
    pub conf: PathBuf,
    /// Manifests of the cluster, in place of the source that the Corefile names.
    pub manifests: Vec<PathBuf>,
}

/// Reason why nothing can be explained from files.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The Corefile or a manifest cannot be read.
    #[error("{}", host::errors::cannot_open(.0, .1))]
    Read(PathBuf, #[source] io::Error),
    /// The Corefile has errors, or cannot be built.
    #[error("{}", .0.trim_end())]
    Corefile(String),
    /// A part of the question is invalid.
    #[error("{0}")]
    Question(#[source] ExplainError),
    /// The operating system refuses something else.
    #[error("{}", host::errors::describe(.0))]
    Io(#[source] io::Error),
}

/// Explains the answer that a server with this Corefile would give.
///
/// # Errors
/// The Corefile cannot be read or built, or a part of the question is invalid.
pub fn explain(files: &Files, asked: &Asked<'_>, directives: Directives) -> Result<Explained, OfflineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(OfflineError::Io)?;
    LocalSet::new().block_on(&runtime, async {
        let loaded = load(files, directives).await?;
        let mut explainer = loaded.explainer();
        if let Some(from) = asked.from {
            explainer.located = super::locate(from, &loaded.clusters.sources(), &loaded.requests.inspection).await;
        }
        explainer.cluster_dns = dns_service::addresses(&loaded.clusters, &[]);
        explainer.explain(asked).map_err(OfflineError::Question)
    })
}

/// Configuration that was built without serving it.
pub struct Loaded {
    /// Generation.
    pub generation: Generation,
    outline: Outline,
    requests: config::setup::HostRequests,
    clusters: Arc<Followed>,
    /// Keeps the state of the plugins.
    _reload_state: ReloadState,
}

impl Loaded {
    /// Returns the explainer of this configuration.
    pub(crate) fn explainer(&self) -> Explainer<'_> {
        Explainer::new(&self.generation, &self.outline, &self.requests.inspection)
    }
}

/// Builds a configuration, and waits until its manifests are read.
pub async fn load(files: &Files, directives: Directives) -> Result<Loaded, OfflineError> {
    for path in &files.manifests {
        // A Corefile without *kubernetes* reads none, which must not hide a typing error.
        fs::metadata(path).map_err(|error| OfflineError::Read(path.clone(), error))?;
    }
    let origin = Origin::find(Some(&files.conf)).map_err(OfflineError::Io)?;
    let configuration = Configuration::read(&origin, DNS_PORT, directives)
        .map_err(|error| OfflineError::Read(files.conf.clone(), error))?;
    let text = configuration.render_problems(Style::Plain);
    let Configuration { plan, written, .. } = configuration;
    let plan = plan.ok_or(OfflineError::Corefile(text))?;
    let registry = Registry::new();
    let clusters: Arc<Followed> = Arc::default();
    let process = offline_capabilities(&registry, &files.manifests, &clusters);
    let context =
        BuildContext { registry: &registry, files: &Disk, process: &process, reload_state: ReloadState::default() };
    let Built { generation, mut requests, reload_state, outlines, .. } = plan
        .build(context)
        .map_err(|problems| OfflineError::Corefile(Secrets::of(&written).render(&problems, Style::Plain)))?;
    startup_gates::wait(core::mem::take(&mut requests.startup_gates)).await;
    let outline = Outline::new(&outlines, &written.sources);
    Ok(Loaded { generation, outline, requests, clusters, _reload_state: reload_state })
}

/// Returns the capabilities of a process that contacts no server.
fn offline_capabilities(registry: &Arc<Registry>, manifests: &[PathBuf], followed: &Arc<Followed>) -> Capabilities {
    let mut process = capabilities(registry);
    dry::contact_nobody(&mut process);
    let inner = clusters::clusters(registry, followed);
    process.provide(Rc::new(FromManifests { inner, manifests: manifests.to_vec() }) as Rc<dyn Clusters>);
    process
}

/// Reads clusters from manifests, whatever their source is.
struct FromManifests {
    inner: Rc<dyn Clusters>,
    manifests: Vec<PathBuf>,
}

impl Clusters for FromManifests {
    fn follow(&self, request: &Request) -> Result<Arc<dyn ClusterHandle>, FollowError> {
        let mut request = request.clone();
        request.snapshot = None;
        match (&request.source, self.manifests.as_slice()) {
            (Source::Manifests(paths), []) if paths.iter().all(|path| Path::exists(path)) => {}
            (_, []) => return Err(FollowError::new(NoManifestsError)),
            (_, paths) => request.source = Source::Manifests(paths.to_vec()),
        }
        self.inner.follow(&request)
    }
}

/// Error: there are no manifests to read the cluster from.
#[derive(Debug, thiserror::Error)]
#[error("no API server is contacted; name the manifests of the cluster with `--manifests DIR`")]
struct NoManifestsError;
