//! Creates an HTTP client from a [`Source`]: URL, certificates, tokens and credential plugins. The crate kube
//! interprets kubeconfigs and adds the token to requests. This module configures the connections.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cluster::{Relays, Request, Source, Tls};
use http::header::ACCEPT_ENCODING;
use http::{HeaderName, HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, Client, ConfigExt};
use kube::config::{Config, KubeconfigError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tower::{BoxError, Service, ServiceBuilder};

use crate::authorities::Authorities;
use crate::causes::causes;
use crate::{ClientError, SetupError, Timing};

/// Folder in which a Pod finds its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Size of the read buffer of a connection in bytes, and so the largest chunk that the decoder processes at once.
const READ_MAX: usize = 64 * 1024;
/// Idle time before the first TCP keepalive probe and interval between probes, in seconds. A dead connection is
/// detected within 30 s.
const KEEPALIVE: [u64; 2] = [15, 5];
/// Number of unanswered keepalive probes after which a connection is closed.
const KEEPALIVE_RETRIES: u32 = 3;

/// Maximum number of bytes that the API server may send ahead of the decoder, in one response and in all together
/// (HTTP/2). At 10 ms to the API server, a list comes with 50 MB/s.
const AHEAD_MAX: [u32; 2] = [512 * 1024, 1024 * 1024];
/// Interval between HTTP/2 pings, also while nothing is requested, and timeout for their answers. A dead connection is
/// detected within 15 s.
const PING: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(5)];

/// Header with the form of objects that a relay may send: with the fields that answers need, and no others.
const PROFILE_HEADER: HeaderName = HeaderName::from_static("portolan-profile");
/// Compression that a relay may use. It compresses once for all its clients.
const COMPRESSION: (HeaderName, HeaderValue) = (ACCEPT_ENCODING, HeaderValue::from_static("gzip"));

/// HTTP version of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    /// HTTP/2 over TLS if the server offers it: all requests share a connection.
    Best,
    /// HTTP/1.1, with a connection for each request in flight. Needed for upgrades, and for more requests in flight
    /// than a server accepts on a connection.
    One,
}

/// Connector to the host of a URL.
type Connector = HttpConnector<HostResolver>;

/// Resolver of the host in a URL.
#[derive(Clone, Copy)]
struct HostResolver;

impl Service<Name> for HostResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, host: Name) -> Self::Future {
        Box::pin(async move {
            let addresses = stub_resolver::look_up_async(host.as_str()).await?;
            // The connector sets the port.
            let addresses: Vec<SocketAddr> = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            Ok(addresses.into_iter())
        })
    }
}

/// Creates a client for other users than the watches of this crate. It does not connect yet.
///
/// Blocks while it reads files and runs the credential plugin of the kubeconfig. Must be called within a tokio runtime.
///
/// # Errors
/// A missing, unreadable or invalid file or setting.
pub fn connect(source: &Source) -> Result<Client, SetupError> {
    client(&config(source)?, &Timing::default(), HttpVersion::One).map_err(SetupError::Credentials)
}

/// Reads the configuration of a source. This reads files, but does not run plugins and does not connect.
///
/// # Errors
/// A missing or unreadable file or setting, or manifests as the source, which have no API server.
pub(crate) fn config(source: &Source) -> Result<Config, SetupError> {
    let config = match source {
        Source::InCluster => in_cluster(|name| std::env::var(name).ok(), Path::new(SERVICE_ACCOUNT)),
        Source::Kubeconfig { file, context } => kubeconfig(file, context.as_deref()),
        Source::Endpoint { url, tls } => endpoint(url, tls.as_ref()),
        Source::Manifests(_) => Err(SetupError::NotInCluster("manifests have no API server".to_owned())),
    }?;
    check(&config)?;
    Ok(config)
}

/// Fields of objects that a relay sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Without the names of ready pods.
    Dns,
    /// With the names of all pods.
    DnsAndPods,
}

impl Profile {
    /// Returns the profile that a request needs.
    pub(crate) const fn of(request: &Request) -> Profile {
        if request.endpoint_pod_names { Profile::DnsAndPods } else { Profile::Dns }
    }

