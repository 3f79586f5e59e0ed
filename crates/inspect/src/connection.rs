//! Serving one connection: from a request to the endpoint and back.

use std::rc::Rc;
use std::time::Duration;

use control::Endpoint;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use process::limit_hits;
use tokio::time::timeout;

use super::answer::{Answer, AnswerBody, respond};
use super::context::{Access, Context};
use super::endpoints;
use super::peer::{check_head, check_request};
use super::refusal::Refusal;
use process::http_server::discard_rest;

/// Maximum size of a request body in bytes. The bodies of the API have some hundred.
const BODY_MAX: usize = 64 << 10;
/// Time limit for a request body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Responds to a request.
pub(super) async fn answer(context: &Rc<Context>, access: Access, request: Request<Incoming>) -> Response<AnswerBody> {
    let path = request.uri().path().to_owned();
    let (head, mut body) = request.into_parts();
    let handled = handle(context, access, &head, &mut body).await;
    // Before the end of the body, the response is a refusal.
    discard_rest(&head, &mut body).await;
    let mut response = respond(handled);
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, allowed(&path, access));
    }
    response
}

/// Returns the methods that a path has (RFC 9110 §15.5.6); none for a path that does not exist.
fn allowed(path: &str, access: Access) -> HeaderValue {
    let may_change = matches!(access, Access::Full { .. });
    let has =
        |method| Endpoint::ALL.into_iter().map(Endpoint::route).any(|one| one.path == path && one.method == method);
    HeaderValue::from_static(match (has(control::Method::Get), may_change && has(control::Method::Post)) {
        (true, true) => "GET, HEAD, POST",
        (true, false) => "GET, HEAD",
        (false, true) => "POST",
        (false, false) => "",
    })
}

async fn handle(context: &Rc<Context>, access: Access, head: &Parts, body: &mut Incoming) -> Result<Answer, Refusal> {
    check_head(&head.headers)?;
    match access {
        Access::Full { .. } => {}
        Access::ReadOnly => check_request(&head.method, &head.headers, true)?,
        Access::ReadOnlyTls => check_request(&head.method, &head.headers, false)?,
    }
    let method = if head.method == Method::HEAD { "GET" } else { head.method.as_str() };
    let endpoint = Endpoint::find(method, head.uri.path()).map_err(|error| {
        let status = match error {
            control::RouteError::Path => StatusCode::NOT_FOUND,
            control::RouteError::Method => StatusCode::METHOD_NOT_ALLOWED,
        };
        Refusal::new(status, error.to_string())
    })?;
    let query = head.uri.query().unwrap_or_default().to_owned();
    let body = body_of(body).await?;
    in_time(endpoint.route().time_limit, endpoints::handle(context, access, endpoint, &query, &body)).await
}

/// Waits for a response, and refuses and counts the request if it takes longer than the limit.
async fn in_time<T>(limit: Duration, handling: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    timeout(limit, handling).await.map_err(|_| {
        limit_hits::count(|limits| limits.control_time);
        let message = format!("no response within {} s; `portolan status` shows the state", limit.as_secs());
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, message)
    })?
}

/// Reads the body of a request.
async fn body_of(body: &mut Incoming) -> Result<Bytes, Refusal> {
    let body = timeout(BODY_TIMEOUT, Limited::new(body, BODY_MAX).collect()).await;
    let body =
        body.map_err(|_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time"))?;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => {
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the request body has more than {BODY_MAX} bytes"))
        }
        None => Refusal::invalid(format!("the request body cannot be read: {error}")),
    })?;
    Ok(body.to_bytes())
}

#[cfg(test)]
mod tests {
    use core::future::{pending, ready};

    use metrics::Registry;

    use super::*;

    #[test]
    fn counts_a_request_that_takes_too_long() {
        let registry = Registry::new();
        limit_hits::count_in(&registry);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let hits = || registry.totals_by("portolan_limit_hits_total", "limit").get("control_time").copied();
        assert!(runtime.block_on(in_time(Duration::from_secs(60), ready(Ok(())))).is_ok());
        assert_eq!(hits(), None);
        let refused = runtime.block_on(in_time(Duration::ZERO, pending::<Result<(), Refusal>>()));
        assert_eq!((refused.is_err(), hits()), (true, Some(1)));
    }
}
