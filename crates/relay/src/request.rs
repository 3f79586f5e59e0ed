//! Requests: path, parameters and headers, as clients of the API server send them.

use core::time::Duration;

use crate::encode::Form;
use crate::object::number;
use crate::selector::Filter;
use crate::status::Refusal;
use crate::table::Kind;

/// Header with which a client asks for stripped objects.
pub const PROFILE_HEADER: &str = "portolan-profile";
/// Value of [`PROFILE_HEADER`] for the fields that answers need. Of pods, it has the names of those that are not ready.
pub const PROFILE: &str = "dns-1";
/// Value of [`PROFILE_HEADER`] for the same with the names of all pods, which `endpoint_pod_names` needs.
pub const PODS_PROFILE: &str = "dns-pods-1";
/// Maximum length of a query in bytes.
const QUERY_MAX: usize = 8 * 1024;
/// Duration of a watch whose request does not limit it.
const WATCH_DEFAULT: Duration = Duration::from_secs(1800);
/// Longest duration of a watch: the age limit of connections, so that subscribers spread over the relays again.
const WATCH_MAX: Duration = Duration::from_secs(3600);

/// Headers of a request that the relay reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    /// `Accept`.
    pub accept: &'a str,
    /// `Accept-Encoding`.
    pub accept_encoding: &'a str,
    /// [`PROFILE_HEADER`].
    pub profile: &'a str,
}

/// Request for a list or a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) kind: Kind,
    pub(crate) filter: Filter,
    pub(crate) form: Form,
    pub(crate) gzip: bool,
    pub(crate) action: Action,
}

/// List or watch that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    List(At),
    Watch(Watch),
}

/// Resource version of a request, with its match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The latest state.
    Latest,
    /// Any state.
    Any,
    NotOlderThan(u64),
    Exact(u64),
}

/// Parameters of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) at: At,
    /// True if the watch begins with all objects.
    pub(crate) sends_objects: bool,
    /// True if a bookmark marks the end of these.
    pub(crate) marks_end: bool,
    pub(crate) bookmarks: bool,
    pub(crate) duration: Duration,
}

impl Request {
    /// Parses a request of method GET.
    ///
    /// # Errors
    /// A path, parameter or header that a relay does not serve.
    pub fn parse(path: &str, query: &str, headers: Headers<'_>) -> Result<Request, Refusal> {
        if query.len() > QUERY_MAX {
            return Err(Refusal::Parameters(format!("the query is longer than {QUERY_MAX} bytes")));
        }
        let (kind, namespace) = kind_of(path).ok_or(Refusal::NotFound)?;
        let parameters = Parameters::parse(query);
        let [labels, fields] = ["labelSelector", "fieldSelector"].map(|name| parameters.get(name));
        let filter = Filter::parse(kind, &namespace, labels, fields)?;
        let form = form(headers).ok_or(Refusal::NotAcceptable)?;
        let action = if parameters.is("watch")? { watch(&parameters)? } else { list(&parameters)? };
        Ok(Request { kind, filter, form, gzip: accepts_gzip(headers.accept_encoding), action })
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the form of the objects.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Returns true if the response is compressed with gzip.
    #[must_use]
    pub const fn is_gzip(&self) -> bool {
        self.gzip
    }

    /// Returns true for a watch.
    #[must_use]
    pub const fn is_watch(&self) -> bool {
        matches!(self.action, Action::Watch(_))
    }

    /// Returns true if the response begins with all objects, which costs memory until the client has read them.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        matches!(self.action, Action::List(_) | Action::Watch(Watch { sends_objects: true, .. }))
    }

    /// Returns the `Content-Type` of the response.
    #[must_use]
    pub const fn content_type(&self) -> &'static str {
        match (self.form, self.is_watch()) {
            (Form::Json, _) => "application/json",
            (_, false) => "application/vnd.kubernetes.protobuf",
            (_, true) => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// Returns the lowest version that the relay must have.
    pub(crate) const fn version_min(&self) -> u64 {
        let (Action::List(at) | Action::Watch(Watch { at, .. })) = &self.action;
        match at {
            At::NotOlderThan(version) | At::Exact(version) => *version,
            At::Latest | At::Any => 0,
        }
    }
}

/// Returns kind and namespace of a path.
fn kind_of(path: &str) -> Option<(Kind, String)> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (is_core, rest) = match parts[..] {
        ["api", "v1", ref rest @ ..] => (true, rest),
        ["apis", "discovery.k8s.io", "v1", ref rest @ ..] => (false, rest),
        _ => return None,
    };
    let (namespace, resource) = match rest {
        [resource] => (String::new(), *resource),
        ["namespaces", namespace, resource] if !namespace.is_empty() => (decode(namespace), *resource),
        _ => return None,
    };
    let kind = Kind::by_resource(resource)?;
    let is_right = (kind == Kind::EndpointSlice) != is_core && (namespace.is_empty() || kind.is_namespaced());
    is_right.then_some((kind, namespace))
}

