//! The API server, and its faults: the project's fake one, or kube-apiserver with etcd.

use std::path::Path;
use std::thread;
use std::time::Duration;

use fakeapi::{FakeApi, Fault};

use super::cluster::{Key, Part};
use super::kubernetes::{CLIENT_FILES, Kubernetes};
use super::schedule::Action;
use crate::random::Random;
use xtask::Failed;

/// Resources that are watched.
const RESOURCES: [&str; 3] = ["namespaces", "services", "endpointslices"];

/// API server. It outlives its own faults: what is written during one arrives.
pub(crate) enum Api {
    Fake(Box<FakeApi>),
    Real(Box<Kubernetes>),
}

impl Api {
    /// Starts it with its certificates in `folder`. A real one needs `kube-apiserver` and `etcd` on the PATH.
    pub(crate) fn start(folder: &Path, is_real: bool) -> Result<Api, Failed> {
        if is_real {
            return Ok(Api::Real(Box::new(Kubernetes::start(folder)?)));
        }
        let api = FakeApi::start_tls();
        let pems = api.pems().ok_or("no certificates")?;
        for (name, text) in CLIENT_FILES.iter().zip([&pems.certificate, &pems.key, &pems.authority]) {
            std::fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(Api::Fake(Box::new(api)))
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> String {
        match self {
            Api::Fake(api) => api.url().to_owned(),
            Api::Real(api) => api.url(),
        }
    }

    /// Returns the ports that it needs again when it starts again.
    pub(crate) fn ports(&self) -> Vec<u16> {
        match self {
            Api::Real(api) => api.ports().to_vec(),
            Api::Fake(api) => api.url().rsplit(':').next().and_then(|port| port.parse().ok()).into_iter().collect(),
        }
    }

    /// Returns the time that it may take to start after a fault.
    pub(crate) const fn restart_allowance(&self) -> Duration {
        match self {
            Api::Real(_) => Duration::from_secs(8),
            Api::Fake(_) => Duration::ZERO,
        }
    }

    /// Creates, replaces or, without content, deletes an object.
    pub(crate) fn write(&self, key: Key, part: Option<&Part>) -> Result<(), Failed> {
        let json = part.map(|part| part.json(key).ok_or_else(|| format!("{part:?} is no {key:?}"))).transpose()?;
        match self {
            Api::Real(api) => api.write(key, json.as_deref()),
            Api::Fake(api) => {
                match json {
                    Some(json) => drop(api.put(serde_json::from_str(&json).map_err(|error| error.to_string())?)),
                    None => {
                        let (resource, namespace, name) = key.path();
                        api.delete(resource, namespace, &name);
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns true if it can fail in this way.
    pub(crate) fn can_fail(&self, action: Action) -> bool {
        // Nothing between a real one and the server can cut one connection.
        matches!(self, Api::Fake(_)) || action != Action::ApiConnectionsCut
    }

    /// Fails for a while, and works again.
    pub(crate) fn fail(&self, action: Action, lasts: Duration, random: &mut Random) -> Result<(), Failed> {
        match self {
            Api::Real(api) => api.fail(action, lasts),
            Api::Fake(api) => fail_fake(api, action, lasts, random),
        }
    }
}

fn fail_fake(api: &FakeApi, action: Action, lasts: Duration, random: &mut Random) -> Result<(), Failed> {
    let set = |fault| RESOURCES.iter().for_each(|resource| api.fault(resource, fault));
    match action {
        Action::ApiDown => api.down(),
        Action::ApiStalled => set(Fault::Stall),
        Action::ApiSilent => set(Fault::Silence),
        Action::ApiStatus => set(Fault::Status(random.pick(&[429, 500, 503]), random.pick(&[None, Some(1)]))),
        Action::ApiSlow => set(Fault::Slow(256, Duration::from_millis(20))),
        Action::ApiCompacted => {
            api.down();
            api.compact();
            api.up();
        }
        Action::ApiConnectionsCut => {}
        other => return Err(format!("not a fault of an API server: {other:?}")),
    }
    if !matches!(action, Action::ApiSilent | Action::ApiDown | Action::ApiCompacted) {
        api.drop_connections();
    }
    thread::sleep(lasts);
    RESOURCES.iter().for_each(|resource| api.heal(resource));
    if matches!(action, Action::ApiStalled | Action::ApiSlow) {
        api.drop_connections();
    }
    api.up();
    Ok(())
}
