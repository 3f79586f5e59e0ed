//! Sources of a cluster's objects: the options that all plugins that follow a cluster share.

use core::time::Duration;
use std::path::PathBuf;

use cluster::{Request, Source, Tls};
use config::options::{Args, DirectiveContext, Problem, Property, Usage};
use config::setup::Setup;

/// Paths of the client certificate, its key and the CA certificates, as written in the Corefile.
type TlsFiles = [String; 3];

const STALE_AFTER_DEFAULT: Duration = Duration::from_secs(30);
/// Minimum of `stale_after`: the API server is asked after 10 s without news, and may need time to answer.
const STALE_AFTER_MIN: Duration = Duration::from_secs(15);

/// Source of a cluster's objects, and the namespaces to serve.
#[derive(Debug)]
pub struct Sources {
    endpoints: Vec<String>,
    tls: Option<TlsFiles>,
    kubeconfig: Option<(String, Option<String>)>,
    manifests: Vec<String>,
    /// Namespaces that are followed; empty for all.
    pub namespaces: Vec<String>,
    /// Age from which the data is stale; zero for never.
    stale_after: Duration,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources {
            endpoints: Vec::new(),
            tls: None,
            kubeconfig: None,
            manifests: Vec::new(),
            namespaces: Vec::new(),
            stale_after: STALE_AFTER_DEFAULT,
        }
    }
}

impl Sources {
    /// Warns of `tls` that the connection to the API server does not use, because it looks as if it were encrypted.
    ///
    /// # Errors
    /// The warning.
    pub fn check_tls<C>(&self, context: &DirectiveContext<'_, C>) -> Result<(), Problem> {
        let is_plain = self.endpoints.first().is_some_and(|endpoint| endpoint.starts_with("http://"));
        match context.word_of("tls").filter(|_| is_plain && self.kubeconfig.is_none()) {
            Some(word) => {
                let message = "tls has no effect: the connection to this endpoint is not encrypted";
                Err(context.warning_at(word, message, "write the endpoint as `https://HOST:PORT`"))
            }
            None => Ok(()),
        }
    }
}

/// A configuration with these options.
pub trait HasSources {
    /// Returns the options.
    fn sources(&mut self) -> &mut Sources;
}

/// Property `endpoint`.
pub const fn endpoint<C: HasSources>() -> Property<C> {
    Property {
        usage: Usage("endpoint URL..."),
        default: "",
        doc: "URL of the API server, for use outside of the cluster. If several are given, only the first is used.",
        set: set_endpoints,
    }
}

fn set_endpoints<C: HasSources>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    config.sources().endpoints = texts(args);
    Ok(())
}

/// Property `tls`.
pub const fn tls<C: HasSources>() -> Property<C> {
    Property {
        usage: Usage("tls CERT KEY CACERT"),
        default: "",
        doc: "PEM files for `endpoint`: the client certificate, its key, and the CA certificates that the API server \
              is verified with.",
        set: set_tls,
    }
}

fn set_tls<C: HasSources>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    let mut file = || args.word().map(|word| word.text.clone());
    config.sources().tls = Some([file()?, file()?, file()?]);
    Ok(())
}

/// Property `kubeconfig`.
pub const fn kubeconfig<C: HasSources>() -> Property<C> {
    Property {
        usage: Usage("kubeconfig FILE [CONTEXT]"),
        default: "",
        doc: "Kubeconfig file with the API server and the credentials, and the context to use (default, and for \
              `\"\"`: its current context). Takes precedence over `endpoint`.",
        set: set_kubeconfig,
    }
}

fn set_kubeconfig<C: HasSources>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    let file = args.word()?.text.clone();
    config.sources().kubeconfig = Some((file, args.next_word().map(|word| word.text.clone())));
    Ok(())
}

/// Property `manifests`.
pub const fn manifests<C: HasSources>() -> Property<C> {
    Property {
        usage: Usage("manifests PATH..."),
        default: "",
        doc: "YAML or JSON manifests, as files or directories, to use instead of an API server. They are watched for \
              changes. Not in CoreDNS.",
        set: add_manifests,
    }
}

fn add_manifests<C: HasSources>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    config.sources().manifests.extend(texts(args));
    Ok(())
}

/// Property `namespaces`.
pub const fn namespaces<C: HasSources>() -> Property<C> {
    Property {
        usage: Usage("namespaces NAMESPACE..."),
        default: "all",
        doc: "Namespaces to serve; names in all others do not exist. Only these are listed and watched, so a Role in \
              each of them is enough.",
        set: add_namespaces,
    }
}

fn add_namespaces<C: HasSources>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    config.sources().namespaces.extend(texts(args));
    Ok(())
}

/// Property `stale_after`.
pub const fn stale_after<C: HasSources>() -> Property<C> {
    Property {
        usage: Usage("stale_after DURATION"),
        default: "30s",
        doc: "Age of the data from which answers carry an Extended DNS Error (3 or 19) with the age and a TTL of at \
              most 5 seconds. A watch that is silent for 10 seconds is checked by a list of at most one object. `0s` \
              turns both off; otherwise at least 15s. Not in CoreDNS.",
        set: set_stale_after,
    }
}

fn set_stale_after<C: HasSources>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    let (name, limit) = (args.name(), args.duration()?);
    if !limit.is_zero() && limit < STALE_AFTER_MIN {
        return Err(args.problem_at(name.span, "stale_after is `0s` or at least `15s`"));
    }
    config.sources().stale_after = limit;
    Ok(())
}

/// Takes the remaining words.
pub fn texts(args: &mut Args<'_>) -> Vec<String> {
    args.take_rest().iter().map(|word| word.text.clone()).collect()
}

impl Sources {
    /// Returns a request for all Namespaces, Services and EndpointSlices of the source. The plugin adds or removes
    /// kinds.
    pub fn request(&self, path: impl Fn(&str) -> PathBuf) -> Request {
        let source = match (&self.kubeconfig, self.endpoints.first()) {
            _ if !self.manifests.is_empty() => {
                Source::Manifests(self.manifests.iter().map(|name| path(name)).collect())
            }
            (Some((file, context)), _) => Source::Kubeconfig { file: path(file), context: context.clone() },
            (None, Some(url)) => {
                let tls = |tls: &TlsFiles| {
                    let [certificate, key, authority] = tls.each_ref().map(|name| path(name));
                    Tls { certificate, key, authority }
                };
                Source::Endpoint { url: url.clone(), tls: self.tls.as_ref().map(tls) }
            }
            (None, None) => Source::InCluster,
        };
        let stale_after = Some(self.stale_after).filter(|limit| !limit.is_zero());
        Request { namespaces: self.namespaces.clone(), stale_after, ..Request::new(source) }
    }

    /// Logs a warning for values that are not used.
    pub fn warn(&self, setup: &mut Setup<'_>) {
        if let [used, _, ..] = self.endpoints.as_slice() {
            let text =
                format!("Multiple endpoints have been deprecated, only the first specified endpoint '{used}' is used");
            setup.warn(text);
        }
    }
}