    const fn name(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Profile::Dns => "dns-1",
            Profile::DnsAndPods => "dns-pods-1",
        })
    }
}

/// Returns the configuration of a relay: TLS with a pinned CA, and a token.
///
/// # Errors
/// Unreadable CA certificates, or a URL that is not one of HTTPS.
pub(crate) fn relay(relays: &Relays, text: &str, profile: Profile) -> Result<Config, SetupError> {
    let mut config = Config::new(url(text)?);
    if !is_https(&config) {
        return Err(SetupError::Url { url: text.to_owned(), reason: "a relay needs https".to_owned() });
    }
    config.auth_info.token_file = Some(relays.token.to_string_lossy().into_owned());
    config.tls_server_name.clone_from(&relays.server_name);
    config.headers = vec![(PROFILE_HEADER, profile.name()), COMPRESSION];
    trust(&mut config, relays.authority.clone());
    check(&config)?;
    Ok(config)
}

/// Builds the in-cluster configuration from the environment and the service account folder.
fn in_cluster(variable: impl Fn(&str) -> Option<String>, account: &Path) -> Result<Config, SetupError> {
    let named = |name: &str| {
        let missing = || SetupError::NotInCluster(format!("the environment has no {name}"));
        variable(name).filter(|value| !value.is_empty()).ok_or_else(missing)
    };
    let (host, port) = (named("KUBERNETES_SERVICE_HOST")?, named("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let mut config = Config::new(url(&format!("https://{host}:{port}"))?);
    let (token, authority) = (account.join("token"), account.join("ca.crt"));
    for file in [&token, &authority] {
        let unreadable = |error: std::io::Error| SetupError::NotInCluster(host::errors::cannot_open(file, &error));
        std::fs::metadata(file).map_err(unreadable)?;
    }
    config.auth_info.token_file = Some(token.to_string_lossy().into_owned());
    trust(&mut config, authority);
    Ok(config)
}

fn kubeconfig(file: &Path, context: Option<&str>) -> Result<Config, SetupError> {
    let problem = |reason: String| SetupError::Kubeconfig(format!("{}: {reason}", file.display()));
    let mut kubeconfig = crate::kubeconfig::read(file).map_err(|error| match error {
        KubeconfigError::ReadConfig(error, _) => SetupError::Kubeconfig(host::errors::cannot_open(file, &error)),
        error => problem(causes(&error)),
    })?;
    // Empty, as EdgeMesh writes it, is the current context, as for client-go.
    if let Some(context) = context.filter(|context| !context.is_empty()) {
        kubeconfig.current_context = Some(context.to_owned());
    }
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    if clusters.filter_map(|cluster| cluster.proxy_url.as_deref()).any(|proxy| !proxy.is_empty()) {
        return Err(problem("proxy-url is not supported".to_owned()));
    }
    let mut config = Config::try_from(kubeconfig).map_err(|error| problem(causes(&error)))?;
    // Ignore proxies from the environment, which are not meant for traffic to a cluster.
    config.proxy_url = None;
    Ok(config)
}

fn endpoint(text: &str, tls: Option<&Tls>) -> Result<Config, SetupError> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("{scheme}://{text}") };
    let mut config = Config::new(url(&with_scheme)?);
    if let Some(tls) = tls {
        config.auth_info.client_certificate = Some(tls.certificate.to_string_lossy().into_owned());
        config.auth_info.client_key = Some(tls.key.to_string_lossy().into_owned());
        trust(&mut config, tls.authority.clone());
    }
    Ok(config)
}

/// Trusts only this CA. Its file is read again when it changes.
fn trust(config: &mut Config, authority: PathBuf) {
    config.root_cert = Some(Vec::new());
    config.root_cert_file = Some(authority);
}

