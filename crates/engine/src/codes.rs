//! The kinds of problems that a Corefile has when it is read for its meaning.

use corefile::{Code, Diagnostic, Span};

corefile::codes! {
    KEY_INVALID = "keys/invalid": "a key of a server block is no zone";
    KEY_UNLIKELY = "keys/unlikely": "a key of a server block is read as a zone that hardly anybody means";
    KEY_CONFLICT = "keys/conflict": "the same zone is served twice on one address";
    KEY_SHADOWED = "keys/shadowed": "a server block that no query comes to";
    SCHEME_NOT_HERE = "keys/scheme-not-here": "a transport that this build does not serve";
    NO_CERTIFICATE = "keys/no-certificate": "a `tls://` key without certificates is served without encryption";
    BIND_UNKNOWN = "bind/unknown": "neither an address nor the name of a network interface";
    DIRECTIVE_UNKNOWN = "directives/unknown": "a directive that nobody knows";
    DIRECTIVE_REMOVED = "directives/removed": "a directive that CoreDNS had once";
    DIRECTIVE_FOREIGN = "directives/foreign": "a directive that only some builds of CoreDNS have";
    DIRECTIVE_NOT_HERE = "directives/not-here": "a directive of CoreDNS that this build does not have";
    REPEATED = "options/repeated": "a directive that may stand only once in a server block";
    ARGUMENT_COUNT = "options/argument-count": "too many or too few words";
    VALUE = "options/value": "a word that is not what must stand there";
    UNKNOWN_PROPERTY = "options/unknown-property": "a property that the directive does not have";
    REMOVED_PROPERTY = "options/removed": "a property that the directive had once";
    DEPRECATED_PROPERTY = "options/deprecated": "a property that has no effect any more";
    OPTION_NOT_HERE = "options/not-here": "an option of CoreDNS that this build does not have";
    NEVER_ASKED = "chain/never-asked": "a directive that no query comes to";
    ZONE_ELSEWHERE = "chain/zone-elsewhere": "a zone whose queries do not come to this server block";
    FALLTHROUGH_TO_NOTHING = "chain/fallthrough-to-nothing": "names fall through to where nobody answers them";
    NOTHING_BELOW = "chain/nothing-below": "a directive that works on answers, where nobody gives any";
    NOTHING_TO_USE = "chain/nothing-to-use": "a directive that works with another one, which is not there";
    FORWARD_LOOP = "chain/forward-loop": "queries are passed on to the server that they came from";
    SETUP_FAILED = "setup/failed": "something of the world is not as a directive needs it";
    SETUP_WARNED = "setup/warned": "something of the world is not as a directive needs it, which goes on without";
}

/// Errors of Corefiles that CoreDNS accepts and this build cannot serve.
const NOT_HERE: [Code; 3] = [SCHEME_NOT_HERE, DIRECTIVE_NOT_HERE, OPTION_NOT_HERE];

/// Returns true for an error that CoreDNS reports too: the Corefile has no meaning then, so planning stops.
pub(crate) fn is_mistake(problem: &Diagnostic) -> bool {
    problem.is_error() && !NOT_HERE.contains(&problem.code)
}

/// Returns the error for a part of the Corefile that CoreDNS accepts and this build cannot serve.
pub(crate) fn not_here(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, span, message).with_help("CoreDNS accepts this")
}
