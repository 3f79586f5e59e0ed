//! Replicas of the server: asks one for the hash of its Corefile, by its metrics page.

use std::net::SocketAddr;
use std::time::Duration;

use corefile::Directive;
use http_body_util::{BodyExt, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::HOST;
use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::http_client::{self, RequestBody};

/// Port of the metrics page without another one in the Corefile.
pub const METRICS_PORT: u16 = 9153;
/// Maximum number of replicas that are asked.
pub const REPLICAS_MAX: usize = 32;
/// Maximum size of a metrics page in bytes.
const PAGE_MAX: usize = 16 << 20;
/// Time limit for a metrics page.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// Metric with the hash as a label.
const METRIC: &str = "coredns_reload_version_info{";

/// Returns the port in the first of these lines of *prometheus* that has one.
pub fn port_of<'a>(mut lines: impl Iterator<Item = &'a Directive>) -> Option<u16> {
    let address = lines.find_map(|directive| directive.args.first())?;
    address.text.rsplit_once(':')?.1.parse().ok()
}

/// Requests the hash of the Corefile that a server has loaded, from its metrics page.
pub async fn corefile_hash(metrics: SocketAddr) -> Result<String, PageError> {
    let page = timeout(TIMEOUT, page(metrics)).await.map_err(|_| PageError::Late)??;
    hash(&page).ok_or(PageError::NoHash)
}

/// Requests the metrics page.
async fn page(address: SocketAddr) -> Result<String, PageError> {
    let stream = TcpStream::connect(address).await.map_err(PageError::Connect)?;
    let (mut sender, connection) =
        http_client::http1(&http1::Builder::new(), Box::new(stream)).await.map_err(PageError::Http)?;
    let request = Request::get("/metrics").header(HOST, address.to_string()).body(RequestBody::default());
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

/// Reason why the hash of a replica is not known.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// No connection.
    #[error("{}", host::errors::describe(.0))]
    Connect(#[source] std::io::Error),
    /// The connection broke, or the response is not HTTP.
    #[error("{0}")]
    Http(#[source] hyper::Error),
    /// The response is too long or not complete.
    #[error("the metrics page is not complete or has more than {PAGE_MAX} bytes")]
    Form,
    /// The response did not arrive in time.
    #[error("no metrics page within {} s", TIMEOUT.as_secs_f64())]
    Late,
    /// The page does not have the metric.
    #[error("no {}; does its Corefile have `reload`?", METRIC.trim_end_matches('{'))]
    NoHash,
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
