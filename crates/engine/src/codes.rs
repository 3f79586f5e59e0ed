//! The kinds of problems that a Corefile has when it is read for its meaning.

use corefile::Code;

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

/// What can be checked but not served: these are warnings in a check and errors at the start.
pub(crate) const NOT_HERE: [Code; 3] = [SCHEME_NOT_HERE, DIRECTIVE_NOT_HERE, OPTION_NOT_HERE];
