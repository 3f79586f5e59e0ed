//! Endpoints of the API: method, path and parameters.

use core::fmt;
use core::time::Duration;

/// Time limit of an endpoint that only reads memory.
const READ_LIMIT: Duration = Duration::from_secs(1);
/// Time limit of an explanation, which may read the client from the API server: 2 s for that, and 1 s for the rest.
const EXPLAIN_LIMIT: Duration = Duration::from_secs(3);
/// Time limit of a reload, which may wait for a cluster to be listed.
const RELOAD_LIMIT: Duration = Duration::from_secs(60);
/// Time limit of a report, which compresses all metrics.
const REPORT_LIMIT: Duration = Duration::from_secs(5);

/// Endpoint of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Status page for browsers.
    Page,
    /// State of the server on one screen.
    Status,
    /// Readiness for probes.
    Ready,
    /// Explanation of an answer.
    Explain,
    /// Cached responses for a name.
    CacheGet,
    /// Removal of cached responses.
    CacheFlush,
    /// Reload of the Corefile.
    Reload,
    /// Temporary log levels.
    LogLevels,
    /// Change of a log level for some time.
    SetLogLevel,
    /// Queries that wait for an upstream.
    Requests,
    /// Live queries.
    Events,
    /// Largest groups of queries.
    Top,
    /// Comparison with the server that this one replaces.
    Shadow,
    /// Facts of the server for `portolan doctor`.
    Doctor,
    /// Archive for a bug report.
    Report,
    /// This API as an OpenAPI document.
    OpenApi,
}

/// HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads. A read-only listener allows only this.
    Get,
    /// Changes something.
    Post,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Get => "GET",
            Method::Post => "POST",
        })
    }
}

/// Parameter in the query string.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// True if a request without it is refused.
    pub required: bool,
    /// Documentation, in one sentence.
    pub doc: &'static str,
}

/// Address of an endpoint and its rules.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Method.
    pub method: Method,
    /// Path.
    pub path: &'static str,
    /// Summary, without a full stop.
    pub summary: &'static str,
    /// Parameters in the query string.
    pub parameters: &'static [Parameter],
    /// Time after which the server gives up on a response.
    pub time_limit: Duration,
}

impl Route {
    const fn get(path: &'static str, summary: &'static str) -> Route {
        Route { method: Method::Get, path, summary, parameters: &[], time_limit: READ_LIMIT }
    }

    const fn post(path: &'static str, summary: &'static str) -> Route {
        Route { method: Method::Post, ..Route::get(path, summary) }
    }
}

const CACHE_PARAMETERS: &[Parameter] = &[
    Parameter { name: "name", required: true, doc: "Domain name, with or without the final dot." },
    Parameter { name: "type", required: false, doc: "Record type such as `AAAA`; all types without it." },
];

const EXPLAIN_PARAMETERS: &[Parameter] = &[
    Parameter { name: "name", required: true, doc: "Domain name. A final dot excludes the search path." },
    Parameter { name: "type", required: false, doc: "Record type such as `AAAA`; `A` without it." },
    Parameter { name: "from", required: false, doc: "Client: `NAMESPACE/POD` or an IP address." },
    Parameter { name: "server", required: false, doc: "Listener such as `dns://:53`; the first one without it." },
    Parameter {
        name: "denied",
        required: false,
        doc: "Names with spaces between them that an upstream denied: the search goes on after them.",
    },
];

const PAGE_PARAMETERS: &[Parameter] = &[
    Parameter { name: "name", required: false, doc: "Domain name to explain, as in `/v1/explain`." },
    Parameter { name: "type", required: false, doc: "Record type such as `AAAA`; `A` without it." },
    Parameter { name: "from", required: false, doc: "Client: `NAMESPACE/POD` or an IP address." },
];

const EVENTS_PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "name",
        required: false,
        doc: "Names, or `*.NAME` for all names below. As in all filters, several values have commas between them, and \
              `!` before the first selects all others.",
    },
    Parameter { name: "zone", required: false, doc: "Zones: the names themselves and all names below." },
    Parameter { name: "type", required: false, doc: "Record types such as `AAAA`." },
    Parameter { name: "rcode", required: false, doc: "Response codes such as `NXDOMAIN`, or `DROPPED`." },
    Parameter { name: "plugin", required: false, doc: "Plugins that answered or failed." },
    Parameter { name: "client", required: false, doc: "IP addresses of clients, or networks such as `10.0.0.0/8`." },
    Parameter { name: "namespace", required: false, doc: "Namespace of the client." },
    Parameter {
        name: "pod",
        required: false,
        doc: "Pod of the client, or Service that it is an endpoint of; with `namespace`.",
    },
    Parameter { name: "slow", required: false, doc: "Minimum duration in seconds." },
    Parameter { name: "sample", required: false, doc: "Number N, to show one of N queries." },
    Parameter { name: "last", required: false, doc: "Number of recorded failures to show first." },
    Parameter {
        name: "follow",
        required: false,
        doc: "`false` to end after the recorded failures; `true` without it.",
    },
    Parameter { name: "seconds", required: false, doc: "Duration of the stream, from 1 to 3600; 3600 without it." },
];