fn list(parameters: &Parameters) -> Result<Action, Refusal> {
    if !parameters.get("continue").is_empty() {
        return Err(Refusal::ExpiredPage);
    }
    Ok(Action::List(at(parameters)?))
}

fn at(parameters: &Parameters) -> Result<At, Refusal> {
    let (version, rule) = (parameters.get("resourceVersion"), parameters.get("resourceVersionMatch"));
    let invalid = |problem: &str| Err(Refusal::Parameters(problem.to_owned()));
    match (version, rule) {
        ("", "") => Ok(At::Latest),
        ("", _) => invalid("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("0", "Exact") => invalid("resourceVersionMatch `Exact` is forbidden for resourceVersion 0"),
        ("0", "" | "NotOlderThan") => Ok(At::Any),
        (version, rule) => match (number(version), rule) {
            (Some(version), "" | "NotOlderThan") => Ok(At::NotOlderThan(version)),
            (Some(version), "Exact") => Ok(At::Exact(version)),
            (None, _) => invalid("resourceVersion is not a number"),
            (_, _) => invalid("resourceVersionMatch is neither `NotOlderThan` nor `Exact`"),
        },
    }
}

fn watch(parameters: &Parameters) -> Result<Action, Refusal> {
    let bookmarks = parameters.is("allowWatchBookmarks")?;
    let is_stream = parameters.is("sendInitialEvents")?;
    let rule = parameters.get("resourceVersionMatch");
    let version = parameters.get("resourceVersion");
    if is_stream && (rule != "NotOlderThan" || !bookmarks) {
        let problem = "sendInitialEvents needs resourceVersionMatch=NotOlderThan and allowWatchBookmarks=true";
        return Err(Refusal::Parameters(problem.to_owned()));
    }
    if !is_stream && !rule.is_empty() && parameters.get("sendInitialEvents").is_empty() {
        return Err(Refusal::Parameters("resourceVersionMatch is forbidden for watch".to_owned()));
    }
    let at = match version {
        "" => At::Latest,
        "0" => At::Any,
        version => match number(version) {
            Some(version) => At::NotOlderThan(version),
            None => return Err(Refusal::Parameters("resourceVersion is not a number".to_owned())),
        },
    };
    let is_from_somewhere = matches!(at, At::NotOlderThan(_));
    let duration = match parameters.get("timeoutSeconds") {
        "" | "0" => WATCH_DEFAULT,
        text => match text.parse() {
            Ok(seconds) => Duration::from_secs(seconds).min(WATCH_MAX),
            Err(_) => return Err(Refusal::Parameters("timeoutSeconds is not a number".to_owned())),
        },
    };
    let sends_objects = is_stream || !is_from_somewhere && parameters.get("sendInitialEvents").is_empty();
    Ok(Action::Watch(Watch { at, sends_objects, marks_end: is_stream, bookmarks, duration }))
}

/// Decoded query parameters. Of two with the same name, the first one counts, as for the API server.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn parse(query: &str) -> Parameters {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Parameters(pairs.map(|(name, value)| (decode(name), decode(value))).collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn is(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            "" | "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
            _ => Err(Refusal::Parameters(format!("{name} is neither `true` nor `false`"))),
        }
    }
}

