//! Where the objects are: in a cluster, in a file of manifests that the server reads, or wherever the user has put them.
//! What was made is taken away by [`Place::clean`], of what was there before nothing is lost.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Problem;
use crate::api::Api;
use crate::endpoints::Endpoints;
use crate::objects::{self, Values};

/// Where the objects are.
pub(crate) enum Place {
    /// In a scratch namespace of a cluster, with Endpoints beside EndpointSlices.
    Cluster(Api, Endpoints),
    /// In a file.
    File(Manifests),
    /// The user has put them somewhere.
    Given,
}

impl Place {
    pub(crate) fn cluster(api: Api) -> Place {
        Place::Cluster(api, Endpoints::default())
    }

    /// Creates an object, or replaces the one that was created before; gives it as it is then.
    pub(crate) async fn put(&mut self, object: Value) -> Result<Value, Problem> {
        match self {
            Place::Cluster(api, endpoints) => {
                let object = api.put(object).await?;
                let beside = endpoints.put(&object);
                put_beside(api, endpoints, beside).await;
                Ok(object)
            }
            Place::File(file) => file.put(object),
            Place::Given => Ok(object),
        }
    }

    /// Deletes an object; one that is not there is no problem.
    pub(crate) async fn remove(&mut self, kind: &str, name: &str) -> Result<(), Problem> {
        match self {
            Place::Cluster(api, endpoints) => {
                api.remove(kind, name).await?;
                let beside = endpoints.remove(kind, name);
                put_beside(api, endpoints, beside).await;
                Ok(())
            }
            Place::File(file) => file.remove(kind, name),
            Place::Given => Ok(()),
        }
    }

    /// Whether objects can be changed.
    pub(crate) const fn is_ours(&self) -> bool {
        !matches!(self, Place::Given)
    }

    /// Why there are no Endpoints, if they could not be made.
    pub(crate) fn endpoints_refused(&self) -> Option<&str> {
        if let Place::Cluster(_, endpoints) = self { endpoints.refusal.as_deref() } else { None }
    }

    /// Learns what else is known of this place.
    pub(crate) async fn look_around(&self, values: &mut Values) {
        if let Place::Cluster(api, _) = self
            && let Ok(service) = api.get("default", "Service", "kubernetes").await
        {
            values.learn(&service);
        }
    }

    /// Takes away all that was made.
    pub(crate) async fn clean(self) -> Result<(), Problem> {
        match self {
            Place::Cluster(api, _) => api.clean().await,
            Place::File(file) => file.clean(),
            Place::Given => Ok(()),
        }
    }
}

/// Puts Endpoints. Most servers do without them, so that they cannot be is noted and no problem.
async fn put_beside(api: &mut Api, endpoints: &mut Endpoints, beside: Option<Value>) {
    if let Some(object) = beside
        && let Err(problem) = api.put(object).await
    {
        endpoints.refusal = Some(problem.to_string());
    }
}

/// A file of manifests, written anew with each change.
pub(crate) struct Manifests {
    path: PathBuf,
    /// What was in the file; `None` if there was none.
    before: Option<Vec<u8>>,
    objects: Vec<Value>,
    /// Whether the file is written: not before all that is there from the beginning is known.
    is_begun: bool,
}

impl Manifests {
    /// # Errors
    /// If there is a file that cannot be read.
    pub(crate) fn new(path: &Path) -> Result<Manifests, Problem> {
        let before = match std::fs::read(path) {
            Ok(octets) => Some(octets),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Problem::file(path, &error)),
        };
        Ok(Manifests { path: path.to_owned(), before, objects: Vec::new(), is_begun: false })
    }

    fn put(&mut self, object: Value) -> Result<Value, Problem> {
        let key = objects::key(&object);
        self.objects.retain(|kept| objects::key(kept) != key);
        self.objects.push(object.clone());
        self.write()?;
        Ok(object)
    }

    fn remove(&mut self, kind: &str, name: &str) -> Result<(), Problem> {
        self.objects.retain(|kept| objects::key(kept) != (kind.to_owned(), name.to_owned()));
        self.write()
    }

    /// Writes the file from now on with each change.
    pub(crate) fn begin(&mut self) -> Result<(), Problem> {
        self.is_begun = true;
        self.write()
    }

    /// JSON is YAML too, where the documents are told apart.
    fn write(&self) -> Result<(), Problem> {
        let between = if self.path.extension().is_some_and(|extension| extension == "json") { "" } else { "---\n" };
        let text: String = self.objects.iter().map(|object| format!("{between}{object}\n")).collect();
        if self.is_begun { self.replace(text.as_bytes()) } else { Ok(()) }
    }

    /// The server never sees half a file.
    fn replace(&self, octets: &[u8]) -> Result<(), Problem> {
        let mut fresh = self.path.clone().into_os_string();
        fresh.push(".fresh");
        let written = std::fs::write(&fresh, octets).and_then(|()| std::fs::rename(&fresh, &self.path));
        written.map_err(|error| Problem::file(&self.path, &error))
    }

    fn clean(self) -> Result<(), Problem> {
        match &self.before {
            Some(octets) => self.replace(octets),
            None => std::fs::remove_file(&self.path)
                .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
                .map_err(|error| Problem::file(&self.path, &error)),
        }
    }
}