const REQUESTS_PARAMETERS: &[Parameter] =
    &[Parameter { name: "name", required: false, doc: "Domain name: only queries for it and for names below." }];

const TOP_PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "by",
        required: false,
        doc: "Grouping: `pod`, `ns`, `name`, `zone`, `rcode`, `upstream` or `waste`; `pod` without it.",
    },
    Parameter { name: "window", required: false, doc: "Period: `10s`, `1m` or `10m`; `1m` without it." },
    Parameter { name: "rows", required: false, doc: "Maximum number of rows, at most 200; 20 without it." },
];

impl Endpoint {
    /// All endpoints.
    pub const ALL: [Endpoint; 16] = [
        Endpoint::Page,
        Endpoint::Status,
        Endpoint::Ready,
        Endpoint::Explain,
        Endpoint::CacheGet,
        Endpoint::CacheFlush,
        Endpoint::Reload,
        Endpoint::LogLevels,
        Endpoint::SetLogLevel,
        Endpoint::Requests,
        Endpoint::Events,
        Endpoint::Top,
        Endpoint::Shadow,
        Endpoint::Doctor,
        Endpoint::Report,
        Endpoint::OpenApi,
    ];

    /// Returns the address of the endpoint.
    #[must_use]
    pub const fn route(self) -> Route {
        match self {
            Endpoint::Page => Route {
                parameters: PAGE_PARAMETERS,
                time_limit: EXPLAIN_LIMIT,
                ..Route::get("/", "Status page for browsers, also with an explanation")
            },
            Endpoint::Status => Route::get("/v1/status", "State of the server on one screen"),
            Endpoint::Ready => Route::get("/v1/ready", "Readiness of the server, for probes"),
            Endpoint::Explain => Route {
                parameters: EXPLAIN_PARAMETERS,
                time_limit: EXPLAIN_LIMIT,
                ..Route::get("/v1/explain", "Answer to a query, and how it comes about")
            },
            Endpoint::CacheGet => {
                Route { parameters: CACHE_PARAMETERS, ..Route::get("/v1/cache", "Cached responses for a name") }
            }
            Endpoint::CacheFlush => Route::post("/v1/cache/flush", "Remove cached responses"),
            Endpoint::Reload => {
                Route { time_limit: RELOAD_LIMIT, ..Route::post("/v1/reload", "Reload the Corefile and wait for it") }
            }
            Endpoint::LogLevels => Route::get("/v1/log", "Temporary log levels"),
            Endpoint::SetLogLevel => Route::post("/v1/log", "Change the log level of a plugin for some time"),
            Endpoint::Requests => Route {
                parameters: REQUESTS_PARAMETERS,
                ..Route::get("/v1/requests", "Queries that wait for an upstream, oldest first")
            },
            Endpoint::Events => Route {
                parameters: EVENTS_PARAMETERS,
                ..Route::get("/v1/events", "Queries and their answers while they happen, one JSON object per line")
            },
            Endpoint::Top => Route {
                parameters: TOP_PARAMETERS,
                ..Route::get("/v1/top", "Largest groups of queries of the last minutes")
            },
            Endpoint::Shadow => Route::get("/v1/shadow", "Comparison with the server that this one replaces"),
            Endpoint::Doctor => Route::get("/v1/doctor", "Facts of the server for `portolan doctor`"),
            Endpoint::Report => Route {
                time_limit: REPORT_LIMIT,
                ..Route::get("/v1/report", "Archive for a bug report, without secrets")
            },
            Endpoint::OpenApi => Route::get("/v1/openapi.json", "This API as an OpenAPI document"),
        }
    }

    /// Finds the endpoint for a request.
    ///
    /// # Errors
    /// The path does not exist, or not with this method.
    pub fn find(method: &str, path: &str) -> Result<Endpoint, RouteError> {
        let mut outcome = Err(RouteError::Path);
        for endpoint in Endpoint::ALL {
            let route = endpoint.route();
            if route.path == path {
                if route.method.to_string() == method {
                    return Ok(endpoint);
                }
                outcome = Err(RouteError::Method);
            }
        }
        outcome
    }
}

/// Reason why a request has no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The path does not exist.
    #[error("there is no such path; GET /v1/openapi.json lists all of them")]
    Path,
    /// The path exists with another method.
    #[error("the path does not have this method; GET /v1/openapi.json lists those it has")]
    Method,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_endpoints_by_method_and_path() {
        assert_eq!(Endpoint::find("GET", "/v1/status"), Ok(Endpoint::Status));
        assert_eq!(Endpoint::find("POST", "/v1/log"), Ok(Endpoint::SetLogLevel));
        assert_eq!(Endpoint::find("GET", "/v1/log"), Ok(Endpoint::LogLevels));
        assert_eq!(Endpoint::find("POST", "/v1/status"), Err(RouteError::Method));
        assert_eq!(Endpoint::find("GET", "/v2/status"), Err(RouteError::Path));
    }

    #[test]
    fn no_two_endpoints_have_the_same_address() {
        let addresses: Vec<_> = Endpoint::ALL.iter().map(|one| (one.route().method, one.route().path)).collect();
        let is_first = |at: usize| !addresses[..at].contains(&addresses[at]);
        assert!((0..addresses.len()).all(is_first));
    }
}