/// Decodes percent-encoding. What is not valid stays as it is.
fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        let escaped = after.first_chunk::<2>().and_then(|digits| {
            let digits = core::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
            u8::from_str_radix(digits, 16).ok()
        });
        match (byte, escaped) {
            (b'%', Some(value)) => {
                out.push(value);
                rest = &after[2..];
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(*byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Chooses the form: the first acceptable media type that a relay has. A table becomes a plain list.
fn form(headers: Headers<'_>) -> Option<Form> {
    let protobuf = match headers.profile {
        PROFILE => Form::Stripped,
        PODS_PROFILE => Form::WithPods,
        _ => Form::Full,
    };
    if headers.accept.trim().is_empty() {
        return Some(Form::Json);
    }
    headers.accept.split(',').find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next()?.to_ascii_lowercase();
        let parameters: Vec<&str> = parts.collect();
        if parameters.iter().any(|parameter| *parameter == "q=0" || parameter.starts_with("as=Partial")) {
            return None;
        }
        match media_type.as_str() {
            "application/vnd.kubernetes.protobuf" => Some(protobuf),
            "application/json" | "application/*" | "*/*" => Some(Form::Json),
            _ => None,
        }
    })
}

/// Returns true if `Accept-Encoding` allows gzip (RFC 9110 §12.5.3).
fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = parameters.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Request, Refusal> {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        Request::parse(path, query, Headers::default())
    }

    #[test]
    fn reads_paths() {
        for (path, expected) in [
            ("/api/v1/services", Some((Kind::Service, ""))),
            ("/api/v1/namespaces", Some((Kind::Namespace, ""))),
            ("/api/v1/namespaces/shop/services", Some((Kind::Service, "shop"))),
            ("/apis/discovery.k8s.io/v1/endpointslices", Some((Kind::EndpointSlice, ""))),
            ("/apis/discovery.k8s.io/v1/namespaces/a%2Fb/endpointslices", Some((Kind::EndpointSlice, "a/b"))),
            ("/api/v1/endpointslices", None),
            ("/apis/discovery.k8s.io/v1/services", None),
            ("/api/v1/namespaces/shop/nodes", None),
            ("/api/v1/namespaces/shop/services/web", None),
            ("/api/v1/secrets", None),
            ("/", None),
        ] {
            let found = kind_of(path);
            assert_eq!(found.as_ref().map(|(kind, namespace)| (*kind, namespace.as_str())), expected, "{path}");
        }
    }

    #[test]
    fn reads_versions_as_the_api_server_does() {
        for (query, expected) in [
            ("", Some(At::Latest)),
            ("limit=500&resourceVersion=0", Some(At::Any)),
            ("resourceVersion=7", Some(At::NotOlderThan(7))),
            ("resourceVersion=7&resourceVersionMatch=Exact", Some(At::Exact(7))),
            ("resourceVersion=0&resourceVersionMatch=Exact", None),
            ("resourceVersionMatch=NotOlderThan", None),
            ("resourceVersion=7&resourceVersionMatch=Newest", None),
            ("resourceVersion=x", None),
        ] {
            let found = parse(&format!("/api/v1/services?{query}")).ok().map(|request| request.action);
            assert_eq!(found, expected.map(Action::List), "{query}");
        }
        assert_eq!(parse("/api/v1/services?continue=a"), Err(Refusal::ExpiredPage));
    }

    #[test]
    fn reads_watches() {
        let watch = |query: &str| match parse(&format!("/api/v1/services?watch=1&{query}"))?.action {
            Action::Watch(watch) => Ok(watch),
            Action::List(_) => unreachable!("it is a watch"),
        };
        let plain = watch("resourceVersion=7&timeoutSeconds=9&allowWatchBookmarks=true").unwrap();
        assert_eq!((plain.at, plain.sends_objects, plain.bookmarks), (At::NotOlderThan(7), false, true));
        assert_eq!(plain.duration, Duration::from_secs(9));
        let all = watch("").unwrap();
        assert_eq!((all.at, all.sends_objects, all.marks_end), (At::Latest, true, false));
        let stream = watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1").unwrap();
        assert_eq!((stream.sends_objects, stream.marks_end), (true, true));
        for query in
            ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "timeoutSeconds=x", "allowWatchBookmarks=x"]
        {
            assert!(matches!(watch(query), Err(Refusal::Parameters(_))), "{query}");
        }
        assert_eq!(watch("timeoutSeconds=99999999").unwrap().duration, WATCH_MAX);
    }

    #[test]
    fn negotiates_as_the_api_server_does() {
        const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
        for (accept, profile, expected) in [
            ("", "", Some(Form::Json)),
            ("*/*", "dns-1", Some(Form::Json)),
            (PROTOBUF, "", Some(Form::Full)),
            (PROTOBUF, "dns-1", Some(Form::Stripped)),
            (PROTOBUF, "dns-pods-1", Some(Form::WithPods)),
            (PROTOBUF, "dns-2", Some(Form::Full)),
            ("application/vnd.kubernetes.protobuf;stream=watch, application/json", "dns-1", Some(Form::Stripped)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "", Some(Form::Json)),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "", None),
            ("application/cbor", "", None),
            ("application/cbor, application/json;q=0", "", None),
        ] {
            assert_eq!(form(Headers { accept, profile, ..Headers::default() }), expected, "{accept} {profile}");
        }
        assert!(accepts_gzip("gzip") && accepts_gzip("br, GZIP;q=0.5") && !accepts_gzip("gzip;q=0, identity"));
    }

    #[test]
    fn decodes_parameters() {
        assert_eq!(decode("a%20b+c%2"), "a b c%2");
        assert_eq!(decode("%+1%zz"), "% 1%zz");
        let long = format!("/api/v1/services?x={}", "a".repeat(QUERY_MAX));
        assert!(matches!(parse(&long), Err(Refusal::Parameters(_))));
    }
}
