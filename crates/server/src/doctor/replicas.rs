//! Hashes of the Corefiles of all replicas, from their metrics pages.

use std::net::SocketAddr;

use doctor::{CorefileFacts, Facts, Known, Replica, Unknown};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use futures_util::future::join_all;

/// Port of the metrics page without another one in the Corefile.
const METRICS_PORT: u16 = 9153;
/// Maximum number of replicas that are asked.
const REPLICAS_MAX: usize = 32;
/// Maximum size of a metrics page in bytes.
const PAGE_MAX: usize = 16 << 20;
/// Metric with the hash as a label.
const METRIC: &str = "coredns_reload_version_info{";

/// Asks the ready replicas for the hashes of their Corefiles.
pub(super) async fn replicas(facts: &Facts) -> Known<Vec<Replica>> {
    let dns = facts.dns()?;
    let port = facts.corefile.as_ref().ok().and_then(metrics_port).unwrap_or(METRICS_PORT);
    let ready = dns.endpoints()?.into_iter().filter(|endpoint| endpoint.is_ready());
    let each = ready.filter_map(|endpoint| {
        let address = endpoint.addresses.iter().find_map(|address| address.parse().ok())?;
        let pod = &endpoint.target_ref.name;
        let name = if pod.is_empty() { format!("{address}") } else { pod.clone() };
        Some(replica(name, SocketAddr::new(address, port)))
    });
    let replicas = join_all(each.take(REPLICAS_MAX)).await;
    if replicas.is_empty() {
        return Err(Unknown::new(format!("{} has no ready endpoint", dns.path())));
    }
    Ok(replicas)
}

/// Returns the port of `prometheus` in the Corefile.
fn metrics_port(corefile: &CorefileFacts) -> Option<u16> {
    let address = corefile.directives("prometheus").find_map(|directive| directive.args.first())?;
    address.text.rsplit_once(':')?.1.parse().ok()
}

async fn replica(name: String, address: SocketAddr) -> Replica {
    let hash = match page(address).await {
        Ok(page) => {
            hash(&page).ok_or_else(|| Unknown::new(format!("{address} has no {}", METRIC.trim_end_matches('{'))))
        }
        Err(reason) => Err(Unknown::new(format!("{address}: {reason}"))),
    };
    Replica { name, hash }
}

/// Requests the metrics page.
async fn page(address: SocketAddr) -> Result<String, PageError> {
    let stream = TcpStream::connect(address).await.map_err(PageError::Connect)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(PageError::Http)?;
    let request = Request::get("/metrics").header(HOST, address.to_string()).body(Empty::<Bytes>::new());
    let request = request.map_err(|_| PageError::Form)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(PageError::Http)?;
        Limited::new(response.into_body(), PAGE_MAX).collect().await.map_err(|_| PageError::Form)
    };
    tokio::pin!(connection);
    tokio::pin!(exchange);
    let body = tokio::select! {
        biased;
        body = &mut exchange => body?,
        ended = &mut connection => match ended {
            // The server may close right after a complete response.
            Ok(()) => exchange.await?,
            Err(error) => return Err(PageError::Http(error)),
        },
    };
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}

fn hash(page: &str) -> Option<String> {
    let line = page.lines().find(|line| line.starts_with(METRIC))?;
    let (_, value) = line.split_once("value=\"")?;
    value.split('"').next().map(str::to_owned)
}

/// Reason why a replica has no metrics page.
#[derive(Debug)]
enum PageError {
    /// No connection.
    Connect(std::io::Error),
    /// The connection broke, or the response is not HTTP.
    Http(hyper::Error),
    /// The response is too long or not complete.
    Form,
}

impl core::fmt::Display for PageError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PageError::Connect(error) => out.write_str(&io_text::describe(error)),
            PageError::Http(error) => error.fmt(out),
            PageError::Form => write!(out, "the metrics page is not complete or has more than {PAGE_MAX} bytes"),
        }
    }
}

impl core::error::Error for PageError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            PageError::Connect(error) => Some(error),
            PageError::Http(error) => Some(error),
            PageError::Form => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_hash_on_the_page() {
        let page = "# HELP x\na 1\ncoredns_reload_version_info{hash=\"sha512\",value=\"5f2c\"} 1\n";
        assert_eq!((hash(page).as_deref(), hash("a 1\n")), (Some("5f2c"), None));
    }
}
