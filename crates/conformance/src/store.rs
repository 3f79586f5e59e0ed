//! Location of the objects: a cluster, a file of manifests that the server reads, or wherever the user has put them.
//! [`ObjectStore::clean`] removes what was created and restores what was there before.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::RunError;
use crate::api::Api;
use crate::endpoints::Endpoints;
use crate::objects::{self, Values};

/// Location of the objects.
pub(crate) enum ObjectStore {
    /// A scratch namespace of a cluster, with Endpoints in addition to EndpointSlices.
    Cluster(Api, Endpoints),
    /// A file.
    File(Manifests),
    /// Provided by the user.
    Given,
}

impl ObjectStore {
    pub(crate) fn cluster(api: Api) -> ObjectStore {
        ObjectStore::Cluster(api, Endpoints::default())
    }

    /// Creates an object, or replaces the one created before. Returns the stored object.
    pub(crate) async fn put(&mut self, object: Value) -> Result<Value, RunError> {
        match self {
            ObjectStore::Cluster(api, endpoints) => {
                let object = api.put(object).await?;
                let beside = endpoints.put(&object);
                put_beside(api, endpoints, beside).await;
                Ok(object)
            }
            ObjectStore::File(file) => file.put(object),
            ObjectStore::Given => Ok(object),
        }
    }

    /// Deletes an object. Succeeds if it does not exist.
    pub(crate) async fn remove(&mut self, kind: &str, name: &str) -> Result<(), RunError> {
        match self {
            ObjectStore::Cluster(api, endpoints) => {
                api.remove(kind, name).await?;
                let beside = endpoints.remove(kind, name);
                put_beside(api, endpoints, beside).await;
                Ok(())
            }
            ObjectStore::File(file) => file.remove(kind, name),
            ObjectStore::Given => Ok(()),
        }
    }

    /// Returns true if objects can be changed.
    pub(crate) const fn is_ours(&self) -> bool {
        !matches!(self, ObjectStore::Given)
    }

    /// Returns the reason why Endpoints could not be created, if so.
    pub(crate) fn endpoints_refused(&self) -> Option<&str> {
        if let ObjectStore::Cluster(_, endpoints) = self { endpoints.refusal.as_deref() } else { None }
    }

    /// Adds values from existing objects: the cluster IPs of the Service `kubernetes`.
    pub(crate) async fn look_around(&self, values: &mut Values) {
        if let ObjectStore::Cluster(api, _) = self
            && let Ok(service) = api.get("default", "Service", "kubernetes").await
        {
            values.learn(&service);
        }
    }

    /// Removes everything that was created.
    pub(crate) async fn clean(self) -> Result<(), RunError> {
        match self {
            ObjectStore::Cluster(api, _) => api.clean().await,
            ObjectStore::File(file) => file.clean(),
            ObjectStore::Given => Ok(()),
        }
    }
}

/// Creates or replaces Endpoints. Most servers do not need them, so a failure is only recorded.
async fn put_beside(api: &mut Api, endpoints: &mut Endpoints, beside: Option<Value>) {
    if let Some(object) = beside
        && let Err(error) = api.put(object).await
    {
        endpoints.refusal = Some(error.to_string());
    }
}

/// File of manifests, rewritten at each change.
pub(crate) struct Manifests {
    path: PathBuf,
    /// Original content; `None` if the file did not exist.
    before: Option<Vec<u8>>,
    objects: Vec<Value>,
    /// True once the initial objects are complete; the file is not written before.
    is_begun: bool,
}

/// Maximum length of the file in bytes. It is kept to restore it at the end.
const FILE_MAX: u64 = 16 << 20;

/// Reads a regular file. Another one, such as a FIFO, could block or never end, and cannot be restored.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let refuse = |reason: &str| Err(std::io::Error::other(reason.to_owned()));
    let metadata = std::fs::metadata(path)?;
    match metadata.len() {
        _ if !metadata.is_file() => refuse("it is not a regular file"),
        FILE_MAX.. => refuse("it has more than 16 MiB"),
        _ => std::fs::read(path),
    }
}

impl Manifests {
    /// Reads the original content of the file.
    ///
    /// # Errors
    /// Fails if the file exists but cannot be read.
    pub(crate) fn new(path: &Path) -> Result<Manifests, RunError> {
        let before = match read(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(RunError::file(path, &error)),
        };
        Ok(Manifests { path: path.to_owned(), before, objects: Vec::new(), is_begun: false })
    }

    fn put(&mut self, object: Value) -> Result<Value, RunError> {
        let key = objects::key(&object);
        self.objects.retain(|kept| objects::key(kept) != key);
        self.objects.push(object.clone());
        self.write()?;
        Ok(object)
    }

    fn remove(&mut self, kind: &str, name: &str) -> Result<(), RunError> {
        self.objects.retain(|kept| objects::key(kept) != (kind.to_owned(), name.to_owned()));
        self.write()
    }

    /// Writes the file, now and at each further change.
    pub(crate) fn begin(&mut self) -> Result<(), RunError> {
        self.is_begun = true;
        self.write()
    }

    /// Writes the objects as JSON, which is also YAML if the documents are separated.
    fn write(&self) -> Result<(), RunError> {
        let between = if self.path.extension().is_some_and(|extension| extension == "json") { "" } else { "---\n" };
        let text: String = self.objects.iter().map(|object| format!("{between}{object}\n")).collect();
        if self.is_begun { self.replace(text.as_bytes()) } else { Ok(()) }
    }

    /// Replaces the file atomically, so that the server never reads half of it.
    fn replace(&self, bytes: &[u8]) -> Result<(), RunError> {
        let mut fresh = self.path.clone().into_os_string();
        fresh.push(".fresh");
        let written = std::fs::write(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, &self.path));
        written.map_err(|error| RunError::file(&self.path, &error))
    }

    fn clean(self) -> Result<(), RunError> {
        match &self.before {
            Some(bytes) => self.replace(bytes),
            None => std::fs::remove_file(&self.path)
                .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
                .map_err(|error| RunError::file(&self.path, &error)),
        }
    }
}