fn url(text: &str) -> Result<Uri, SetupError> {
    let problem = |reason: String| SetupError::Url { url: text.to_owned(), reason };
    let url: Uri = text.parse().map_err(|error: http::uri::InvalidUri| problem(error.to_string()))?;
    match (url.scheme_str(), url.host()) {
        (Some("http" | "https"), Some(_)) => Ok(url),
        (Some("http" | "https"), None) => Err(problem("the URL has no host".to_owned())),
        (scheme, _) => Err(problem(format!("'{}' is neither http nor https", scheme.unwrap_or_default()))),
    }
}

/// Validates certificates and keys early, unless a program must run to get them.
fn check(config: &Config) -> Result<(), SetupError> {
    let auth = &config.auth_info;
    if is_https(config) && auth.exec.is_none() && auth.auth_provider.is_none() {
        use_our_cryptography();
        tls(config).map_err(SetupError::Credentials)?;
    }
    Ok(())
}

fn is_https(config: &Config) -> bool {
    config.cluster_url.scheme_str() == Some("https")
}

/// Returns host and port of the API server for the metric label `host`.
pub(crate) fn host(config: &Config) -> String {
    let url = &config.cluster_url;
    let port = url.port_u16().unwrap_or(if is_https(config) { 443 } else { 80 });
    format!("{}:{port}", url.host().unwrap_or_default())
}

/// URL of the API server, without a slash at the end.
pub(crate) fn server_url(config: &Config) -> String {
    config.cluster_url.to_string().trim_end_matches('/').to_owned()
}

/// Builds a client. This may run a credential plugin and block. Must be called within a tokio runtime.
///
/// # Errors
/// Unusable credentials or files.
pub(crate) fn client(config: &Config, timing: &Timing, version: HttpVersion) -> Result<Client, ClientError> {
    let mut connector = HttpConnector::new_with_resolver(HostResolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(timing.connect));
    let [idle, interval] = KEEPALIVE.map(Duration::from_secs);
    connector.set_keepalive(Some(idle));
    connector.set_keepalive_interval(Some(interval));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    let mut http = HttpClient::builder(TokioExecutor::new());
    http.pool_timer(TokioTimer::new()).pool_max_idle_per_host(1).http1_max_buf_size(READ_MAX);
    let ([in_one, in_all], [ping, timeout]) = (AHEAD_MAX, PING);
    http.timer(TokioTimer::new())
        .http2_initial_stream_window_size(in_one)
        .http2_initial_connection_window_size(in_all)
        .http2_keep_alive_interval(ping)
        .http2_keep_alive_timeout(timeout)
        .http2_keep_alive_while_idle(true);
    let layers = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(ClientError::Credentials)?)
        .layer(config.extra_headers_layer().map_err(ClientError::Credentials)?)
        .map_err(BoxError::from);
    if !is_https(config) {
        return Ok(Client::new(layers.service(http.build::<_, Body>(connector)), ""));
    }
    use_our_cryptography();
    Ok(Client::new(layers.service(http.build::<_, Body>(https(config, connector, version)?)), ""))
}

/// Adds TLS to a connector, with the server name of the kubeconfig if it has one.
fn https(
    config: &Config,
    connector: Connector,
    version: HttpVersion,
) -> Result<HttpsConnector<Connector>, ClientError> {
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls(config)?).https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = ServerName::try_from(name).map_err(ClientError::ServerName)?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match version {
        HttpVersion::Best => https.enable_all_versions().wrap_connector(connector),
        HttpVersion::One => https.enable_http1().wrap_connector(connector),
    })
}

/// Builds the TLS configuration. Given CA certificates are verified by this project, because kube rejects a server that
/// presents one of them (`CA:TRUE`).
fn tls(config: &Config) -> Result<ClientConfig, ClientError> {
    let mut tls = config.rustls_client_config().map_err(ClientError::Credentials)?;
    if !config.accept_invalid_certs
        && let Some(authorities) = Authorities::of(config)
    {
        tls.dangerous().set_certificate_verifier(authorities.verifier()?);
    }
    Ok(tls)
}

/// Installs aws-lc as the default TLS provider of the process, for all crates that use TLS.
fn use_our_cryptography() {
    // An error means that a default provider is already installed, which is fine.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

#[cfg(test)]
mod tests;
