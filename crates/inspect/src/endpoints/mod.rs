//! Handlers of the endpoints, one module each.

mod cache;
mod doctor;
mod events;
mod explain;
mod log;
mod openapi;
mod page;
mod problems;
mod ready;
mod reload;
mod replicas;
mod report;
mod requests;
mod shadow;
mod status;
mod top;

use std::rc::Rc;

use control::Endpoint;
use control::query::Parameters;
use hyper::body::Bytes;
use serde::de::DeserializeOwned;

use super::answer::Answer;
use super::context::{Access, Context};
use super::refusal::Refusal;

/// Handles a request. `query` is the query string of its URL.
pub(super) async fn handle(
    context: &Rc<Context>,
    access: Access,
    endpoint: Endpoint,
    query: &str,
    body: &Bytes,
) -> Result<Answer, Refusal> {
    let parameters = Parameters::parse(query).map_err(|error| Refusal::invalid(error.to_string()))?;
    let known = endpoint.route().parameters;
    if let Some(name) = parameters.names().find(|name| !known.iter().any(|known| known.name == *name)) {
        return Err(Refusal::invalid(format!("unknown parameter `{name}`")));
    }
    match endpoint {
        Endpoint::Page => page::answer(context, parameters).await,
        Endpoint::Status => Answer::json(&status::status(context)),
        Endpoint::Ready => Answer::json(&ready::ready(context).await),
        Endpoint::Explain => {
            let located = explain::locate(context, &parameters).await;
            Answer::json(&explain::explain(context, &parameters, located)?)
        }
        Endpoint::CacheGet => Answer::json(&cache::get(context, &parameters)?),
        Endpoint::CacheFlush => Answer::json(&cache::flush(context, access, &json(body)?)?),
        Endpoint::Reload => Answer::json(&reload::reload(context, access).await?),
        Endpoint::LogLevels => Answer::json(&log::levels()),
        Endpoint::SetLogLevel => Answer::json(&log::set(context, access, &json(body)?)?),
        Endpoint::Requests => {
            Answer::json(&requests::requests(context, parameters.get("name").map(cache::name_of).transpose()?))
        }
        Endpoint::Events => Ok(Answer::stream(events::events(context, access, &parameters)?)),
        Endpoint::Top => Answer::json(&top::top(context, &parameters)?),
        Endpoint::Shadow => Answer::json(&shadow::shadow(context)),
        Endpoint::Doctor => Answer::json(&doctor::facts(context)),
        Endpoint::Report => Ok(Answer::bytes("application/gzip", report::archive(context)?)),
        Endpoint::OpenApi => Ok(Answer::bytes("application/json", openapi::document())),
    }
}

/// Parses the body of a request.
fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::invalid(format!("the request body is invalid: {error}")))
}
