//! Dry run: builds a configuration without serving it. Files can be read, but no server is contacted.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use cluster::{ClusterHandle, Clusters, Index, Reducer, Request};
use config::setup::{Capabilities, FileStamp, Files, ReloadState, SetupWarning};
use config::{BuildContext, Plan};
use corefile::Diagnostic;
use host::FollowError;
use metrics::Registry;
use plugins::{HostLookup, ZoneStorage};

use crate::capabilities::capabilities;
use crate::files::Disk;
use crate::zone_storage::ReadOnlyZoneFiles;

/// Result of building a configuration without serving it.
#[derive(Default)]
pub struct DryRun {
    /// Requests to clusters.
    pub requests: Vec<Request>,
    /// Errors that would prevent the start, and warnings.
    pub problems: Vec<Diagnostic>,
}

/// Builds a configuration like at the start of the server, and reads all files that it names.
pub fn with_files(plan: Plan) -> DryRun {
    build(plan, true, &Disk)
}

/// Returns the requests of a configuration to clusters. Does not read files, because this may not be the machine of the
/// server. Ignores directives that fail without their files.
pub fn requests(plan: Plan) -> Vec<Request> {
    build(plan, false, &NoFiles).requests
}

fn build(plan: Plan, checks_sources: bool, files: &dyn Files) -> DryRun {
    let recorder = Rc::new(Recorder { requests: RefCell::default(), checks_sources });
    let registry = Registry::new();
    let mut process = capabilities(&registry);
    process.provide(Rc::clone(&recorder) as Rc<dyn Clusters>);
    process.provide(Rc::new(EmptyStores { checks_sources }) as Rc<dyn skydns::Stores>);
    process.provide(Arc::new(FixedResolver) as Arc<dyn HostLookup>);
    process.provide(Arc::new(ReadOnlyZoneFiles { reads: checks_sources }) as Arc<dyn ZoneStorage>);
    let context = BuildContext { registry: &registry, files, process: &process, reload_state: ReloadState::default() };
    let problems = match plan.build(context) {
        Ok(built) => built.requests.warnings.iter().map(SetupWarning::diagnostic).collect(),
        Err(problems) => problems,
    };
    DryRun { requests: recorder.requests.take(), problems }
}

/// Replaces the capabilities that would contact a server, except for clusters: record stores are empty, and every host
/// has the same address.
pub fn contact_nobody(process: &mut Capabilities) {
    process.provide(Rc::new(EmptyStores { checks_sources: false }) as Rc<dyn skydns::Stores>);
    process.provide(Arc::new(FixedResolver) as Arc<dyn HostLookup>);
    process.provide(Arc::new(ReadOnlyZoneFiles { reads: true }) as Arc<dyn ZoneStorage>);
}

/// File system without files.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn is_file(&self, _: &Path) -> bool {
        false
    }

    fn stamp(&self, _: &Path) -> io::Result<FileStamp> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn replace(&self, _: &Path, _: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn append(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Records requests to clusters and returns empty indices.
struct Recorder {
    requests: RefCell<Vec<Request>>,
    checks_sources: bool,
}

impl Clusters for Recorder {
    fn follow(&self, request: &Request) -> Result<Arc<dyn ClusterHandle>, FollowError> {
        let warnings =
            if self.checks_sources { kubeapi::check(request).map_err(FollowError::new)? } else { Vec::new() };
        self.requests.borrow_mut().push(request.canonical());
        let (_, index) = Reducer::new(&request.watches());
        Ok(Arc::new(EmptyIndex { index, warnings }))
    }
}

/// Cluster that is not watched.
struct EmptyIndex {
    index: Arc<Index>,
    /// Mistakes in its manifests.
    warnings: Vec<String>,
}

impl ClusterHandle for EmptyIndex {
    fn index(&self) -> &Arc<Index> {
        &self.index
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Record stores without records and without connections.
struct EmptyStores {
    checks_sources: bool,
}

impl skydns::Stores for EmptyStores {
    fn follow(&self, request: &skydns::Request) -> Result<Arc<dyn skydns::StoreHandle>, FollowError> {
        if self.checks_sources {
            etcd::check(request).map_err(FollowError::new)?;
        }
        let (_, index) = skydns::Reducer::new(&request.canonical());
        Ok(Arc::new(EmptyRecords(index)))
    }
}

struct EmptyRecords(Arc<skydns::Index>);

impl skydns::StoreHandle for EmptyRecords {
    fn index(&self) -> &Arc<skydns::Index> {
        &self.0
    }
}

/// Resolver that returns a fixed address, because the addresses of upstreams do not matter in a dry run.
struct FixedResolver;

impl HostLookup for FixedResolver {
    fn lookup(&self, _: &str, _: &[SocketAddr]) -> io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}
