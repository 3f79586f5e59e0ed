//! Codes of the diagnostics that planning and building a Corefile can report.

use corefile::{Code, Diagnostic, Span};

corefile::codes! {
    KEY_INVALID = "keys/invalid": "a key of a server block is not a zone";
    KEY_UNLIKELY = "keys/unlikely": "a key of a server block is a zone, but probably not meant as one";
    KEY_CONFLICT = "keys/conflict": "the same zone is served twice on one address";
    KEY_SHADOWED = "keys/shadowed": "a server block that no query reaches";
    NO_CERTIFICATE =
        "keys/no-certificate": "a `tls://`, `https://` or `grpc://` key without certificates is served without encryption";
    TLS_CONFLICT = "keys/tls-conflict": "server blocks on the same encrypted address have different `tls` settings";
    STREAMS_CONFLICT = "keys/streams-conflict": "server blocks on the same HTTPS address have different `max_streams`";
    NO_ENCRYPTION = "keys/no-encryption": "a `quic://` or `https3://` key without certificates";
    BIND_UNKNOWN = "bind/unknown": "neither an address nor the name of a network interface";
    DIRECTIVE_UNKNOWN = "directives/unknown": "an unknown directive";
    DIRECTIVE_REMOVED = "directives/removed": "a directive that CoreDNS has removed";
    DIRECTIVE_FOREIGN = "directives/foreign": "a directive that only custom builds of CoreDNS have";
    DIRECTIVE_NOT_HERE = "directives/not-here": "a directive of CoreDNS that this build does not have";
    REPEATED = "options/repeated": "a directive that is allowed only once in a server block";
    ARGUMENT_COUNT = "options/argument-count": "too many or too few words";
    VALUE = "options/value": "an invalid value";
    UNKNOWN_PROPERTY = "options/unknown-property": "a property that the directive does not have";
    REMOVED_PROPERTY = "options/removed": "a property that CoreDNS has removed";
    DEPRECATED_PROPERTY = "options/deprecated": "a property that has no effect any more";
    OPTION_NOT_HERE = "options/not-here": "an option of CoreDNS that this build does not have";
    NEVER_ASKED = "chain/never-asked": "a directive that no query reaches";
    ZONE_ELSEWHERE = "chain/zone-elsewhere": "a zone whose queries do not reach this server block";
    FALLTHROUGH_TO_NOTHING = "chain/fallthrough-to-nothing": "names fall through, but no later directive answers them";
    NOTHING_BELOW = "chain/nothing-below": "a directive that processes answers, but no later directive answers";
    NOTHING_TO_USE = "chain/nothing-to-use": "a directive that depends on another one, which is missing";
    FORWARD_LOOP = "chain/forward-loop": "queries are forwarded to the server that they came from";
    TOO_LARGE = "setup/too-large": "the configuration needs more memory than the process may take";
    SETUP_FAILED = "setup/failed": "a directive cannot be built, because a resource that it needs has a problem";
    SETUP_WARNED = "setup/warned": "a directive works, but a resource that it needs has a problem";
    ZONE_CNAME = "zone/cname-and-other-data": "a name of a zone has a CNAME record and other data";
    ZONE_CNAMES = "zone/multiple-cname": "a name of a zone has multiple CNAME records";
    ZONE_DNAMES = "zone/multiple-dname": "a name of a zone has multiple DNAME records";
    ZONE_NS_DNAME = "zone/ns-and-dname": "a name of a zone has NS records and a DNAME record";
    ZONE_BELOW_DNAME = "zone/below-dname": "records below the owner of a DNAME record";
    ZONE_GLUE = "zone/missing-glue": "a name server in the zone has no address";
}

/// Errors of Corefiles that CoreDNS accepts and this build cannot serve.
const NOT_HERE: [Code; 2] = [DIRECTIVE_NOT_HERE, OPTION_NOT_HERE];

/// Returns true for an error that CoreDNS reports too: the Corefile has no meaning then, so planning stops.
pub(crate) fn is_mistake(problem: &Diagnostic) -> bool {
    problem.is_error() && !NOT_HERE.contains(&problem.code)
}

/// Returns the error for a part of the Corefile that CoreDNS accepts and this build cannot serve.
pub(crate) fn not_here(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, span, message).with_help("CoreDNS accepts this")
}
