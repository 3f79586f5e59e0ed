//! OpenAPI 3.1 document, generated from [`Endpoint`] and the types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::{
    Endpoint, ErrorBody, Parameter, cache, doctor, explain, log, ready, reload, requests, shadow, status, tail, top,
};

/// Schemas of an endpoint.
struct Content {
    /// Body of the request.
    request: Option<Schema>,
    /// Content type and body of a successful response.
    response: (&'static str, Schema),
}

impl Content {
    fn json<T: JsonSchema>(generator: &mut SchemaGenerator) -> Content {
        Content { request: None, response: ("application/json", generator.subschema_for::<T>()) }
    }

    fn with_request<T: JsonSchema>(self, generator: &mut SchemaGenerator) -> Content {
        Content { request: Some(generator.subschema_for::<T>()), ..self }
    }
}

fn content(endpoint: Endpoint, generator: &mut SchemaGenerator) -> Content {
    match endpoint {
        Endpoint::Page => {
            Content { request: None, response: ("text/html", schemars::json_schema!({ "type": "string" })) }
        }
        Endpoint::Status => Content::json::<status::Status>(generator),
        Endpoint::Ready => Content::json::<ready::Readiness>(generator),
        Endpoint::Explain => Content::json::<explain::Explained>(generator),
        Endpoint::CacheGet => Content::json::<cache::Cached>(generator),
        Endpoint::CacheFlush => {
            Content::json::<cache::Flushed>(generator).with_request::<cache::FlushRequest>(generator)
        }
        Endpoint::Reload => Content::json::<reload::Reloaded>(generator),
        Endpoint::LogLevels => Content::json::<log::Levels>(generator),
        Endpoint::SetLogLevel => Content::json::<log::Levels>(generator).with_request::<log::SetLevel>(generator),
        Endpoint::Requests => Content::json::<requests::Requests>(generator),
        Endpoint::Events => {
            Content { request: None, response: ("application/x-ndjson", generator.subschema_for::<tail::Line>()) }
        }
        Endpoint::Top => Content::json::<top::Top>(generator),
        Endpoint::Shadow => Content::json::<shadow::Shadows>(generator),
        Endpoint::Doctor => Content::json::<doctor::ServerFacts>(generator),
        Endpoint::Report => {
            let archive = schemars::json_schema!({ "type": "string", "format": "binary" });
            Content { request: None, response: ("application/gzip", archive) }
        }
        Endpoint::OpenApi => {
            Content { request: None, response: ("application/json", schemars::json_schema!({ "type": "object" })) }
        }
    }
}

/// Returns the document as JSON text.
#[must_use]
pub fn document() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let error = generator.subschema_for::<ErrorBody>();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in Endpoint::ALL {
        let route = endpoint.route();
        let content = content(endpoint, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_string().to_lowercase()] = operation(endpoint, &content, &error);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portolan control API",
            "version": "1",
            "description": "API of a running server over its control socket. docs/control.md describes access and limits.",
        },
        "paths": paths,
        "components": { "schemas": generator.take_definitions(true) },
    });
    format!("{document:#}\n")
}

fn operation(endpoint: Endpoint, content: &Content, error: &Schema) -> Value {
    let route = endpoint.route();
    let (content_type, response) = &content.response;
    let failure = json!({
        "description": "The request was refused or failed",
        "content": { "application/json": { "schema": error } },
    });
    let mut operation = json!({
        "operationId": format!("{endpoint:?}"),
        "summary": route.summary,
        "responses": {
            "200": { "description": "Success", "content": { *content_type: { "schema": response } } },
            "default": failure,
        },
    });
    if !route.parameters.is_empty() {
        operation["parameters"] = route.parameters.iter().map(parameter).collect();
    }
    if let Some(request) = &content.request {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": request } } });
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let Parameter { name, required, doc } = parameter;
    json!({ "name": name, "in": "query", "required": required, "description": doc, "schema": { "type": "string" } })
}
